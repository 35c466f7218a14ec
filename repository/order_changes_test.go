package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// placed places an order.
func placed(t *testing.T, db *DB, voucher idgen.ID, user service.UserID) service.Order {
	t.Helper()
	p := place(t, db, placement(voucher, user, ""))[0]
	if p.Err != nil || p.Replayed {
		t.Fatalf("user %d was not served: %v", user, p.Err)
	}
	return p.Order
}

// makeOverdue moves the time to pay of orders into the past.
func makeOverdue(t *testing.T, db *DB, ids ...idgen.ID) {
	t.Helper()
	result := db.gorm.Exec("UPDATE voucher_order SET pay_by = ? WHERE id IN ? AND status = 1", time.Now().Add(-time.Minute).UTC(), ids)
	if result.Error != nil || result.RowsAffected != int64(len(ids)) {
		t.Fatalf("%d of %d orders made overdue: %v", result.RowsAffected, len(ids), result.Error)
	}
}

// change does one step of a test: "pay", "pay P", "cancel", "expire", and "stranger pays P" or "stranger
// cancels". It returns the answer.
func change(ctx context.Context, db *DB, o service.Order, step string) (service.Order, error) {
	orders := NewOrders(db)
	verb, payment, _ := strings.Cut(step, " ")
	user := o.UserID
	if verb == "stranger" {
		user++
		verb, payment, _ = strings.Cut(payment, " ")
	}
	switch verb {
	case "pay", "pays":
		return orders.Pay(ctx, o.ID, service.Payment{ID: payment, UserID: user}, nextID())
	case "cancel", "cancels":
		return orders.Cancel(ctx, o.ID, user, nextID())
	case "expire":
		returned, err := orders.Expire(ctx, []idgen.ID{o.ID}, []idgen.ID{nextID()})
		if err == nil && returned[o.VoucherID] == 0 {
			err = errNothingExpired
		}
		return service.Order{}, err
	}
	return service.Order{}, fmt.Errorf("no such step: %s", step)
}

var errNothingExpired = &service.Error{Code: "nothing-expired"}

func TestOrders_Changes(t *testing.T) {
	t.Parallel()
	const paid, closed, refund = string(service.CodeOrderPaid), string(service.CodeOrderClosed), string(service.CodeRefundDue)
	const none, notFound = "nothing-expired", string(service.CodeNotFound)
	tests := []struct {
		name    string
		overdue bool
		steps   []string
		want    []string
		end     service.Status
		reason  service.CloseReason
		version int
	}{
		{"paid, and again", false, []string{"pay", "pay", "cancel", "expire"}, []string{"", "", paid, none}, service.Paid, 0, 2},
		{"paid by a payment that is told again", false, []string{"pay P", "pay P", "cancel"}, []string{"", "", paid}, service.Paid, 0, 2},
		{"paid twice", false, []string{"pay P", "pay Q", "pay Q", "pay P", "pay"}, []string{"", refund, refund, "", ""}, service.Paid, 0, 3},
		{"paid without and with a reference", false, []string{"pay", "pay Q", "pay Q"}, []string{"", refund, refund}, service.Paid, 0, 3},
		{"cancelled, and again", false, []string{"cancel", "cancel", "pay", "expire"}, []string{"", "", closed, none}, service.Closed, service.Cancelled, 2},
		{"paid after it was cancelled", false, []string{"cancel", "pay P", "pay P", "pay Q", "pay"},
			[]string{"", refund, refund, refund, closed}, service.Closed, service.Cancelled, 4},
		{"not overdue", false, []string{"expire", "pay"}, []string{none, ""}, service.Paid, 0, 2},
		{"expired, and again", true, []string{"expire", "expire", "cancel", "pay"}, []string{"", none, closed, closed}, service.Closed, service.Expired, 2},
		{"paid after it expired", true, []string{"expire", "pay P", "pay P"}, []string{"", refund, refund}, service.Closed, service.Expired, 3},
		{"paid late and before it was expired", true, []string{"pay", "expire"}, []string{"", none}, service.Paid, 0, 2},
		{"cancelled late and before it was expired", true, []string{"cancel", "expire"}, []string{"", none}, service.Closed, service.Cancelled, 2},
		{"somebody else's", false, []string{"stranger pays", "stranger pays P", "stranger cancels", "pay P", "stranger pays P", "stranger cancels"},
			[]string{notFound, notFound, notFound, "", notFound, notFound}, service.Paid, 0, 2},
	}
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				voucher := onSale(t, db, 3, 1)
				o := placed(t, db, voucher, service.UserID(100+i))
				if tt.overdue {
					makeOverdue(t, db, o.ID)
				}
				for j, step := range tt.steps {
					// A payment's reference is the provider's: unique over all orders.
					step = strings.NewReplacer("P", fmt.Sprint("p-", o.ID), "Q", fmt.Sprint("q-", o.ID)).Replace(step)
					answered, err := change(t.Context(), db, o, step)
					if got := string(service.CodeOf(err)); got != tt.want[j] {
						t.Fatalf("step %d, %q: got %q (%v), want %q", j, step, got, err, tt.want[j])
					}
					checkChange(t, db, o.ID, answered, err)
				}
				end, err := NewOrders(db).Order(t.Context(), o.ID)
				if err != nil || end.Status != tt.end || end.CloseReason != tt.reason || end.Version != tt.version {
					t.Errorf("in the end: %+v (%v), want %s, %s, version %d", end, err, tt.end, tt.reason, tt.version)
				}
				want := int64(3)
				if tt.end == service.Paid {
					want = 2
				}
				if left := stockOf(t, db, voucher); left != want {
					t.Errorf("%d units left, want %d", left, want)
				}
			})
		}
	})
}

