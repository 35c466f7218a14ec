package repository

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// atOnce runs all of fns at the same time and waits for them.
func atOnce(fns ...func()) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for _, fn := range fns {
		all.Go(func() {
			<-start
			fn()
		})
	}
	close(start)
	all.Wait()
}

// eachPair runs a test on two instances over one database.
func eachPair(t *testing.T, test func(t *testing.T, dbs [2]*DB)) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		test(t, [2]*DB{openDB(t, target), openRaw(t, target, PoolOptions{})})
	})
}

// Pay, cancel and expire at once, each twice and from two instances: one wins, and the unit comes back at most once.
func TestOrders_OneChangeWins(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		winners := map[string]int{}
		for round := range 24 {
			winners[raceOver(t, dbs, round)]++
		}
		t.Log("winners:", winners)
	})
}

// raceOver runs all changes of one order at the same time, and returns which won.
func raceOver(t *testing.T, dbs [2]*DB, round int) (winner string) {
	t.Helper()
	voucher := onSale(t, dbs[0], 1, 1)
	o := placed(t, dbs[0], voucher, 1)
	makeOverdue(t, dbs[0], o.ID)
	steps := []string{"pay", "cancel", "expire", "pay", "cancel", "expire"}
	if round%2 == 1 { // the money has moved
		steps[0], steps[3] = fmt.Sprint("pay p-", o.ID), fmt.Sprint("pay q-", o.ID)
	}
	errs := make([]error, len(steps))
	var racers []func()
	for i := range steps {
		i = (i + round) % len(steps) // in changing order
		racers = append(racers, func() { _, errs[i] = change(t.Context(), dbs[i/3], o, steps[i]) })
	}
	atOnce(racers...)

	end, err := NewOrders(dbs[1]).Order(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(steps))
	for i, err := range errs {
		got[i] = string(service.CodeOf(err))
	}
	if want, ok := raceAnswers(end, round%2 == 1, got); !ok {
		t.Errorf("%v was answered %q, want %q; it stands %s %s", steps, got, want, end.Status, end.CloseReason)
	}
	left := int64(0)
	if end.Status == service.Closed {
		left = 1
	}
	if stock := stockOf(t, dbs[0], voucher); stock != left {
		t.Errorf("%s: %d units left, want %d", end.Status, stock, left)
	}
	return end.Status.String() + " " + end.CloseReason.String()
}

// raceAnswers returns what pay, cancel, expire, pay, cancel, expire must have been answered, in any order.
func raceAnswers(end service.Order, moved bool, got []string) (want []string, ok bool) {
	const paid, closed, refund, none = "order-paid", "order-closed", "refund-due", "nothing-expired"
	unpaid := closed
	if moved {
		unpaid = refund
	}
	switch {
	case end.Status == service.Paid && moved: // the second payment is due for refund
		want = []string{"", paid, none, refund, paid, none}
	case end.Status == service.Paid:
		want = []string{"", paid, none, "", paid, none}
	case end.CloseReason == service.Cancelled:
		want = []string{unpaid, "", none, unpaid, "", none}
	default:
		want = []string{unpaid, closed, "", unpaid, closed, none}
	}
	alike := slices.Clone(got)
	for i := range 3 { // twins may have come in either order
		if alike[i] > alike[i+3] {
			alike[i], alike[i+3] = alike[i+3], alike[i]
		}
	}
	sorted := slices.Clone(want)
	for i := range 3 {
		if sorted[i] > sorted[i+3] {
			sorted[i], sorted[i+3] = sorted[i+3], sorted[i]
		}
	}
	return want, slices.Equal(alike, sorted)
}

