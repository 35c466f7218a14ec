package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"seckill/cmd/internal/tracing"
	"seckill/handler"
	"seckill/handler/board"
	"seckill/handler/web"
	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
)

// App is a running shop, or its consumers alone.
type App struct {
	DB     *repository.DB // for audits; closed by Close
	JWTKey []byte

	listener net.Listener
	failed   chan error // why it cannot go on
	log      *slog.Logger
	traces   *tracing.Tracing // nil: off
	board    *board.Board     // nil: there is none
	stack    stack
}

// Start opens everything and serves. ctx bounds the start only. If it fails, what was opened is closed again.
func Start(ctx context.Context, opts Options, log *slog.Logger) (*App, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	a := newApp(log)
	if err := a.start(ctx, &opts); err != nil {
		return nil, a.abandon(ctx, &opts, err)
	}
	return a, nil
}

func newApp(log *slog.Logger) *App { return &App{log: log, failed: make(chan error, 1)} }

// abandon closes what was opened by a start that failed.
func (a *App) abandon(ctx context.Context, opts *Options, cause error) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), opts.Shutdown.ShutdownTimeout)
	defer cancel()
	return errors.Join(cause, a.Close(closing))
}

// fail tells whoever runs this that it cannot go on. The first cause counts.
func (a *App) fail(cause error) {
	select {
	case a.failed <- cause:
	default:
	}
}

// start goes from what depends on nothing to what depends on all. Close goes the other way: no more requests, then no
// more commits, then no more events, then the servers.
func (a *App) start(ctx context.Context, opts *Options) error {
	if err := a.startTraces(ctx, opts); err != nil {
		return err
	}
	if err := a.startProfiles(ctx, opts.Log.Pprof); err != nil {
		return err
	}
	if err := a.listen(ctx, opts); err != nil { // first: if the address is taken, nothing else is
		return err
	}
	m := newMetrics()
	m.off = !opts.API.Metrics
	b, err := openBackends(ctx, opts, a.log, &a.stack)
	if err != nil {
		return err
	}
	a.DB, a.JWTKey = b.db, b.jwtKey
	b.broker = a.traces.Broker(b.broker, opts.Events.Broker)
	m.watch(b.db)
	m.watchRedis(b.redis)
	ids, err := openIDs(ctx, opts, b, m, a.log, &a.stack)
	if err != nil {
		return err
	}
	locker, err := openLocker(opts, b, m, a.log, &a.stack)
	if err != nil {
		return err
	}
	wake, err := a.startEvents(opts, b, m)
	if err != nil {
		return err
	}
	shop := service.New(service.Config{
		Orders: a.traces.Orders(m.meter.WatchOrders(repository.NewOrders(b.db))), Vouchers: repository.NewVouchers(b.db),
		Locker: a.traces.Locker(locker), IDs: ids, Log: a.log, Observer: orderWatch{orderMetrics{m}, m.meter}, Changed: wake,
		LockScope: opts.lockScope(), BatchMax: opts.Commit.CommitBatchMax,
		CommitConcurrency: opts.Commit.CommitConcurrency, QueueMax: opts.Commit.QueueMax, CommitTimeout: opts.Commit.CommitTimeout,
	})
	a.stack.onClose("orders", shop.Close)
	a.stack.run("expiry", func(ctx context.Context) { shop.RunExpiry(ctx, opts.Commit.ExpireEvery) })
	a.startBooks(opts, m)
	a.startBoard(opts, b, ids, m)
	return a.serve(ctx, opts, shop, ids, m)
}

// listen takes the address.
func (a *App) listen(ctx context.Context, opts *Options) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", opts.API.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	a.listener = listener
	a.stack.onClose("listener", func(context.Context) error { _ = listener.Close(); return nil }) // the server has, if it got that far
	return nil
}

// serve answers requests from now on.
func (a *App) serve(ctx context.Context, opts *Options, shop *service.Shop, ids idgen.Generator, m *metrics) error {
	cfg := handler.Config{
		Shop: shop, Keys: [][]byte{a.JWTKey}, Log: a.log,
		Ready: a.ready(), IDs: ids, Outbox: repository.NewOutbox(a.DB),
		Audit:  func(ctx context.Context) (service.Audit, error) { return a.DB.Audit(ctx, repository.AuditOptions{}) },
		Guests: opts.API.Guests || opts.Servers.Embedded(), UserLimit: rate(opts.API.UserRate), AddressLimit: rate(opts.API.AddressRate),
		TrustedProxies: opts.API.TrustedProxies, PlaceTimeout: opts.Commit.CommitTimeout + 2*time.Second,
		AccessLog: opts.Log.AccessLog,
	}
	if snowflake, ok := ids.(*idgen.Snowflake); ok {
		layout := snowflake.Layout()
		cfg.IDLayout = &layout
	}
	if opts.API.Metrics {
		cfg.Metrics, cfg.Observe = m.handler(), m.request
	}
	if a.traces != nil {
		cfg.Trace = a.traces.Request
	}
	page, err := web.New()
	if err != nil {
		return err
	}
	cfg.Web = page
	if a.board != nil {
		cfg.Board, cfg.BoardForAdmins = a.board, opts.boardAdminOnly()
	}
	h, err := handler.New(cfg)
	if err != nil {
		return err
	}
	a.answer(opts, h)
	return nil
}

// answer serves what the handler answers, until the shop is closed.
func (a *App) answer(opts *Options, h *handler.Handler) {
	server := handler.NewServer("", h, a.log)
	a.connectBoard(server)
	go func() {
		if err := server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			a.fail(err)
		}
	}()
	a.stack.onClose("http server", func(ctx context.Context) error {
		h.Drain()
		a.drainBoard()
		select {
		case <-time.After(opts.Shutdown.DrainDelay):
		case <-ctx.Done():
		}
		// Half of the time for requests in hand; then their connections are cut, so that there is time for the rest.
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
			defer cancel()
		}
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(err, server.Close())
		}
		return nil
	})
}

// ready tells whether the database is there and migrated. That it is migrated once is enough.
func (a *App) ready() func(ctx context.Context) error {
	return a.DB.Ping // Start refused a database that is not migrated
}

// URL is where it is reached; "" if nowhere.
func (a *App) URL() string {
	if a.listener == nil {
		return ""
	}
	return "http://" + a.listener.Addr().String()
}

// Failed gets an error if it stops by itself.
func (a *App) Failed() <-chan error { return a.failed }

// Close stops taking requests, finishes those in hand, gives back locks and leases, and closes all connections. What
// takes longer than ctx is cut off, and named in the error. A second call does nothing.
func (a *App) Close(ctx context.Context) error { return a.stack.close(ctx) }