// checkChange compares the order of an answer or error with the stored one.
func checkChange(t *testing.T, db *DB, id idgen.ID, answered service.Order, err error) {
	t.Helper()
	switch e, refused := err.(*service.Error); {
	case refused && e.Order != nil:
		answered = *e.Order
	case refused || answered.ID == 0: // not found, or an expiry: no order was answered
		return
	}
	if standing, err := NewOrders(db).Order(t.Context(), id); err != nil || standing != answered {
		t.Errorf("answered %+v, stands %+v (%v)", answered, standing, err)
	}
}

func TestOrders_ChangesOfAnUnknownOrder(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		for _, step := range []string{"pay", "pay P", "cancel"} {
			if _, err := change(t.Context(), db, service.Order{ID: nextID(), UserID: 1}, step); service.CodeOf(err) != service.CodeNotFound {
				t.Errorf("%s: %v", step, err)
			}
		}
		if _, err := change(t.Context(), db, service.Order{ID: nextID()}, "expire"); service.CodeOf(err) != "nothing-expired" {
			t.Error(err)
		}
	})
}

// A payment pays one order. Using it for another order is refused.
func TestPay_OnePaymentPaysOneOrder(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		voucher := onSale(t, db, 3, 1)
		one, other := placed(t, db, voucher, 1), placed(t, db, voucher, 2)
		if _, err := change(t.Context(), db, one, "pay P"); err != nil {
			t.Fatal(err)
		}
		_, err := change(t.Context(), db, other, "pay P")
		if e, ok := err.(*service.Error); !ok || e.Code != service.CodeInvalid || e.Field != "payment_id" {
			t.Errorf("the payment of another order: %v", err)
		}
		if _, err := change(t.Context(), db, other, "pay"); err != nil {
			t.Errorf("the other order can still be paid: %v", err)
		}
	})
}

// A user cannot block a payment by guessing the shop's own payment reference.
func TestPay_ShopReferenceCannotBeUsed(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		voucher := onSale(t, db, 3, 1)
		one, other := placed(t, db, voucher, 1), placed(t, db, voucher, 2)
		if _, err := change(t.Context(), db, one, "pay"); err != nil {
			t.Fatal(err)
		}
		var own struct{ PaymentID string }
		if err := db.gorm.Table("payment").Where("order_id = ?", one.ID).Take(&own).Error; err != nil {
			t.Fatal(err)
		}
		guess := strings.ReplaceAll(own.PaymentID, one.ID.String(), other.ID.String())
		if guess == own.PaymentID {
			t.Fatalf("reference %q does not name its order", own.PaymentID)
		}
		if err := service.ValidRequestID(guess); err == nil { // the same characters as a payment id may have
			t.Errorf("a client may send %q as its payment id", guess)
		}
	})
}

func TestOverdue_UsesTheDatabaseClock(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		later := openRaw(t, target, PoolOptions{MaxOpen: 1})
		if err := later.gorm.Exec("SET timestamp = UNIX_TIMESTAMP() + 7200").Error; err != nil { // its session's clock
			t.Fatal(err)
		}
		voucher := onSale(t, db, 9, 1)
		var want []idgen.ID
		for user := range service.UserID(3) { // to be paid within an hour
			want = append(want, placed(t, db, voucher, user+1).ID)
		}
		if err := db.gorm.Exec("UPDATE voucher_order SET pay_by = pay_by - INTERVAL user_id MINUTE").Error; err != nil {
			t.Fatal(err)
		}
		slices.Reverse(want)
		for limit := range 4 {
			if ids, err := NewOrders(db).Overdue(t.Context(), limit); err != nil || len(ids) != 0 {
				t.Errorf("overdue already: %v, %v", ids, err)
			}
			if ids, err := NewOrders(later).Overdue(t.Context(), limit); err != nil || !slices.Equal(ids, want[:limit]) {
				t.Errorf("two hours later: %v, want the earliest %d of %v (%v)", ids, limit, want, err)
			}
		}
		if returned, err := NewOrders(db).Expire(t.Context(), want, []idgen.ID{nextID(), nextID(), nextID()}); err != nil || len(returned) != 0 {
			t.Errorf("expired before its time: %v, %v", returned, err)
		}
	})
}
