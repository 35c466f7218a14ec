package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"seckill/handler"
	"seckill/loadtest/peers/luastream/shop"
)

type serveCmd struct {
	Listen    string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Address to serve at."`
	RedisAddr string `name:"redis-addr" default:"127.0.0.1:6379" placeholder:"HOST:PORT" help:"Redis."`
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
		Shop: s, Keys: [][]byte{[]byte(c.JWTKey)}, Ready: s.Ready, Log: log, Web: s,
		Audit:     s.Audit,
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
