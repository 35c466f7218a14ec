// Package redlock keeps locks on a majority of independent Redis servers, by the algorithm that Redis calls Redlock, as
// github.com/go-redsync/redsync implements it: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
//
// It survives the loss of a minority of its servers. It does not survive what breaks its assumptions about time: a
// holder that is paused past its lease, or clocks that jump on a majority. It has no fencing tokens.
package redlock

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// Config says where the servers are, and tunes the Locker. The zero value of each field that has a default stands for it.
type Config struct {
	// Addrs are the three to nine servers, independent of each other: no replication between them.
	Addrs    []string
	Username string
	Password string
	DB       int
	TLS      *tls.Config

	// Lease is how long a lock outlives its last renewal. It is renewed at a third of that. Default 30 s.
	Lease time.Duration
	// Budget is how long one server may take to answer. The servers are asked at the same time, so a server that hangs
	// costs this much at most, and then nothing for a while. Default 50 ms.
	Budget time.Duration
	// MinValidity is how much of the lease must be left when the lock is granted; a lock with less is given back.
	// Default: half of the lease.
	MinValidity time.Duration
	// Quarantine is how long a server is not counted after its start, in whole seconds, because it may have forgotten
	// locks that are still trusted. Default: the lease. Negative: none, for servers that store each write before they
	// answer.
	Quarantine time.Duration
}

func (c Config) withDefaults() Config {
	orElse := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	orElse(&c.Lease, 30*time.Second)
	orElse(&c.Budget, 50*time.Millisecond)
	orElse(&c.MinValidity, c.Lease/2)
	orElse(&c.Quarantine, c.Lease)
	return c
}

// Locker is a lock.Locker over several Redis servers. Of each process, one goroutine at a time contends for a key; the
// others queue, first come, first served. It finds out by asking, every few dozen milliseconds, that another process
// has released a lock.
type Locker struct {
	*lockcore.Core
	nodes []*node
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker. It does not connect yet.
func New(c Config) (*Locker, error) {
	if n := len(c.Addrs); n < 3 || n > 9 {
		return nil, fmt.Errorf("redlock: %d servers given, three to nine are needed", n)
	}
	c = c.withDefaults()
	if c.MinValidity >= c.Lease {
		return nil, errors.New("redlock: the minimal validity is not below the lease")
	}
	nodes := make([]*node, len(c.Addrs))
	shared := &ward{nodes}
	for i, addr := range c.Addrs {
		nodes[i] = newNode(addr, c, shared)
	}
	b := newBackend(c, nodes)
	core := lockcore.New(b, lockcore.Options{Lease: c.Lease, Timeout: c.Budget, Queue: true})
	return &Locker{Core: core, nodes: nodes}, nil
}

// Close implements lock.Locker. It also closes the connections.
func (l *Locker) Close() error {
	err := l.Core.Close()
	for _, n := range l.nodes {
		if closed := n.client.Close(); !errors.Is(closed, redis.ErrClosed) {
			err = errors.Join(err, closed)
		}
	}
	return err
}
