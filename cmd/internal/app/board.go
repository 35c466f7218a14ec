package app

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"seckill/handler/board"
	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
	"seckill/service/outbox"
)

// Board says who may watch the live board.
type Board struct {
	Board        string `enum:"auto,public,admin,off" default:"auto" help:"Who may watch the live board at /board: ${enum}. auto: the public in embedded mode, else admins."`
	BoardViewers int    `default:"500" help:"Most who may watch it at the same time."`
}

// adminOnly tells whether the board is for admins.
func (o *Options) boardAdminOnly() bool {
	return o.Board.Board == "admin" || o.Board.Board == "auto" && !o.Servers.Embedded()
}

func (o *Options) validateBoard() error {
	if o.Board.BoardViewers < 1 {
		return errors.New("--board-viewers must be at least 1; to have no board, say --board=off")
	}
	return nil
}

// startBoard runs the board, unless there is to be none.
func (a *App) startBoard(opts *Options, b backends, ids idgen.Generator, m *metrics) {
	if opts.Board.Board == "off" {
		return
	}
	a.board = board.New(board.Config{
		Meter: m.meter, Instance: addressedName(a.listener.Addr()), Log: a.log,
		Vouchers: repository.NewVouchers(b.db), Outbox: repository.NewOutbox(b.db), Registry: repository.NewInstances(b.db),
		IDs: idsState(ids), MaxViewers: opts.Board.BoardViewers,
	})
	a.stack.run("board", a.board.Run)
}

// addressedName tells the instances of a shop apart: on several machines, and on one. It stays over a restart.
func addressedName(addr net.Addr) string {
	host, _ := os.Hostname()
	_, port, _ := net.SplitHostPort(addr.String())
	return net.JoinHostPort(host, port)
}

func idsState(ids idgen.Generator) func() board.IDsState {
	switch ids := ids.(type) {
	case *idgen.Snowflake:
		return func() board.IDsState {
			s := ids.Stats()
			return board.IDsState{Worker: s.Worker, Ahead: s.Ahead, LeaseLeft: s.LeaseLeft, Left: -1}
		}
	case *idgen.Segment:
		return func() board.IDsState { return board.IDsState{Worker: -1, Left: ids.Stats().Remaining} }
	}
	return nil
}

// connectBoard lets the board know connections, and ends its streams when the server shuts down, which waits for them.
func (a *App) connectBoard(server *http.Server) {
	if a.board != nil {
		server.ConnContext = board.WithConnection
		server.RegisterOnShutdown(a.board.Close)
	}
}

// drainBoard tells viewers that the instance is about to go.
func (a *App) drainBoard() {
	if a.board != nil {
		a.board.Drain()
	}
}

// orderWatch tells metrics and board what becomes of orders.
type orderWatch struct {
	orderMetrics
	board service.Observer
}

func (w orderWatch) Answered(code service.Code, took time.Duration) {
	w.orderMetrics.Answered(code, took)
	w.board.Answered(code, took)
}

func (w orderWatch) Committed(orders int, took time.Duration) {
	w.orderMetrics.Committed(orders, took)
	w.board.Committed(orders, took)
}

func (w orderWatch) Waiting(orders int) {
	w.orderMetrics.Waiting(orders)
	w.board.Waiting(orders)
}

func (w orderWatch) Expired(orders int) {
	w.orderMetrics.Expired(orders)
	w.board.Expired(orders)
}

// lockWatch does so of locks.
type lockWatch struct {
	*metrics
	log *slog.Logger
}

func (w lockWatch) Locked(outcome lock.Outcome, took time.Duration) {
	w.locked(outcome, took)
	w.meter.Locked(outcome, took)
}

func (w lockWatch) BreakerChanged(open bool, cause error) {
	breakerChanged(w.metrics, w.log, open, cause)
}

// relayWatch does so of events on their way. What only metrics want to know comes from the embedded type.
type relayWatch struct {
	outboxMetrics
	board outbox.Observer
}

func (w relayWatch) Published(o outbox.Outcome, took time.Duration) {
	w.outboxMetrics.Published(o, took)
	w.board.Published(o, took)
}

func (w relayWatch) GaveUp(e outbox.Event, err error) {
	w.outboxMetrics.GaveUp(e, err)
	w.board.GaveUp(e, err)
}

func (w relayWatch) Paused(d time.Duration) {
	w.outboxMetrics.Paused(d)
	w.board.Paused(d)
}
