package board

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// busyShop reports answers for a while.
func busyShop(b *Board, d time.Duration) {
	outcomes := []string{"placed", "sold-out", "in-progress", "replayed", "outcome-unknown"}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) {
		metricsOf(b).answered(outcomes[rand.IntN(len(outcomes))], time.Duration(rand.IntN(1e8)))
		metricsOf(b).set("seckill_commit_waiting_orders", float64(rand.IntN(100)))
	}
}

func figureOf(b *Board, name string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.figures[name]
}

// mustKnow fails unless what a viewer knows is what the board says.
func mustKnow(t *testing.T, b *Board, got seen) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, value := range b.figures {
		if got.Figures[name] != value {
			t.Errorf("%s: a viewer has %d, the board %d", name, got.Figures[name], value)
		}
	}
	if last := len(got.Events) - 1; last < 0 || got.Events[last].N != b.lastEvent {
		t.Errorf("the last event is not %d: %v", b.lastEvent, got.Events)
	}
	for i := 1; i < len(got.Events); i++ {
		if got.Events[i].N != got.Events[i-1].N+1 {
			t.Errorf("events %d and %d follow each other", got.Events[i-1].N, got.Events[i].N)
		}
	}
}

// A viewer who reads nothing and one who reads too slowly are disconnected. All others see everything meanwhile.
func TestStream_SlowViewersAreDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, func(c *Config) { c.WriteTimeout = 20 * time.Second })
		run(t, b)
		began := time.Now()
		stuck, slow := watch(t, b, time.Hour, ""), watch(t, b, 6*time.Second, "")
		viewers := []*watcher{watch(t, b, 0, ""), watch(t, b, 0, ""), watch(t, b, 40*time.Millisecond, "")}
		busyShop(b, 3*time.Second)
		viewers = append(viewers, watch(t, b, 0, ""))
		go busyShop(b, 30*time.Second)
		// The slow one has taken the snapshot when it is too far behind; the other one's time is over a little later.
		for _, w := range []*watcher{slow, stuck} {
			if err := <-w.done; err != nil {
				t.Errorf("%v, after the stream had begun", err)
			}
			if passed := time.Since(began); passed > 20*time.Second {
				t.Errorf("it was cut off after %s only", passed)
			}
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for i, w := range viewers {
			got := w.read(t, seen{})
			if mustKnow(t, b, got); got.Snapshots != 1 || got.Changes < 120 {
				t.Errorf("viewer %d got %d snapshots and %d changes", i, got.Snapshots, got.Changes)
			}
		}
		if n := int(figureOf(b, "viewers")); n != len(viewers) {
			t.Errorf("%d viewers are counted, there are %d", n, len(viewers))
		}
	})
}

func TestStream_Resumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, nil)
		run(t, b)
		first := watch(t, b, 0, "")
		busyShop(b, 2*time.Second)
		first.leave()
		<-first.done
		known := first.read(t, seen{})
		other := watch(t, b, 0, "") // so that the board goes on at full pace
		busyShop(b, 3*time.Second)
		back := watch(t, b, 0, known.ID)
		busyShop(b, time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got := back.read(t, known)
		if mustKnow(t, b, got); got.Snapshots != 1 {
			t.Errorf("it got %d snapshots, though it had missed little", got.Snapshots)
		}
		other.leave()

		// Whoever has missed too much, or was somewhere else, begins anew.
		busyShop(b, 60*time.Second)
		far := fmt.Sprintf("%s-%d", b.hub.run, 1<<40)
		for _, id := range []string{known.ID, far, "OTHERRUN-7", b.hub.run + "-", b.hub.run + "--1", b.hub.run + "-x", b.hub.run, "999999999999999999999"} {
			w := watch(t, b, 0, id)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			got := w.read(t, known)
			if mustKnow(t, b, got); got.Snapshots != 2 {
				t.Errorf("back with %q: %d snapshots", id, got.Snapshots)
			}
			w.leave()
			<-w.done
		}
	})
}

func TestStream_MaxViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, func(c *Config) { c.MaxViewers = 2 })
		run(t, b)
		one, two := watch(t, b, 0, ""), watch(t, b, 0, "")
		synctest.Wait()
		if err := <-watch(t, b, 0, "").done; !errors.Is(err, ErrFull) {
			t.Errorf("a third viewer: %v", err)
		}
		one.leave()
		if err := <-one.done; err != nil {
			t.Error(err)
		}
		three := watch(t, b, 0, "")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, w := range []*watcher{two, three} {
			mustKnow(t, b, w.read(t, seen{}))
		}
	})
}

