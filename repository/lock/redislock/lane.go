package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// lane sends one command or pipeline at a time. It keeps a connection, except to a cluster, since it costs a system call
// to take one from the pool: a fifth of a round trip on loopback.
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

func (l *lane) process(ctx context.Context, cmd *redis.Cmd) error {
	err := l.sender().Process(ctx, cmd)
	l.judge(err)
	return err
}

func (l *lane) exec(batch []*request) {
	ctx := context.Background() // the client's timeouts bound it
	pl := l.sender().Pipeline()
	for _, r := range batch {
		_ = pl.Process(ctx, r.cmd)
	}
	_, err := pl.Exec(ctx) // the first error; each cmd keeps its own
	l.judge(err)
	for _, r := range batch {
		close(r.done)
	}
}

// judge drops the connection after an error that may be its own: it may be broken, or lead to a server that is no master
// any more.
func (l *lane) judge(err error) {
	if err != nil && !fatal(err) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		l.drop()
	}
}
