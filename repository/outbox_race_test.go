package repository

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service/outbox"
)

// A later id is committed first. The claim must not skip the earlier one afterwards.
func TestOutbox_ClaimIDsCommittedOutOfOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		slow := db.session(t.Context()).Begin()
		defer slow.Rollback()
		if err := appendNow(db, slow, testEvents(1)); err != nil {
			t.Fatal(err)
		}
		appendTest(t, db, 2)
		if b := claim(t, o, outbox.Claim{Limit: 10}); !slices.Equal(eventIDs(b), []int64{2}) {
			t.Fatalf("claimed %v, want 2 while 1 is not committed", eventIDs(b))
		}
		if err := slow.Commit().Error; err != nil {
			t.Fatal(err)
		}
		if b := claim(t, o, outbox.Claim{Limit: 10}); !slices.Equal(eventIDs(b), []int64{1}) {
			t.Errorf("claimed %v, want 1", eventIDs(b))
		}
	})
}

// The time zone of the session does not matter.
func TestOutbox_ClaimInOtherTimeZone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, 1, 2)
		db.sql.SetMaxOpenConns(1) // so that the setting holds for what follows
		for _, zone := range []string{"-11:00", "+13:00"} {
			if err := db.session(t.Context()).Exec("SET time_zone = ?", zone).Error; err != nil {
				t.Fatal(err)
			}
			if b := claim(t, o, outbox.Claim{Limit: 1}); len(b.Events) != 1 {
				t.Errorf("in %s nothing was due", zone)
			}
		}
		if b := claim(t, o, outbox.Claim{Limit: 1}); len(b.Events) != 0 {
			t.Errorf("claimed %v again, which others hold", eventIDs(b))
		}
	})
}

func TestOutbox_ConcurrentClaimsAreDisjoint(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, _ := openOutbox(t, target)
		const events, relays = 4000, 4
		appendTest(t, db, sequence(1, events)...)
		var mu sync.Mutex
		owner := map[int64]int{}
		got := [relays]int{}
		var running sync.WaitGroup
		for relay := range relays {
			o := NewOutbox(db) // one for each relay, as in different processes
			running.Go(func() {
				for {
					b, err := o.Claim(t.Context(), outbox.Claim{Limit: 50, Lease: time.Minute})
					if err != nil {
						t.Error(err)
						return
					}
					if len(b.Events) == 0 && !b.Contended {
						return
					}
					mu.Lock()
					for _, id := range eventIDs(b) {
						if other, taken := owner[id]; taken {
							t.Errorf("event %d went to %d and %d", id, other, relay)
						}
						owner[id] = relay
						got[relay]++
					}
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if len(owner) != events {
			t.Errorf("%d of %d events were claimed", len(owner), events)
		}
		t.Logf("shares: %v", got)
		for relay, n := range got {
			if n < events/relays/10 {
				t.Errorf("relay %d got %d of %d events: it starves", relay, n, events)
			}
		}
	})
}

// Relays claim and mark in any order while transactions insert. No event pays an attempt for a deadlock, and inserts do not
// wait for relays.
func TestOutbox_RelaysDoNotBlockInserts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, _ := openOutbox(t, target)
		const events, batch = 6000, 30
		var next, sent atomic.Int64
		var slowest atomic.Int64
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				for {
					first := next.Add(batch)
					if first > events {
						return
					}
					start := time.Now()
					if err := appendNew(t.Context(), db, sequence(first-batch+1, first)...); err != nil {
						t.Error(err)
						return
					}
					slowest.Store(max(slowest.Load(), int64(time.Since(start))))
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for range 4 {
			o := NewOutbox(db)
			running.Go(func() { markShuffled(ctx, t, o, &sent, events) })
		}
		running.Wait()
		if sent.Load() != events {
			t.Errorf("%d of %d events were sent", sent.Load(), events)
		}
		var left, charged int
		for query, n := range map[string]*int{"status <> 1": &left, "retry_count > 0": &charged} {
			if err := db.session(t.Context()).Raw("SELECT COUNT(*) FROM outbox_event WHERE " + query).Scan(n).Error; err != nil {
				t.Fatal(err)
			}
		}
		if left != 0 || charged != 0 {
			t.Errorf("%d rows are not marked, %d were charged an attempt", left, charged)
		}
		t.Logf("slowest insert of %d events: %v", batch, time.Duration(slowest.Load()))
		if slowest := time.Duration(slowest.Load()); slowest > lockWait/2 {
			t.Errorf("an insert took %v: it waited for a lock", slowest)
		}
	})
}

// markShuffled claims, releases a tenth, and marks the rest in halves and in random order.
func markShuffled(ctx context.Context, t *testing.T, o *Outbox, sent *atomic.Int64, events int64) {
	for sent.Load() < events && ctx.Err() == nil {
		b, err := o.Claim(ctx, outbox.Claim{Limit: 50, Lease: time.Minute})
		if err != nil {
			t.Error(err)
			return
		}
		ids := eventIDs(b)
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		tenth, half := len(ids)/10, len(ids)/2
		for _, mark := range []struct {
			ids []int64
			do  func(ids []int64) error
		}{
			{ids[:tenth], func(ids []int64) error { return o.Release(ctx, b.Token, ids) }},
			{ids[half:], func(ids []int64) error { return o.MarkSent(ctx, ids) }},
			{ids[tenth:half], func(ids []int64) error { return o.MarkSent(ctx, ids) }},
		} {
			if len(mark.ids) == 0 {
				continue
			}
			if err := mark.do(mark.ids); err != nil {
				t.Error(err)
				return
			}
		}
		sent.Add(int64(len(ids) - tenth))
	}
}