// A payment for a closed order is due for refund once, however often and wherever it is reported.
func TestPay_RefundIsRecordedOnce(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		voucher := onSale(t, dbs[0], 9, 1)
		for user := range service.UserID(9) {
			o := placed(t, dbs[0], voucher, user+1)
			if _, err := change(t.Context(), dbs[0], o, "cancel"); err != nil {
				t.Fatal(err)
			}
			step := fmt.Sprint("pay p-", o.ID)
			pay := func(db *DB) func() {
				return func() {
					if _, err := change(t.Context(), db, o, step); service.CodeOf(err) != service.CodeRefundDue {
						t.Errorf("got %v, want refund-due", err)
					}
				}
			}
			atOnce(pay(dbs[0]), pay(dbs[1]), pay(dbs[0]), pay(dbs[1]))
			var refunds int64
			err := dbs[0].gorm.Raw("SELECT COUNT(*) FROM payment WHERE order_id = ? AND refund_due = 1", o.ID).Scan(&refunds).Error
			if end, _ := NewOrders(dbs[0]).Order(t.Context(), o.ID); err != nil || refunds != 1 || end.Version != 3 {
				t.Errorf("%d refunds, version %d (%v), want 1 and 3", refunds, end.Version, err)
			}
		}
	})
}

// The same payment for two orders at the same time pays one of them, and is refused for the other.
func TestPay_OnePaymentForTwoOrdersAtOnce(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		for range 20 {
			voucher := onSale(t, dbs[0], 2, 2)
			orders := []service.Order{placed(t, dbs[0], voucher, 1), placed(t, dbs[0], voucher, 1)}
			step := fmt.Sprint("pay p-", voucher)
			var codes [2]string
			pay := func(i int) func() {
				return func() {
					_, err := change(t.Context(), dbs[i], orders[i], step)
					codes[i] = string(service.CodeOf(err))
				}
			}
			atOnce(pay(0), pay(1))
			if got := slices.Sorted(slices.Values(codes[:])); !slices.Equal(got, []string{"", "invalid"}) {
				t.Fatalf("answered %q, want one payment applied and one refused", codes)
			}
		}
	})
}

// Two instances expire several vouchers in batches at the same time: each order once, each unit once.
func TestExpire_TwoInstances(t *testing.T) {
	t.Parallel()
	const vouchers, each, batch = 3, 60, 25
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		want := map[idgen.ID]int64{}
		for range vouchers {
			voucher := onSale(t, dbs[0], each+1, 1)
			want[voucher] = each
			var orders []*service.Placement
			for user := range service.UserID(each + 1) {
				orders = append(orders, placement(voucher, user+1, ""))
			}
			place(t, dbs[0], orders...)
			var due []idgen.ID
			for _, p := range orders[1:] { // one is not overdue
				due = append(due, p.Order.ID)
			}
			makeOverdue(t, dbs[0], due...)
		}
		got := map[idgen.ID]int64{}
		var mu sync.Mutex
		expire := func(db *DB) func() {
			return func() {
				for {
					returned, err := expireSome(t, db, batch)
					if err != nil {
						t.Error(err)
						return
					}
					if returned == nil {
						return
					}
					mu.Lock()
					for voucher, units := range returned {
						got[voucher] += units
					}
					mu.Unlock()
				}
			}
		}
		atOnce(expire(dbs[0]), expire(dbs[1]))
		for voucher, units := range want {
			if got[voucher] != units {
				t.Errorf("voucher %s got %d units back, want %d", voucher, got[voucher], units)
			}
			if left := stockOf(t, dbs[0], voucher); left != units {
				t.Errorf("voucher %s: %d left, want %d", voucher, left, units)
			}
		}
	})
}

// expireSome expires a batch; nil if nothing is overdue.
func expireSome(t *testing.T, db *DB, limit int) (map[idgen.ID]int64, error) {
	orders := NewOrders(db)
	due, err := orders.Overdue(t.Context(), limit)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	events := make([]idgen.ID, len(due))
	for i := range events {
		events[i] = nextID()
	}
	returned, err := orders.Expire(t.Context(), due, events)
	if returned == nil {
		returned = map[idgen.ID]int64{} // the other instance is closing them
	}
	return returned, err
}
