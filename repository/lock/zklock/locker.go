// Package zklock keeps locks in ZooKeeper: ephemeral sequential nodes below one node for each lock. The first node is the
// holder's. Each waiter watches the node before its own, so a release wakes one waiter.
// https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks
//
// A lock lasts as long as the session, which all locks of a Locker share. Its fencing token is the transaction id of
// the node's creation (czxid), which rises with every change in the ensemble.
//
// It needs ZooKeeper 3.5.3 or later, for its container nodes.
package zklock

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// Config says where ZooKeeper is, and tunes the Locker. Zero selects the default of a field.
type Config struct {
	Addrs []string
	// Root is the node above all locks. Default "/seckill/locks".
	Root string
	// Session is the session's timeout: how long a lock outlives a holder that is gone, and the longest explicit
	// lease. The servers must allow it, see their minSessionTimeout and maxSessionTimeout. Default 10 s.
	Session time.Duration
	// Poll is how often a waiter checks the lock, in case a watch was lost. Default: half of Session.
	Poll time.Duration
	// Timeout bounds one answer of ZooKeeper, including repeated attempts. Default 1 s.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Session = cmp.Or(c.Session, 10*time.Second)
	c.Poll = cmp.Or(c.Poll, c.Session/2)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	c.Root = cmp.Or(c.Root, "/seckill/locks")
	return c
}

// Locker is a lock.Locker over ZooKeeper. The waiters of all processes share one fair queue.
type Locker struct {
	*lockcore.Core
	session *session
	root    string
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker with a session of its own. It does not wait for the connection.
func New(c Config) (*Locker, error) {
	if len(c.Addrs) == 0 {
		return nil, errors.New("zklock: no address given")
	}
	c = c.withDefaults()
	if !strings.HasPrefix(c.Root, "/") || strings.HasSuffix(c.Root, "/") {
		return nil, errors.New("zklock: the root must be an absolute path that does not end with a slash")
	}
	s, err := connect(c)
	if err != nil {
		return nil, err
	}
	core := lockcore.New(&backend{config: c, session: s}, lockcore.Options{Lease: c.Session, Timeout: c.Timeout})
	return &Locker{Core: core, session: s, root: c.Root}, nil
}

// Close implements lock.Locker. It ends the session, and with it all locks that are left.
func (l *Locker) Close() error {
	err := l.Core.Close()
	l.session.close()
	return err
}

// Break takes the lock named key away from its holder by deleting the first node. It is for an operator who knows that the
// holder is gone, and for experiments with a holder that is not.
func (l *Locker) Break(ctx context.Context, key string) (err error) {
	n := newNode(l.session, l.root, key)
	deadline := time.Now().Add(l.session.removal)
	n.name, err = n.first(ctx, deadline)
	if err != nil || n.name == "" {
		return err
	}
	err = n.remove()
	if errors.Is(err, lock.ErrLost) {
		return nil
	}
	return err
}

// Requests returns how many requests the Locker has sent.
func (l *Locker) Requests() int64 { return l.session.requests.Load() }
