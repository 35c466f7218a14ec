package locks

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/zktest"
)

// times are what one peer took, turn by turn.
type times []time.Duration

func (t times) at(percent int) float64 {
	slices.Sort(t)
	return float64(t[(len(t)-1)*percent/100].Nanoseconds()) / 1e3
}

func report(b *testing.B, peers []peer, took []times, percents ...int) {
	b.ReportMetric(0, "ns/op") // of all peers together: means nothing
	for i, p := range peers {
		for _, percent := range percents {
			b.ReportMetric(took[i].at(percent), fmt.Sprintf("%s-p%d-µs", p.name, percent))
		}
	}
}

// pairs has each peer lock and unlock a free lock, turn by turn.
func pairs(b *testing.B, peers []peer) {
	took := make([]times, len(peers))
	for n := 0; b.Loop(); n++ {
		for i, p := range peers {
			start := time.Now()
			unlock, err := p.lock(b.Context(), p.name)
			if err == nil {
				err = unlock()
			}
			if err != nil {
				b.Fatalf("%s: %v", p.name, err)
			}
			if n > 0 { // the first connects, and loads scripts
				took[i] = append(took[i], time.Since(start))
			}
		}
	}
	report(b, peers, took, 50, 90)
}

// manyKeys lets each peer in turn acquire and release from many goroutines, each with its own key, and reports pairs a second.
func manyKeys(b *testing.B, peers []peer) {
	const goroutines, rounds = 128, 20
	took := make([]times, len(peers))
	for n := 0; b.Loop(); n++ {
		for i, p := range peers {
			start := time.Now()
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() {
					for range rounds {
						unlock, err := p.lock(b.Context(), fmt.Sprint(p.name, g))
						if err == nil {
							err = unlock()
						}
						if err != nil {
							b.Errorf("%s: %v", p.name, err)
						}
					}
				})
			}
			all.Wait()
			if n > 0 {
				took[i] = append(took[i], time.Since(start))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, p := range peers {
		b.ReportMetric(goroutines*rounds/(took[i].at(50)/1e6), p.name+"-pairs/s")
	}
}

// handoffs measures from the call that unlocks to the return of the waiter's lock, between two of each kind.
func handoffs(b *testing.B, names []peer, two [][2]peer) {
	took := make([]times, len(two))
	for n := 0; b.Loop(); n++ {
		for i, pair := range two {
			d, err := handoff(b, pair)
			if err != nil {
				b.Fatalf("%s: %v", names[i].name, err)
			}
			if n > 0 {
				took[i] = append(took[i], d)
			}
		}
	}
	report(b, names, took, 50, 90)
}

func handoff(b *testing.B, pair [2]peer) (time.Duration, error) {
	key := "handoff:" + pair[0].name
	unlock, err := pair[0].lock(b.Context(), key)
	if err != nil {
		return 0, err
	}
	type grant struct {
		at     time.Time
		unlock func() error
		err    error
	}
	granted := make(chan grant, 1)
	go func() {
		unlock, err := pair[1].lock(b.Context(), key)
		granted <- grant{time.Now(), unlock, err}
	}()
	time.Sleep(10 * time.Millisecond) // the libraries share no sign that a caller waits
	start := time.Now()
	if err := unlock(); err != nil {
		return 0, err
	}
	g := <-granted
	if g.err != nil {
		return 0, g.err
	}
	return g.at.Sub(start), g.unlock()
}

func twice(b *testing.B, addr string, open ...func(*testing.B, string) peer) (names []peer, two [][2]peer) {
	for _, o := range open {
		pair := [2]peer{o(b, addr), o(b, addr)}
		names, two = append(names, pair[0]), append(two, pair)
	}
	return names, two
}

func BenchmarkRedisPair(b *testing.B) {
	addr := redistest.Start(b).Addr
	pairs(b, []peer{oursOnRedis(b, addr), bsmLock(b, addr), rueidisLock(b, addr)})
}

func BenchmarkRedisCrowd(b *testing.B) {
	addr := redistest.Start(b).Addr
	manyKeys(b, []peer{oursOnRedis(b, addr), bsmLock(b, addr), rueidisLock(b, addr)})
}

func BenchmarkRedisHandoff(b *testing.B) {
	names, two := twice(b, redistest.Start(b).Addr, oursOnRedis, rueidisLock, redsyncLock)
	handoffs(b, names, two)
}

func BenchmarkZooKeeperPair(b *testing.B) {
	addr := zktest.Start(b).Addr
	pairs(b, []peer{oursOnZooKeeper(b, addr), zkRecipe(b, addr)})
}

func BenchmarkZooKeeperHandoff(b *testing.B) {
	names, two := twice(b, zktest.Start(b).Addr, oursOnZooKeeper, zkRecipe)
	handoffs(b, names, two)
}
