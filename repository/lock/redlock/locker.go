// Package redlock keeps locks on a majority of independent Redis servers. It uses github.com/go-redsync/redsync, an
// implementation of the Redlock algorithm: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
//
// It survives the loss of a minority of its servers. It does not survive a holder that pauses longer than its lease, or
// clocks that jump on a majority of the servers. It has no fencing tokens.
package redlock

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// Config says where the servers are, and tunes the Locker. Zero selects the default of a field that has one.
type Config struct {
	// Addrs are the three to nine servers, independent of each other: no replication between them.
	Addrs    []string
	Username string
	Password string
	DB       int
	TLS      *tls.Config

	// Lease is how long a lock outlives its last renewal. A third of it is the interval of renewals. Default 30 s.
	Lease time.Duration
	// Budget is how long one server may take to answer. All servers are asked at the same time, so a hung server costs
	// at most this, and then nothing for a second. Default 50 ms.
	Budget time.Duration
	// MinValidity is how much of the lease must be left when the lock is granted. A lock with less is released again.
	// Default: half of the lease.
	MinValidity time.Duration
	// Quarantine is how long a server does not count after its start, in whole seconds, because it may have forgotten
	// locks that are still trusted. Default: the lease. Negative: none, for servers that store each write durably
	// before they answer.
	Quarantine time.Duration
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Budget = cmp.Or(c.Budget, 50*time.Millisecond)
	c.MinValidity = cmp.Or(c.MinValidity, c.Lease/2)
	c.Quarantine = cmp.Or(c.Quarantine, c.Lease)
	return c
}

// Locker is a lock.Locker over several Redis servers. One caller of each process contends for a key; the others queue in
// the process, first come, first served. It polls every few dozen milliseconds for the release by another process.
type Locker struct {
	*lockcore.Core
	nodes []*node
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker. It does not connect yet.
func New(c Config) (*Locker, error) {
	if n := len(c.Addrs); n < 3 || n > 9 {
		return nil, fmt.Errorf("redlock: want three to nine servers, got %d", n)
	}
	c = c.withDefaults()
	if c.MinValidity >= c.Lease {
		return nil, errors.New("redlock: the minimal validity must be less than the lease")
	}
	nodes := make([]*node, len(c.Addrs))
	for i, addr := range c.Addrs {
		nodes[i] = newNode(addr, c, nodes)
	}
	core := lockcore.New(newBackend(c, nodes), lockcore.Options{Lease: c.Lease, Timeout: c.Budget, Queue: true})
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

// Break takes the lock named key away from its holder, on a majority of the servers. It is for experiments: clocks that
// jump ahead on these servers have the same effect.
func (l *Locker) Break(ctx context.Context, key string) (err error) {
	for _, n := range l.nodes[:len(l.nodes)/2+1] {
		err = errors.Join(err, n.client.Del(ctx, key).Err())
	}
	return err
}

// Requests returns how many requests the Locker has sent to all servers together.
func (l *Locker) Requests() (sum int64) {
	for _, n := range l.nodes {
		sum += n.requests.Load()
	}
	return sum
}
