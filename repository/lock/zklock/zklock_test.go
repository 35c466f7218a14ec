package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"seckill/repository/lock/zklock"
	"seckill/repository/repotest/faultproxy"
	"seckill/repository/repotest/wait"
	"seckill/repository/repotest/zktest"
	"seckill/service/lock"
	"seckill/service/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testSession = 1200 * time.Millisecond
	key         = "lock:voucher:1:user:2"
	parent      = "/seckill/locks/" + key
)

func newLocker(t testing.TB, addr string, change func(*zklock.Config)) *zklock.Locker {
	t.Helper()
	c := zklock.Config{Addrs: []string{addr}, Session: testSession}
	if change != nil {
		change(&c)
	}
	l, err := zklock.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestLocker_Suite(t *testing.T) {
	server := zktest.Start(t)
	look := server.Client()
	locktest.Run(t, locktest.Backend{
		New:   func(t *testing.T) lock.Locker { return newLocker(t, server.Addr, nil) },
		Lease: testSession,
		Left: func(t *testing.T, key string) []string {
			children, _, err := look.Children("/seckill/locks/" + key)
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			return append(children, "the node itself")
		},
		Wipe:             func(t *testing.T, key string) { wipe(t, look, "/seckill/locks/"+key) },
		Tokens:           true,
		HonoursWithLease: true,
		FairToWaiters:    true,
		FairToEveryone:   true,
	})
}

// wipe deletes the first node, which is the holder's.
func wipe(t *testing.T, look *zk.Conn, parent string) {
	t.Helper()
	children, _, err := look.Children(parent)
	if err != nil || len(children) != 1 {
		t.Fatalf("children %v, %v", children, err)
	}
	if err := look.Delete(parent+"/"+children[0], -1); err != nil {
		t.Fatal(err)
	}
}

// rig is a server, a proxy before it, a Locker that goes through the proxy, and another that does not.
type rig struct {
	server *zktest.Server
	proxy  *faultproxy.Proxy
	locker *zklock.Locker
	other  *zklock.Locker
	look   *zk.Conn
}

func newRig(t *testing.T, change func(*zklock.Config)) *rig {
	t.Helper()
	r := &rig{server: zktest.Start(t)}
	r.proxy = faultproxy.New(t, r.server.Addr)
	r.locker = newLocker(t, r.proxy.Addr(), change)
	r.other = newLocker(t, r.server.Addr, change)
	r.look = r.server.Client()
	wait.Until(t, "there is a session", func() bool {
		return lock.Do(t.Context(), r.locker, "warm", func(context.Context) error { return nil }) == nil
	})
	return r
}

func long(c *zklock.Config) { c.Session = 20 * time.Second }

func acquire(t *testing.T, l lock.Locker, opts ...lock.Option) lock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) nodes(t *testing.T) []string {
	t.Helper()
	children, _, err := r.look.Children(parent)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return children
}

func (r *rig) count(t *testing.T) int { return len(r.nodes(t)) }

func awaitLoss(t *testing.T, lease lock.Lease) {
	t.Helper()
	select {
	case <-lease.Context().Done():
	case <-time.After(15 * time.Second):
		t.Fatal("the loss was not told")
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Fatalf("ended with %v, want ErrLost", cause)
	}
}
