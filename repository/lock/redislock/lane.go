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
	calls := group(batch)
	l.send(calls)
	for i := range calls {
		l.judge(calls[i].handOut())
	}
}

// send leaves its answer, or its error, with each call.
func (l *lane) send(calls []call) {
	ctx := context.Background()
	if len(calls) == 1 {
		_ = l.sender().Process(ctx, calls[0].cmd)
		return
	}
	pl := l.sender().Pipeline()
	for _, c := range calls {
		_ = pl.Process(ctx, c.cmd)
	}
	_, _ = pl.Exec(ctx)
}

// judge drops the connection after an error that may be its own: it may be broken, or lead to a server that is no master
// any more.
func (l *lane) judge(err error) {
	if err != nil && !fatal(err) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		l.drop()
	}
}
