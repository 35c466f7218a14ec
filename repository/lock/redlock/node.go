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

// node is one of the servers, as a redsync pool.
type node struct {
	redsync.Pool
	client   *redis.Client
	cooldown cooldown
	requests atomic.Int64 // number of requests sent
}

// cooldown keeps requests away from a node for a moment after it failed to answer in time. Only a minority of the nodes may
// be in cooldown: when more do not answer, the fault may well be on this side.
type cooldown struct {
	nodes []*node      // all nodes, this one included
	until atomic.Int64 // Unix time in ns
}

const cooldownTime = time.Second

func (c *cooldown) active() bool { return time.Now().UnixNano() < c.until.Load() }

func (c *cooldown) start() {
	active := 0
	for _, n := range c.nodes {
		if n.cooldown.active() {
			active++
		}
	}
	if active < (len(c.nodes)-1)/2 {
		c.until.Store(time.Now().Add(cooldownTime).UnixNano())
	}
}

var errCooldown = errors.New("redlock: the server did not answer a moment ago")

func newNode(addr string, c Config, nodes []*node) *node {
	client := redis.NewClient(&redis.Options{
		Addr:     addr,
		Username: c.Username, Password: c.Password,
		DB:         c.DB,
		TLSConfig:  c.TLS,
		ClientName: "seckill-redlock",

		// Redsync's contexts bound each command; these timeouts bound the rest. A command is never sent again: the
		// majority makes up for a lost one.
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
	n := &node{Pool: goredis.NewPool(client), client: client, cooldown: cooldown{nodes: nodes}}
	client.AddHook(n)
	return n
}

// Get implements redsync's Pool.
func (n *node) Get(ctx context.Context) (redsync.Conn, error) {
	if n.cooldown.active() {
		return nil, errCooldown
	}
	return n.Pool.Get(ctx)
}

// DialHook implements redis.Hook.
func (n *node) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (n *node) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook. It counts commands, and starts the cooldown when one is not answered in time.
func (n *node) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n.requests.Add(1)
		err := next(ctx, cmd)
		if late, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); ok && late.Timeout() {
			n.cooldown.start()
		}
		return err
	}
}

// quarantine returns a hook that refuses connections to a server that started less than d ago. Every connection ends at
// a restart, so none is missed. This is the delayed restart of the Redlock algorithm, without relying on the person who
// restarts a server.
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
		seconds, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("redlock: the server does not report its uptime: %w", err)
		}
		if up := time.Duration(seconds) * time.Second; up < d {
			return fmt.Errorf("redlock: the server started %v ago, and counts only after %v", up, d)
		}
		return nil
	}
}
