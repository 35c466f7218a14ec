// Command luastream is a peer to measure the shop against: the pattern that answers from one Lua script in Redis and
// writes to MySQL later. Package shop says how it works and what can go wrong with it. `serve` runs it; `compare` runs
// it and ours in turn, under the same load, and says what came of it.
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
	Serve   serveCmd   `cmd:"" help:"Run the peer. /stats tells what it acknowledged and what is durable."`
	Compare compareCmd `cmd:"" help:"Run ours and the peer in turn under the same load, and print one table."`
}

func main() {
	command := kong.Parse(new(cli), kong.Name("luastream"),
		kong.Description("A flash sale that answers from Redis and writes to MySQL later, to be measured against."),
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
