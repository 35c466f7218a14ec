package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"time"

	"seckill/cmd/internal/tracing"
	"seckill/handler"
	"seckill/handler/board"
	"seckill/handler/web"
	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
)

// startTraces runs first, so that traces are closed last.
func (a *App) startTraces(ctx context.Context) error {
	if a.opts.Trace.Endpoint == "" {
		return nil
	}
	traces, err := tracing.Start(ctx, tracing.Options{Endpoint: a.opts.Trace.Endpoint, Ratio: a.opts.Trace.Ratio, Log: a.log})
	if err != nil {
		return err
	}
	a.stack.onClose("traces", traces.Close)
	a.traces, a.log = traces, tracing.Log(a.log)
	a.observer.log = a.log
	return nil
}

// startProfiles serves Go's profiles at a separate address, which strangers must not be able to reach.
func (a *App) startProfiles(ctx context.Context) error {
	if a.opts.Log.Pprof == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", a.opts.Log.Pprof)
	if err != nil {
		return fmt.Errorf("--pprof: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	a.serveUntilClose("profiles", listener, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second})
	return nil
}

// serveUntilClose serves on an address beside the shop's own. Requests in progress are cut off at the end.
func (a *App) serveUntilClose(name string, listener net.Listener, server *http.Server) {
	go func() { _ = server.Serve(listener) }() // ends with Close
	a.stack.onClose(name, func(context.Context) error { return server.Close() })
}

// listen takes the address of the shop.
func (a *App) listen(ctx context.Context) (err error) {
	if a.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", a.opts.API.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	a.stack.onClose("listener", func(context.Context) error {
		_ = a.listener.Close() // fails if the server has closed it
		return nil
	})
	return nil
}

// startBoard runs the live board.
func (a *App) startBoard() {
	if a.opts.Board.Board == "off" {
		return
	}
	host, _ := os.Hostname()
	_, port, _ := net.SplitHostPort(a.listener.Addr().String())
	a.board = board.New(board.Config{
		Metrics: a.observer.registry, Instance: net.JoinHostPort(host, port), Log: a.log,
		Vouchers: repository.NewVouchers(a.DB), Registry: repository.NewInstances(a.DB), MaxViewers: a.opts.Board.BoardViewers,
	})
	a.stack.run("board", a.board.Run)
}

// serveShop answers all requests of the shop from now on.
func (a *App) serveShop(shop *service.Shop, ids idgen.Generator) error {
	page, err := web.New()
	if err != nil {
		return err
	}
	api := &a.opts.API
	cfg := handler.Config{
		Shop: shop, Keys: [][]byte{a.JWTKey}, Log: a.log, Web: page,
		Ready: a.DB.Ping, IDs: ids, Outbox: repository.NewOutbox(a.DB),
		Audit:  func(ctx context.Context) (service.Audit, error) { return a.DB.Audit(ctx, repository.AuditOptions{}) },
		Guests: api.Guests || a.opts.Servers.Embedded(), UserLimit: rate(api.UserRate), AddressLimit: rate(api.AddressRate),
		TrustedProxies: api.TrustedProxies, PlaceTimeout: a.opts.Commit.CommitTimeout + 2*time.Second,
		AccessLog: a.opts.Log.AccessLog, Observe: a.observer.Request,
	}
	if snowflake, ok := ids.(*idgen.Snowflake); ok {
		layout := snowflake.Layout()
		cfg.IDLayout = &layout
	}
	if api.Metrics {
		cfg.Metrics = a.observer.handler()
	}
	if a.traces != nil {
		cfg.Trace = a.traces.Request
	}
	if a.board != nil {
		cfg.Board, cfg.BoardForAdmins = a.board, a.opts.boardAdminOnly()
	}
	h, err := handler.New(cfg)
	if err != nil {
		return err
	}
	a.serve(h)
	return nil
}

// sendBuffer bounds the memory that the kernel takes for a connection whose client does not read, such as a viewer of the
// board. By default it grows to megabytes.
const sendBuffer = 128 << 10

// serve answers requests until Close.
func (a *App) serve(h *handler.Handler) {
	server := handler.NewServer(h, a.log)
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer)
		}
		return ctx
	}
	if a.board != nil {
		server.RegisterOnShutdown(a.board.Close) // Shutdown waits for its streams
	}
	go func() {
		if err := server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			a.fail(err)
		}
	}()
	a.stack.onClose("http server", func(ctx context.Context) error { return a.shutDown(ctx, server, h) })
}

// shutDown makes readiness fail, waits until load balancers have noticed, and finishes the requests in progress. They have
// half of the time; then their connections are cut, so that there is time for the rest.
func (a *App) shutDown(ctx context.Context, server *http.Server, h *handler.Handler) error {
	h.Drain()
	if a.board != nil {
		a.board.Drain()
	}
	select {
	case <-time.After(a.opts.Shutdown.DrainDelay):
	case <-ctx.Done():
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}
