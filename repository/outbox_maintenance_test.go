package repository

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/outbox"
)

// run executes statements in which :now stands for the database's time, plus milliseconds in brackets.
func run(t *testing.T, db *DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		for strings.Contains(s, ":now(") {
			before, rest, _ := strings.Cut(s, ":now(")
			millis, after, _ := strings.Cut(rest, ")")
			s = before + db.dialect.nowPlusMillis("("+millis+")") + after
		}
		if err := db.session(t.Context()).Exec(s).Error; err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func count(t *testing.T, db *DB, what string, args ...any) (n int) {
	t.Helper()
	if err := db.session(t.Context()).Raw("SELECT COUNT(*) FROM "+what, args...).Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOutbox_Health(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, 1, 2, 3, 4)
		run(t, db, "UPDATE outbox_event SET created_at = :now(-600001) WHERE event_id = 1",
			"UPDATE outbox_event SET created_at = :now(-500000) WHERE event_id = 2",
			"UPDATE outbox_event SET created_at = :now(-900000), status = 1 WHERE event_id = 3",
			"UPDATE outbox_event SET created_at = :now(-900000), status = 2 WHERE event_id = 4")
		h, err := o.Health(t.Context(), 10*time.Minute)
		if err != nil || h.Pending != 2 || h.Failed != 1 || h.Stale != 1 || h.Oldest < 10*time.Minute || h.Oldest > 11*time.Minute {
			t.Errorf("%+v (%v), want 2 pending, 1 of them stale for 10 minutes, 1 failed", h, err)
		}
		run(t, db, "DELETE FROM outbox_event")
		if h, err := o.Health(t.Context(), 10*time.Minute); err != nil || h != (outbox.Health{}) {
			t.Errorf("an empty outbox: %+v (%v)", h, err)
		}
	})
}

func TestOutbox_Purge(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		for _, archive := range []bool{false, true} {
			t.Run(fmt.Sprintf("archive=%v", archive), func(t *testing.T) {
				db, o := openOutbox(t, target)
				run(t, db, "DELETE FROM outbox_event", "DELETE FROM outbox_purged")
				appendTest(t, db, sequence(1, 10)...)
				run(t, db, "UPDATE outbox_event SET status = 1, next_retry_time = :now(-60001) WHERE event_id <= 7", // sent a minute ago
					"UPDATE outbox_event SET biz_type = 'ORDER_CREATED' WHERE event_id <= 2",
					"UPDATE outbox_event SET status = 1 WHERE event_id = 8",                                 // sent now
					"UPDATE outbox_event SET status = 2, next_retry_time = :now(-60001) WHERE event_id = 9") // failed a minute ago
				for _, want := range []int{5, 2, 0} {
					if n, err := o.Purge(t.Context(), time.Minute, 5, archive); err != nil || n != want {
						t.Errorf("purged %d (%v), want %d", n, err, want)
					}
				}
				var left []int64
				if err := db.session(t.Context()).Raw("SELECT event_id FROM outbox_event ORDER BY event_id").Scan(&left).Error; err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(left, []int64{8, 9, 10}) {
					t.Errorf("%v are left, want those that are not sent or not old", left)
				}
				if n := count(t, db, "outbox_archive"); n != map[bool]int{true: 7}[archive] {
					t.Errorf("%d archived", n)
				}
				for kind, want := range map[string]int{"ORDER_CREATED": 2, "ORDER_PAID": 5} {
					if n := count(t, db, "outbox_purged WHERE biz_type = ? AND events = ?", kind, want); n != 1 {
						t.Errorf("the count of purged %s is not %d", kind, want)
					}
				}
			})
		}
	})
}

func TestOutbox_ConcurrentPurgesCountRowsOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		const events = 3000
		appendTest(t, db, sequence(1, events)...)
		run(t, db, "UPDATE outbox_event SET status = 1, next_retry_time = :now(-60001)")
		var total atomic.Int64
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				for total.Load() < events {
					n, err := o.Purge(t.Context(), time.Minute, 100, true)
					if err != nil {
						t.Error(err)
						return
					}
					total.Add(int64(n))
				}
			})
		}
		running.Wait()
		if n := count(t, db, "outbox_archive"); total.Load() != events || n != events {
			t.Errorf("purged %d and archived %d of %d", total.Load(), n, events)
		}
		if n := count(t, db, "outbox_purged WHERE events = ?", events); n != 1 {
			t.Error("the count of purged events is wrong")
		}
	})
}

func TestOutbox_Unconsumed(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, sequence(1, 6)...)
		run(t, db, "UPDATE outbox_event SET status = 1, next_retry_time = :now(-120000 + event_id)",
			"UPDATE outbox_event SET biz_type = 'ORDER_CREATED' WHERE event_id = 2",
			"UPDATE outbox_event SET next_retry_time = :now(-30000) WHERE event_id = 3",   // too early to tell
			"UPDATE outbox_event SET next_retry_time = :now(-9000000) WHERE event_id = 4", // too long ago
			"UPDATE outbox_event SET status = 0 WHERE event_id = 5")
		if _, err := NewConsumerStore(db).BookPoints(t.Context(), 6, service.PointsEntry{OrderID: 1, UserID: 1, Points: 1}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			c    outbox.Reconcile
			want []int64
		}{
			{outbox.Reconcile{Consumer: "points", Types: []string{"ORDER_PAID"}}, []int64{1}},
			{outbox.Reconcile{Consumer: "points"}, []int64{1, 2}},
			{outbox.Reconcile{Consumer: "notification"}, []int64{1, 2, 6}},
		} {
			tt.c.After, tt.c.Within = time.Minute, time.Hour
			if got, err := o.Unconsumed(t.Context(), tt.c, 10); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s misses %v (%v), want %v", tt.c.Consumer, got, err, tt.want)
			}
		}
	})
}

func TestOutbox_Admin(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, sequence(1, 8)...)
		run(t, db, "UPDATE outbox_event SET status = 2, retry_count = 8 WHERE event_id IN (2, 4, 5)",
			"UPDATE outbox_event SET status = 1 WHERE event_id = 3",
			"UPDATE outbox_event SET retry_count = 2, next_retry_time = :now(60000) WHERE event_id = 6",
			"UPDATE outbox_event SET lock_owner = 'somebody', next_retry_time = :now(60000) WHERE event_id = 7")
		ctx := t.Context()
		page, err := o.List(ctx, outbox.Failed, 5, 1)
		if err != nil || len(page) != 1 || page[0].ID != 4 || page[0].State != outbox.Failed || page[0].Attempts != 8 || page[0].Due.IsZero() || len(page[0].Payload) == 0 {
			t.Errorf("the failed one below 5: %+v (%v)", page, err)
		}
		if _, err := o.List(ctx, "lost", 0, 1); err == nil {
			t.Error("listed a state that does not exist")
		}
		if e, found, err := o.Show(ctx, 3); err != nil || !found || e.State != outbox.Sent || e.Key != 3 {
			t.Errorf("event 3: %+v, %v (%v)", e, found, err)
		}
		if _, found, err := o.Show(ctx, 99); err != nil || found {
			t.Errorf("an event that does not exist: found is %v (%v)", found, err)
		}
		// 3 is sent, 7 is being published, 99 does not exist.
		if n, err := o.Retry(ctx, []int64{2, 3, 6, 7, 99}); err != nil || n != 2 {
			t.Errorf("brought back %d (%v), want 2 and 6", n, err)
		}
		for _, id := range []int64{2, 6} {
			if s := stateOf(t, db, id); s.Status != outboxPending || s.RetryCount != 0 || s.Due > 0 {
				t.Errorf("event %d is %+v, want due with all attempts before it", id, s)
			}
		}
		if n, err := o.RetryFailed(ctx); err != nil || n != 2 {
			t.Errorf("brought back %d (%v), want the other two", n, err)
		}
	})
}
