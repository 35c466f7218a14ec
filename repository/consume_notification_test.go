package repository

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// notify adds the notification of one version of an order. Its event id says both.
func notify(t *testing.T, c *ConsumerStore, order idgen.ID, version int) {
	t.Helper()
	event := testEvents(int64(order))[0].OrderEvent
	event.Version = version
	added, err := c.AddNotification(t.Context(), service.Notification{EventID: order*100 + idgen.ID(version), Event: event})
	if err != nil || !added {
		t.Fatalf("version %d of %d: added is %v (%v)", version, order, added, err)
	}
}

// outside is the receiver of notifications.
type outside struct {
	mu   sync.Mutex
	got  []string // order/version
	fail map[string]int
}

func (o *outside) send(_ context.Context, key string, e service.OrderEvent) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	what := fmt.Sprintf("%d/%d", e.OrderID, e.Version)
	if !strings.HasPrefix(key, "notification-") {
		return errors.New("without its key")
	}
	if o.fail[what] > 0 {
		o.fail[what]--
		return errors.New("nobody listens")
	}
	o.got = append(o.got, what)
	return nil
}

func sendAll(t *testing.T, n *service.Notifier) {
	t.Helper()
	for {
		sent, err := n.SendDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if sent == 0 {
			return
		}
	}
}

func TestNotifier_SendsInOrderOfVersions(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, _ := openOutbox(t, target)
		c, world := NewConsumerStore(db), &outside{}
		n := &service.Notifier{Store: c, Log: slog.New(slog.DiscardHandler), Send: world.send}
		notify(t, c, 1, 3)
		notify(t, c, 1, 2)
		sendAll(t, n)
		if len(world.got) != 0 {
			t.Fatalf("sent %v before version 1 is there", world.got)
		}
		notify(t, c, 1, 1)
		sendAll(t, n)
		if want := []string{"1/1", "1/2", "1/3"}; !slices.Equal(world.got, want) {
			t.Errorf("sent %v, want %v", world.got, want)
		}

		// A missing version delays the next one for a minute. If it is added later, it is overtaken.
		notify(t, c, 2, 2)
		run(t, db, "UPDATE notification SET created_at = :now(-59000) WHERE event_id = 202")
		sendAll(t, n)
		if len(world.got) != 3 {
			t.Errorf("sent %v before the minute was over", world.got)
		}
		run(t, db, "UPDATE notification SET created_at = :now(-60001) WHERE event_id = 202")
		sendAll(t, n)
		notify(t, c, 2, 1)
		sendAll(t, n)
		if want := []string{"1/1", "1/2", "1/3", "2/2"}; !slices.Equal(world.got, want) {
			t.Errorf("sent %v, want %v", world.got, want)
		}
		if n := count(t, db, "notification WHERE event_id = 201 AND status = ?", notificationOvertaken); n != 1 {
			t.Error("the late version is not marked as overtaken")
		}
	})
}

func TestConsumed_AddNotificationOnce(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, _ := openOutbox(t, target)
		c := NewConsumerStore(db)
		notify(t, c, 1, 1)
		added, err := c.AddNotification(t.Context(), service.Notification{EventID: 101, Event: testEvents(1)[0].OrderEvent})
		if err != nil || added {
			t.Errorf("added again: %v (%v)", added, err)
		}
		if n := count(t, db, "notification"); n != 1 {
			t.Errorf("%d notifications", n)
		}
	})
}

func TestNotifier_SendsFailedAgain(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, _ := openOutbox(t, target)
		c, world := NewConsumerStore(db), &outside{fail: map[string]int{"1/1": 1, "2/1": 100}}
		n := &service.Notifier{Store: c, Log: slog.New(slog.DiscardHandler), Send: world.send}
		for _, order := range []idgen.ID{1, 2, 3} {
			notify(t, c, order, 1)
		}
		for range 20 {
			sendAll(t, n)
			run(t, db, "UPDATE notification SET next_retry_time = :now(0) WHERE status = 0")
		}
		if want := []string{"3/1", "1/1"}; !slices.Equal(world.got, want) {
			t.Errorf("sent %v, want %v", world.got, want)
		}
		if n := count(t, db, "notification WHERE event_id = 201 AND status = ? AND retry_count = 10", notificationGivenUp); n != 1 {
			t.Error("a notification that always fails was not given up")
		}
	})
}

func TestNotifier_ConcurrentSendEachOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, _ := openOutbox(t, target)
		c, world := NewConsumerStore(db), &outside{}
		const orders = 200
		for order := range idgen.ID(orders) {
			notify(t, c, order+1, 1)
		}
		var running sync.WaitGroup
		for range 4 {
			n := &service.Notifier{Store: c, Log: slog.New(slog.DiscardHandler), Send: world.send}
			running.Go(func() {
				for count(t, db, "notification WHERE status = 0") > 0 {
					if _, err := n.SendDue(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		running.Wait()
		slices.Sort(world.got)
		if got := len(slices.Compact(slices.Clone(world.got))); got != orders || len(world.got) != orders {
			t.Errorf("%d sends of %d notifications, want %d of each", len(world.got), got, orders)
		}
	})
}