// At shutdown viewers get the last that happened, and their streams end: at once, or, of one who does not read, when its
// time is over.
func TestClose_EndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, func(c *Config) { c.WriteTimeout = 3 * time.Second })
		stop := run(t, b)
		viewers := []*watcher{watch(t, b, 0, ""), watch(t, b, 0, "")}
		stuck := watch(t, b, time.Hour, "")
		busyShop(b, time.Second)
		began := time.Now()
		b.Drain()
		metricsOf(b).answered("placed", time.Millisecond)
		b.Close()
		for _, w := range viewers {
			if err := <-w.done; err != nil || time.Since(began) > 0 {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			got := w.read(t, seen{})
			if mustKnow(t, b, got); got.kinds()[len(got.Events)-1] != Draining || got.Figures["placed"] != figureOf(b, "placed") {
				t.Errorf("the last that happened is missing: %+v", got)
			}
		}
		<-stuck.done
		if passed := time.Since(began); passed > 3*time.Second {
			t.Errorf("the one who does not read was waited for for %s", passed)
		}
		if err := <-watch(t, b, 0, "").done; !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
		b.Close() // a second call does nothing
		stop()
		b.Mark("the board can be asked after its end too")
		if document := b.Snapshot(); len(document) == 0 {
			t.Error("no snapshot")
		}
	})
}

// Percentiles are over the last two seconds, at either pace.
func TestPercentile_LastTwoSeconds(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "nobody": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard(&fakeShop{}, nil)
				run(t, b)
				if watched {
					watch(t, b, 0, "")
				}
				p50Now := func() int64 { return figureOf(b, "p50") }
				time.Sleep(time.Minute + 10*time.Millisecond)
				for range 3 {
					metricsOf(b).answered("placed", 100*time.Millisecond)
					time.Sleep(1500 * time.Millisecond)
					if got := p50Now(); got < 100_000 || got > 112_500 {
						t.Errorf("after 1.5 s: %d", got)
					}
					time.Sleep(1200 * time.Millisecond)
					if got := p50Now(); got != -1 {
						t.Errorf("after 2.7 s: %d", got)
					}
					time.Sleep(3 * time.Second)
				}
			})
		})
	}
}

// An event between two updates is sent once: not in the snapshot and again in the next frame.
func TestStream_EventsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, nil) // is not run: looks are when the test says
		b.Mark("in no frame yet")
		w := watch(t, b, 0, "")
		synctest.Wait()
		b.update()
		synctest.Wait()
		mustKnow(t, b, w.read(t, seen{}))
	})
}

func TestClose_WithoutChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, nil)
		run(t, b)
		w := watch(t, b, 0, "")
		time.Sleep(time.Second)
		b.update()
		synctest.Wait() // it waits for the next frame
		b.Close()
		synctest.Wait()
		select {
		case <-w.done:
		default:
			t.Error("the stream goes on")
		}
	})
}

// However fast frames come, no viewer starts so far behind that it is disconnected at once.
func TestStream_FastUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, func(c *Config) { c.Every = time.Millisecond })
		run(t, b)
		go busyShop(b, 2*time.Second)
		var viewers []*watcher
		for range 10 {
			viewers = append(viewers, watch(t, b, 0, ""))
			for range 130 {
				metricsOf(b).answered("placed", time.Millisecond)
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for _, w := range viewers {
			mustKnow(t, b, w.read(t, seen{}))
		}
	})
}

// A quiet board sends one frame a second. Without viewers it measures and polls the database less often.
func TestBoard_Pace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := &fakeShop{}
		var looks atomic.Int64
		b := newBoard(shop, func(c *Config) {
			metrics := newMetrics()
			c.Metrics = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { looks.Add(1); return metrics.Gather() })
		})
		run(t, b)
		time.Sleep(time.Minute)
		var unwatched, watched int
		if synctest.Wait(); looks.Load() > 125 {
			t.Errorf("%d looks in a minute in which nobody watched", looks.Load())
		}
		looks.Store(0)
		shop.change(func() { unwatched, shop.reads = shop.reads, 0 })
		w := watch(t, b, 0, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		shop.change(func() { watched = shop.reads })
		if looks := looks.Load(); looks < 230 || looks > 250 {
			t.Errorf("%d looks in a minute", looks)
		}
		if got := w.read(t, seen{}); got.Changes < 58 || got.Changes > 65 {
			t.Errorf("%d changes in a quiet minute", got.Changes)
		}
		if unwatched > 100 || watched < 250 || watched > 300 {
			t.Errorf("the database was asked %d times without, and %d times with a viewer", unwatched, watched)
		}
	})
}
