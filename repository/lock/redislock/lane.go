package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// lane sends one batch at a time. It keeps a connection, except to a cluster, since it costs a system call to take one
// from the pool: a fifth of a round trip on loopback.
type lane struct {
	client redis.UniversalClient
	conn   *redis.Conn // nil until it is needed
}

// sender is what a connection and a cluster's client have in common.
type sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

func (l *lane) sender() sender {
	single, ok := l.client.(*redis.Client)
	if !ok {
		return l.client
	}
	if l.conn == nil {
		l.conn = single.Conn()
	}
	return l.conn
}

// drop gives the connection back, which is closed if it is broken.
func (l *lane) drop() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// exec sends a batch and hands out its answers. The client's timeouts bound it.
func (l *lane) exec(batch []*request) {
	calls := calls(batch)
	l.judge(l.send(calls))
	for i := range calls {
		calls[i].answer()
	}
}

// send returns the first error; each call keeps its own.
func (l *lane) send(calls []call) error {
	ctx := context.Background()
	if len(calls) == 1 {
		return l.sender().Process(ctx, calls[0].cmd)
	}
	pl := l.sender().Pipeline()
	for _, c := range calls {
		_ = pl.Process(ctx, c.cmd)
	}
	_, err := pl.Exec(ctx)
	return err
}

// judge drops the connection after an error that may be its own: it may be broken, or lead to a server that is no master
// any more.
func (l *lane) judge(err error) {
	if err != nil && !fatal(err) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		l.drop()
	}
}
