package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	redsync "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// node is one of the servers, as redsync sees it.
type node struct {
	addr   string
	client *redis.Client
	pool   redsync.Pool
	ward   *ward
	sent   atomic.Int64 // requests
	rest   atomic.Int64 // Unix ns: until then the node is left alone, since it did not answer in time
}

// ward is where nodes rest. There is room for a minority: if more don't answer, the fault may well be ours.
type ward struct{ nodes []*node }

func (w *ward) resting(now int64) int {
	n := 0
	for _, each := range w.nodes {
		if now < each.rest.Load() {
			n++
		}
	}
	return n
}

// resting is how long a node is left alone after it has hung.
const resting = time.Second

var errResting = errors.New("redlock: the server did not answer a moment ago")

func newNode(addr string, c Config, w *ward) *node {
	n := &node{addr: addr, ward: w}
	n.client = redis.NewClient(&redis.Options{
		Addr:     addr,
		Username: c.Username, Password: c.Password,
		DB:         c.DB,
		TLSConfig:  c.TLS,
		ClientName: "seckill-redlock",

		// The contexts of redsync bound each command; these bound what is done without one. A command is never sent
		// again: the majority makes up for a lost one.
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           c.Budget,
		ReadTimeout:           c.Budget,
		WriteTimeout:          c.Budget,
		PoolTimeout:           c.Budget,
		ContextTimeoutEnabled: true,

		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		OnConnect:                quarantine(c.Quarantine),
	})
	n.client.AddHook(n)
	n.pool = goredis.NewPool(n.client)
	return n
}

// Get implements redsync's Pool.
func (n *node) Get(ctx context.Context) (redsync.Conn, error) {
	if time.Now().UnixNano() < n.rest.Load() {
		return nil, errResting
	}
	return n.pool.Get(ctx)
}

// DialHook implements redis.Hook.
func (n *node) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (n *node) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook: it counts, and takes notice of a command that was not answered in time.
func (n *node) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n.sent.Add(1)
		err := next(ctx, cmd)
		var late interface{ Timeout() bool }
		if errors.As(err, &late) && late.Timeout() {
			if now := time.Now(); n.ward.resting(now.UnixNano()) < (len(n.ward.nodes)-1)/2 {
				n.rest.Store(now.Add(resting).UnixNano())
			}
		}
		return err
	}
}

// quarantine refuses connections to a server that started less than d ago. A restart ends all connections, so that it
// is noticed. The delayed restart is part of the algorithm; here it does not depend on whoever restarts a server.
func quarantine(d time.Duration) func(context.Context, *redis.Conn) error {
	if d < 0 {
		return nil
	}
	return func(ctx context.Context, conn *redis.Conn) error {
		info, err := conn.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		_, after, _ := strings.Cut(info, "uptime_in_seconds:")
		text, _, _ := strings.Cut(after, "\r")
		up, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("redlock: the server does not say when it started: %w", err)
		}
		if up := time.Duration(up) * time.Second; up < d {
			return fmt.Errorf("redlock: the server started %v ago, and is counted after %v", up, d)
		}
		return nil
	}
}
