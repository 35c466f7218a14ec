// Package zklock keeps locks in ZooKeeper: ephemeral sequential nodes below a node for each lock. The first is the
// holder's, and each waiter watches the one before its own, so that a release wakes one waiter.
// https://zoolockcore.apache.org/doc/current/recipes.html#sc_recipes_Locks
//
// A lock lasts as long as the session, which all locks of a Locker share. Its fencing token is the transaction number of
// the node's creation (czxid), which rises over everything that the ensemble does.
//
// It needs ZooKeeper 3.5.3 or later, for its container nodes.
package zklock

import (
	"errors"
	"strings"
	"time"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// Config says where ZooKeeper is, and tunes the Locker. The zero value of each field that has a default stands for it.
type Config struct {
	Addrs []string
	// Root is the node below which the locks are. Default "/seckill/locks".
	Root string
	// Session is the session's timeout: how long a lock outlives a holder that is gone, and the most that an explicit
	// lease can last. The servers have to allow it, see their minSessionTimeout and maxSessionTimeout. Default 10 s.
	Session time.Duration
	// Poll is how often a waiter looks, should no watch wake it. Default: half of the session's timeout.
	Poll time.Duration
	// Timeout bounds the answer of ZooKeeper to one question, repeated attempts included. Default 1 s.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	orElse := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	orElse(&c.Session, 10*time.Second)
	orElse(&c.Poll, c.Session/2)
	orElse(&c.Timeout, time.Second)
	if c.Root == "" {
		c.Root = "/seckill/locks"
	}
	return c
}

// Locker is a lock.Locker over ZooKeeper. Waiters of all processes get in first come, first served.
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
		return nil, errors.New("zklock: the root must be an absolute path without a slash at its end")
	}
	s, err := connect(c)
	if err != nil {
		return nil, err
	}
	b := &backend{config: c, session: s}
	core := lockcore.New(b, lockcore.Options{Lease: c.Session, Timeout: c.Timeout})
	return &Locker{Core: core, session: s, root: c.Root}, nil
}

// Close implements lock.Locker. It ends the session, and with it whatever was not freed before.
func (l *Locker) Close() error {
	err := l.Core.Close()
	l.session.close()
	return err
}
