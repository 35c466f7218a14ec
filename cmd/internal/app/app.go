// Package app is the composition root: it builds a running shop from options. Start builds everything in the order in which
// things depend on each other, and everything that is acquired registers its release at once.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"seckill/cmd/internal/tracing"
	"seckill/handler/board"
	"seckill/repository"
	"seckill/service"
)

// App is a running shop, or its consumers alone.
type App struct {
	DB     *repository.DB // for audits; Close closes it
	JWTKey []byte

	opts     Options
	log      *slog.Logger
	observer *observer
	traces   *tracing.Tracing // nil: off
	board    *board.Board     // nil: off
	listener net.Listener     // nil: nothing is served
	failed   chan error
	stack    stack
}

// Start builds a shop and serves it. ctx bounds the start only. If it fails, everything that was acquired is released.
func Start(ctx context.Context, opts Options, log *slog.Logger) (*App, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	a := newApp(opts, log)
	return a.orRelease(ctx, a.start(ctx))
}

// start builds the shop. Close goes the other way: it ends requests first, then commits, then events, then connections.
func (a *App) start(ctx context.Context) error {
	// 1. Traces and profiles, and the address: if it is taken, nothing else is acquired.
	if err := a.startTraces(ctx); err != nil {
		return err
	}
	if err := a.startProfiles(ctx); err != nil {
		return err
	}
	if err := a.listen(ctx); err != nil {
		return err
	}

	// 2. The servers: database, Redis and broker, or what stands for them in embedded mode.
	b, err := a.openBackends(ctx)
	if err != nil {
		return err
	}

	// 3. Ids of orders, and the lock in front of the database.
	ids, err := a.openIDs(ctx, b)
	if err != nil {
		return err
	}
	locker, err := a.openLocker(b.redis)
	if err != nil {
		return err
	}

	// 4. Events: consumers, the relay from the outbox to the broker, and jobs. wake tells relays of new events.
	wake, err := a.startEvents(b.broker)
	if err != nil {
		return err
	}

	// 5. The shop itself, and what runs beside it.
	shop := service.New(service.Config{
		Orders: a.traces.Orders(repository.NewOrders(a.DB)), Vouchers: repository.NewVouchers(a.DB),
		Locker: a.traces.Locker(locker), IDs: ids, Log: a.log, Observer: a.observer, WakeRelay: wake,
		LockScope: service.LockScope(a.opts.Lock.LockScope), BatchMax: a.opts.Commit.CommitBatchMax,
		CommitConcurrency: a.opts.Commit.CommitConcurrency, QueueMax: a.opts.Commit.QueueMax,
		CommitTimeout: a.opts.Commit.CommitTimeout,
	})
	a.stack.onClose("orders", shop.Close)
	a.stack.run("expiry", func(ctx context.Context) { shop.RunExpiry(ctx, a.opts.Commit.ExpireEvery) })
	a.startStockCheck()
	a.startBoard()

	// 6. Answer requests.
	return a.serveShop(shop, ids)
}

func newApp(opts Options, log *slog.Logger) *App {
	m := newMetrics()
	m.waitingLimit.Set(float64(opts.Commit.QueueMax))
	return &App{opts: opts, log: log, observer: &observer{metrics: m, log: log}, failed: make(chan error, 1)}
}

// orRelease returns the app, or releases what it acquired if its start failed.
func (a *App) orRelease(ctx context.Context, err error) (*App, error) {
	if err == nil {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opts.Shutdown.ShutdownTimeout)
	defer cancel()
	return nil, errors.Join(err, a.Close(ctx))
}

// URL is where the app is served; "" if nowhere.
func (a *App) URL() string {
	if a.listener == nil {
		return ""
	}
	return "http://" + a.listener.Addr().String()
}

// Failed returns a channel that gets an error if the app cannot go on.
func (a *App) Failed() <-chan error { return a.failed }

// fail reports that the app cannot go on. The first cause counts.
func (a *App) fail(cause error) {
	select {
	case a.failed <- cause:
	default:
	}
}

// Close stops taking requests, finishes those in progress, releases locks and leases, and closes all connections. What
// takes longer than ctx is cut off and named in the error. A second call does nothing.
func (a *App) Close(ctx context.Context) error { return a.stack.close(ctx) }

// stack releases what was acquired, in reverse order.
type stack struct{ releases []release }

type release struct {
	name string
	do   func(ctx context.Context) error
}

// onClose registers the release of something that was just acquired.
func (s *stack) onClose(name string, do func(ctx context.Context) error) {
	s.releases = append(s.releases, release{name, do})
}

// run starts a loop. Its release cancels the loop's context and waits for its end.
func (s *stack) run(name string, loop func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		loop(ctx)
	}()
	s.onClose(name, func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// close releases everything, whatever fails on the way. A second call does nothing.
func (s *stack) close(ctx context.Context) error {
	var errs []error
	for len(s.releases) > 0 {
		last := s.releases[len(s.releases)-1]
		s.releases = s.releases[:len(s.releases)-1]
		if err := last.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", last.name, err))
		}
	}
	return errors.Join(errs...)
}
