// Command luastream is another design of a flash sale, to compare the shop with: it answers from a Lua script in Redis and
// writes to MySQL later. Package shop describes the design and its risks. `serve` runs it; `compare` runs it and our shop
// alternately, under the same load.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"seckill/handler"
	"seckill/loadtest/peers/luastream/shop"
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

type serveCmd struct {
	Listen    string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Address to serve at."`
	RedisAddr string `name:"redis-addrs" default:"127.0.0.1:6379" placeholder:"HOST:PORT" help:"Redis; one server. The flag is named as in seckill serve."`
	MySQLDSN  string `name:"mysql-dsn" required:"" placeholder:"USER:PASS@tcp(HOST:3306)/DB" help:"Database."`
	JWTKey    string `name:"jwt-key" required:"" placeholder:"SECRET" help:"Key that signs tokens, at least 32 bytes."`
	BatchMax  int    `default:"1000" help:"Most orders in one transaction of the writer."`
	Plain     bool   `help:"One round trip to Redis for each order, without shared pipelines."`
}

// shutdown is how long requests under way may take at the end.
const shutdown = 10 * time.Second

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s, err := shop.Open(ctx, shop.Options{RedisAddr: c.RedisAddr, MySQLDSN: c.MySQLDSN, BatchMax: c.BatchMax, Plain: c.Plain}, log)
	if err != nil {
		return err
	}
	return errors.Join(c.serve(ctx, s, log), s.Close())
}

// serve uses the handler of our shop, and adds /stats.
func (c *serveCmd) serve(ctx context.Context, s *shop.Shop, log *slog.Logger) error {
	h, err := handler.New(handler.Config{
		Shop: s, Keys: [][]byte{[]byte(c.JWTKey)}, Ready: s.Ready, Log: log, Web: s, Audit: s.Audit,
		AccessLog: 20, // as `seckill serve` has it
	})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	server := handler.NewServer(h, log)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Info("the peer is open", "url", "http://"+listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
	defer cancel()
	if err := server.Shutdown(closing); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, server.Close())
	}
	return nil
}
