package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"seckill/handler/consumer"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// fakeStore records its calls and returns what a test sets.
type fakeStore struct {
	service.NotificationStore
	points        []service.PointsEntry
	notifications []service.Notification
	first         bool
	err           error
}

func (b *fakeStore) BookPoints(_ context.Context, _ idgen.ID, e service.PointsEntry) (bool, error) {
	b.points = append(b.points, e)
	return b.first, b.err
}

func (b *fakeStore) AddNotification(_ context.Context, n service.Notification) (bool, error) {
	b.notifications = append(b.notifications, n)
	return b.first, b.err
}

// lastResult is an observer that keeps the last result.
type lastResult struct{ consumer.Result }

func (l *lastResult) Consumed(_ string, r consumer.Result, _ time.Duration) { l.Result = r }

func event(t *testing.T, kind service.EventType, price int64) outbox.Event {
	t.Helper()
	payload, err := json.Marshal(service.OrderEvent{Type: kind, OrderID: 5, VoucherID: 6, UserID: 7, Status: "paid", Version: 2, PriceCents: price})
	if err != nil {
		t.Fatal(err)
	}
	return outbox.Event{ID: 1, Type: string(kind), Key: 5, Version: 2, Payload: payload}
}

func TestPoints(t *testing.T) {
	failure := errors.New("the database is away")
	for _, tt := range []struct {
		name   string
		kind   service.EventType
		price  int64
		first  bool
		err    error
		want   consumer.Result
		points int64 // -1: the store is not asked
	}{
		{"paid", service.OrderPaid, 1999, true, nil, consumer.Took, 19},
		{"again", service.OrderPaid, 1999, false, nil, consumer.Duplicate, 19},
		{"free", service.OrderPaid, 0, true, nil, consumer.Took, 0},
		{"created", service.OrderCreated, 1999, true, nil, consumer.Ignored, -1},
		{"refund", service.OrderRefundDue, 1999, true, nil, consumer.Ignored, -1},
		{"fails", service.OrderPaid, 100, false, failure, consumer.Failed, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &fakeStore{first: tt.first, err: tt.err}
			var got lastResult
			handle := consumer.Points(store, &got)
			err := handle(t.Context(), event(t, tt.kind, tt.price))
			if !errors.Is(err, tt.err) || got.Result != tt.want {
				t.Errorf("%s (%v), want %s (%v)", got.Result, err, tt.want, tt.err)
			}
			if tt.points < 0 != (len(store.points) == 0) || tt.points >= 0 && store.points[0] != (service.PointsEntry{OrderID: 5, UserID: 7, Points: tt.points}) {
				t.Errorf("booked %+v", store.points)
			}
		})
	}
}

func TestNotification_HandlesEveryType(t *testing.T) {
	store := &fakeStore{first: true}
	handle := consumer.Notification(store, consumer.NoObserver{})
	kinds := []service.EventType{service.OrderCreated, service.OrderPaid, service.OrderCancelled, service.OrderExpired, service.OrderRefundDue}
	for _, kind := range kinds {
		if err := handle(t.Context(), event(t, kind, 100)); err != nil {
			t.Error(err)
		}
	}
	if len(store.notifications) != len(kinds) || store.notifications[4].Event.Type != service.OrderRefundDue {
		t.Errorf("%+v", store.notifications)
	}
}

// An event whose payload does not match is given up without an effect, because another delivery would not change it.
func TestPoints_GivesUpMismatch(t *testing.T) {
	for name, spoil := range map[string]func(*outbox.Event){
		"no JSON":           func(e *outbox.Event) { e.Payload = []byte("{") },
		"no payload":        func(e *outbox.Event) { e.Payload = nil },
		"another order":     func(e *outbox.Event) { e.Key++ },
		"another version":   func(e *outbox.Event) { e.Version++ },
		"another type":      func(e *outbox.Event) { e.Type = "ORDER_CREATED" },
		"no id":             func(e *outbox.Event) { e.ID = 0 },
		"a number as an id": func(e *outbox.Event) { e.Payload = []byte(`{"type":"ORDER_PAID","order_id":5,"version":2}`) },
	} {
		store := &fakeStore{first: true}
		var got lastResult
		handle := consumer.Points(store, &got)
		e := event(t, service.OrderPaid, 100)
		spoil(&e)
		if err := handle(t.Context(), e); !errors.Is(err, outbox.ErrPoison) || got.Result != consumer.Poison || len(store.points) != 0 {
			t.Errorf("%s: %s (%v), booked %v", name, got.Result, err, store.points)
		}
	}
}

func FuzzPoints_Payload(f *testing.F) {
	f.Add([]byte(`{"type":"ORDER_PAID","order_id":"5","voucher_id":"6","user_id":"7","status":"paid","version":2,"price_cents":100}`))
	f.Add([]byte(`{"type":"ORDER_PAID","order_id":"5","version":2,"price_cents":-9223372036854775808,"occurred_at":null}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		store := &fakeStore{first: true}
		err := consumer.Points(store, consumer.NoObserver{})(t.Context(), outbox.Event{ID: 1, Type: "ORDER_PAID", Key: 5, Version: 2, Payload: payload})
		if err != nil && !errors.Is(err, outbox.ErrPoison) {
			t.Errorf("%v is not ErrPoison", err)
		}
		if (err == nil) != (len(store.points) == 1) || len(store.points) == 1 && store.points[0].OrderID != 5 {
			t.Errorf("%v, and booked %+v", err, store.points)
		}
	})
}
