package repository

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// openOutbox opens a migrated database for events without orders. It is not audited.
func openOutbox(t *testing.T, target dbtest.Database) (*DB, *Outbox) {
	t.Helper()
	db := openRaw(t, target, PoolOptions{MaxOpen: 64})
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db, NewOutbox(db)
}

// appendTest appends events in a transaction.
func appendTest(t *testing.T, db *DB, events ...int64) {
	t.Helper()
	if err := appendNew(t.Context(), db, events...); err != nil {
		t.Fatal(err)
	}
}

func appendNew(ctx context.Context, db *DB, ids ...int64) error {
	return db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		return appendNow(db, tx, testEvents(ids...))
	})
}

// appendNow appends events as the transactions of orders do.
func appendNow(db *DB, tx *gorm.DB, events []event) error {
	var now dbTime
	if err := tx.Raw("SELECT " + db.dialect.now).Row().Scan(&now); err != nil {
		return err
	}
	return appendEvents(tx, events, now.Time)
}

func testEvents(ids ...int64) (events []event) {
	for _, id := range ids {
		events = append(events, event{id: idgen.ID(id), OrderEvent: service.OrderEvent{
			Type: service.OrderPaid, OrderID: idgen.ID(id), VoucherID: 1, UserID: 1, Status: "paid", Version: 1, PriceCents: 1000,
		}})
	}
	return events
}

func sequence(from, to int64) (ids []int64) {
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}

