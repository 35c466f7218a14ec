package zklock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/repository/repotest/wait"
	"seckill/repository/repotest/zktest"
	"seckill/service/lock"
)

// deletions returns how many watches the server has fired for deleted nodes.
func deletions(t *testing.T, server *zktest.Server) int {
	t.Helper()
	for line := range strings.Lines(server.Ask("mntr")) {
		if rest, ok := strings.CutPrefix(line, "zk_sum_node_deleted_watch_count"); ok {
			n := 0
			fmt.Sscan(rest, &n)
			return n
		}
	}
	t.Fatal("the server does not count watches")
	return 0
}

// awaitWatches waits until the server has n watches: that many waiters wait for their turn.
func awaitWatches(t testing.TB, server *zktest.Server, n int) {
	t.Helper()
	total := fmt.Sprintf("Total watches:%d", n)
	wait.Until(t, total, func() bool { return strings.HasSuffix(server.Ask("wchs"), total) })
}

const crowd = 30

// TestRelease_WakesOneWaiter counts at the server.
func TestRelease_WakesOneWaiter(t *testing.T) {
	r := newRig(t, long)
	lease := acquire(t, r.other)
	inside, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error, crowd)
	for range crowd {
		go func() {
			done <- lock.Do(t.Context(), r.locker, key, func(context.Context) error {
				inside <- struct{}{}
				<-goOn
				return nil
			})
		}()
	}
	awaitWatches(t, r.server, crowd)
	before := deletions(t, r.server)
	release(t, lease)
	<-inside
	if n := deletions(t, r.server) - before; n != 1 {
		t.Errorf("one release fired %d watches, want 1", n)
	}
	close(goOn)
	for range crowd - 1 {
		<-inside
	}
	for range crowd {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestRelease_NaiveLockWakesEveryone is a negative control: a lock whose waiters all watch the holder.
func TestRelease_NaiveLockWakesEveryone(t *testing.T) {
	server := zktest.Start(t)
	look := server.Client()
	world := zk.WorldACL(zk.PermAll)
	if _, err := look.Create("/naive", nil, 0, world); err != nil {
		t.Fatal(err)
	}
	holder, err := look.Create("/naive/n-", nil, zk.FlagEphemeralSequential, world)
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan string, crowd)
	for range crowd {
		conn := server.Client() // the server counts a node that a session watches twice once
		go func() { first <- naive(t, conn) }()
	}
	awaitWatches(t, server, crowd)
	before := deletions(t, server)
	if err := look.Delete(holder, -1); err != nil {
		t.Fatal(err)
	}
	next := <-first
	if n := deletions(t, server) - before; n != crowd {
		t.Errorf("one release fired %d watches; the control should fire %d", n, crowd)
	}
	for range crowd - 1 {
		if err := look.Delete(next, -1); err != nil {
			t.Fatal(err)
		}
		next = <-first
	}
}

// naive returns when its node is the first. It watches the first.
func naive(t *testing.T, conn *zk.Conn) string {
	own, err := conn.Create("/naive/n-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	for err == nil {
		var children []string
		if children, _, err = conn.Children("/naive"); err != nil {
			break
		}
		slices.Sort(children)
		if "/naive/"+children[0] == own {
			return own
		}
		_, _, gone, watched := conn.GetW("/naive/" + children[0])
		if watched == nil {
			<-gone
		}
	}
	t.Error(err)
	return own
}

// BenchmarkPair acquires and releases an uncontended lock.
func BenchmarkPair(b *testing.B) {
	l := newLocker(b, zktest.Start(b).Addr, long)
	for b.Loop() {
		if err := lock.Do(b.Context(), l, key, func(context.Context) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandoff measures from the call of Release to the return of a waiter's Acquire, in another session.
func BenchmarkHandoff(b *testing.B) {
	server := zktest.Start(b)
	lockers := []lock.Locker{newLocker(b, server.Addr, long), newLocker(b, server.Addr, long)}
	lease, err := lockers[0].Acquire(b.Context(), key, lock.WithTimeout(10*time.Second))
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 1; b.Loop(); i++ {
		next := make(chan lock.Lease)
		go func() {
			lease, err := lockers[i%2].Acquire(context.Background(), key)
			if err != nil {
				b.Error(err)
			}
			next <- lease
		}()
		awaitWatches(b, server, 1)
		start := time.Now()
		if err := lease.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
		lease = <-next
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "p90-µs")
	if err := lease.Release(b.Context()); err != nil {
		b.Fatal(err)
	}
}
