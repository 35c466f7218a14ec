// Command luastream is another design of a flash sale, to compare the shop with: it answers from a Lua script in Redis and
// writes to MySQL later. Package shop describes the design and its risks. `serve` runs it; `compare` runs it and our shop
// alternately, under the same load.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the peer. /stats returns how many orders are acknowledged and how many are durable."`
	Compare compareCmd `cmd:"" help:"Run our shop and the peer alternately under the same load, and print a table."`
}

func main() {
	command := kong.Parse(new(cli), kong.Name("luastream"),
		kong.Description("A flash sale that answers from Redis and writes to MySQL later."),
		kong.DefaultEnvars("LUASTREAM"), kong.UsageOnError())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "luastream:", err)
		os.Exit(1)
	}
}