func claim(t *testing.T, o *Outbox, c outbox.Claim) outbox.Batch {
	t.Helper()
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	b, err := o.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func eventIDs(b outbox.Batch) (ids []int64) {
	for _, e := range b.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

// state is the state of a row.
type state struct {
	Status, RetryCount int
	Due                int64 // milliseconds from now
}

func stateOf(t *testing.T, db *DB, id int64) (s state) {
	t.Helper()
	due := "TIMESTAMPDIFF(MICROSECOND, " + db.dialect.now + ", next_retry_time) DIV 1000"
	if db.dialect.name == sqliteDialect.name {
		due = "next_retry_time - " + db.dialect.now
	}
	err := db.session(t.Context()).Raw("SELECT status, retry_count, "+due+" AS due FROM outbox_event WHERE event_id = ?", id).Scan(&s).Error
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func within(ms int64, d time.Duration) bool {
	return ms > d.Milliseconds()-10_000 && ms <= d.Milliseconds()
}

func TestOutbox_StatesOfARow(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, 1, 2, 3, 4, 5)
		b := claim(t, o, outbox.Claim{Limit: 4})
		if !slices.Equal(eventIDs(b), []int64{1, 2, 3, 4}) || b.Contended {
			t.Fatalf("claimed %v (contended: %v), want the first four", eventIDs(b), b.Contended)
		}
		if s := stateOf(t, db, 1); !within(s.Due, time.Minute) {
			t.Errorf("a claimed row is due in %d ms, want its lease", s.Due)
		}
		if rest := claim(t, o, outbox.Claim{Limit: 4}); !slices.Equal(eventIDs(rest), []int64{5}) {
			t.Errorf("the next claim got %v, want 5", eventIDs(rest))
		}
		ctx := t.Context()
		for _, err := range []error{
			o.MarkSent(ctx, []int64{1}),
			o.MarkFailed(ctx, b.Token, []outbox.Failure{{ID: 2, Delay: time.Hour}, {ID: 3, GiveUp: true}}),
			o.Release(ctx, b.Token, []int64{4}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[int64]state{1: {1, 0, 0}, 2: {0, 1, time.Hour.Milliseconds()}, 3: {2, 1, 0}, 4: {0, 0, 0}} {
			if got := stateOf(t, db, id); got.Status != want.Status || got.RetryCount != want.RetryCount ||
				!within(got.Due, time.Duration(want.Due)*time.Millisecond) {
				t.Errorf("event %d is %+v, want about %+v", id, got, want)
			}
		}
		if b, err := o.Backlog(ctx); err != nil || b != (outbox.Backlog{Pending: 3, Failed: 1}) {
			t.Errorf("backlog %+v (%v), want 3 pending and 1 failed", b, err)
		}
		if b := claim(t, o, outbox.Claim{Limit: 9}); !slices.Equal(eventIDs(b), []int64{4}) {
			t.Errorf("then due: %v, want the released one", eventIDs(b))
		}
	})
}

func TestOutbox_ClaimReturnsWholeEvent(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		// Characters that need an escape in JSON or in SQL.
		in := testEvents(7)
		in[0].PaymentID = "\"\\\u2028<>&'; -- 秒杀 🎫\x00\n"
		in[0].OccurredAt = time.Date(2026, 2, 28, 23, 59, 59, 123456789, time.UTC)
		in[0].OrderID, in[0].UserID, in[0].Version = 1<<63-1, 1<<53+1, 3
		err := db.inTxUntilKnown(t.Context(), func(tx *gorm.DB) error {
			return appendNow(db, tx, in)
		})
		if err != nil {
			t.Fatal(err)
		}
		e := claim(t, o, outbox.Claim{Limit: 1}).Events[0]
		var payload service.OrderEvent
		if err := json.Unmarshal(e.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(payload, in[0].OrderEvent) {
			t.Errorf("payload\n%+v, want\n%+v", payload, in[0].OrderEvent)
		}
		if want, err := in[0].Payload(); err != nil || string(e.Payload) != want { // not only the same values
			t.Errorf("payload %s, want %s (%v)", e.Payload, want, err)
		}
		if e.ID != 7 || e.Key != 1<<63-1 || e.Version != 3 || e.Type != "ORDER_PAID" || time.Since(e.CreatedAt).Abs() > time.Minute {
			t.Errorf("envelope %+v", e)
		}
	})
}

// After its lease has ended, a claim cannot mark rows any more, except as sent.
func TestOutbox_LateMarks(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, 1, 2)
		late := claim(t, o, outbox.Claim{Limit: 2, Lease: time.Millisecond})
		var now outbox.Batch
		for len(now.Events) < 2 { // until the lease has ended by the database's clock
			if now = claim(t, o, outbox.Claim{Limit: 2}); len(now.Events) == 1 {
				t.Fatal("the lease of one row ended before the other's")
			}
		}
		ctx := t.Context()
		for _, err := range []error{
			o.MarkSent(ctx, []int64{1}),
			o.MarkFailed(ctx, late.Token, []outbox.Failure{{ID: 1, GiveUp: true}, {ID: 2, GiveUp: true}}),
			o.Release(ctx, late.Token, []int64{1, 2}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if s := stateOf(t, db, 1); s.Status != outboxSent {
			t.Errorf("a sent row became %+v by a late mark", s)
		}
		if s := stateOf(t, db, 2); s.Status != outboxPending || !within(s.Due, time.Minute) {
			t.Errorf("another's row became %+v by a late mark", s)
		}
		if err := o.MarkFailed(ctx, now.Token, []outbox.Failure{{ID: 2, GiveUp: true}}); err != nil {
			t.Fatal(err)
		}
		if err := o.MarkSent(ctx, []int64{2}); err != nil { // the late one had a confirmation after all
			t.Fatal(err)
		}
		if s := stateOf(t, db, 2); s.Status != outboxSent {
			t.Errorf("a confirmed row is %+v, want sent", s)
		}
	})
}

func TestOutbox_ClaimOverdueOnly(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, 1, 2, 3)
		age := "UPDATE outbox_event SET next_retry_time = " + db.dialect.nowPlus(-2*time.Minute) + " WHERE event_id = 1"
		for _, statement := range []string{age, "UPDATE outbox_event SET retry_count = 3 WHERE event_id = 2"} {
			if err := db.session(t.Context()).Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
		b := claim(t, o, outbox.Claim{Limit: 10, Overdue: time.Minute, MinAttempts: 3})
		if !slices.Equal(eventIDs(b), []int64{1, 2}) {
			t.Errorf("took %v, want 1, which is overdue, and 2, which failed three times", eventIDs(b))
		}
	})
}

func TestOutbox_RollbackLeavesNoEvent(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		failure := fmt.Errorf("after the business write")
		err := db.inTxUntilKnown(t.Context(), func(tx *gorm.DB) error {
			if err := appendNow(db, tx, testEvents(1)); err != nil {
				return err
			}
			return failure
		})
		if err == nil {
			t.Fatal("the transaction did not fail")
		}
		if b, err := o.Backlog(t.Context()); err != nil || b != (outbox.Backlog{}) {
			t.Errorf("backlog %+v (%v), want none", b, err)
		}
	})
}
