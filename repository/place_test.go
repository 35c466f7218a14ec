package repository

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

func TestPlace(t *testing.T) {
	const placed, replayed, already, soldOut = "placed", "replayed", "already-ordered", "sold-out"
	type request struct {
		user service.UserID
		id   string
	}
	tests := []struct {
		name    string
		stock   int64
		limit   int
		before  []request // placed as a separate batch
		batch   []request
		want    []string
		wantEnd int64 // stock
	}{
		{"a lone order", 1, 1, nil, []request{{1, ""}}, []string{placed}, 0},
		{"nothing left", 0, 1, nil, []request{{1, ""}}, []string{soldOut}, 0},
		{"all fit", 5, 1, nil, []request{{1, ""}, {2, "k"}, {3, ""}}, []string{placed, placed, placed}, 2},
		{"the earliest get the last units", 2, 1, nil, []request{{1, ""}, {2, ""}, {3, ""}}, []string{placed, placed, soldOut}, 0},
		{"a user twice in a batch", 5, 1, nil, []request{{1, ""}, {1, ""}, {2, ""}}, []string{placed, already, placed}, 3},
		{"a request twice in a batch", 5, 1, nil, []request{{1, "k"}, {1, "k"}, {2, "k"}}, []string{placed, replayed, placed}, 3},
		{"a user who was served", 5, 1, []request{{1, ""}}, []request{{2, ""}, {1, ""}, {3, ""}}, []string{placed, already, placed}, 2},
		{"a request that was served", 5, 1, []request{{1, "k"}}, []request{{2, ""}, {1, "k"}}, []string{placed, replayed}, 3},
		{"a served user among too many", 3, 1, []request{{1, "k"}}, []request{{1, "k"}, {1, "l"}, {2, ""}, {3, ""}, {4, ""}},
			[]string{replayed, already, placed, placed, soldOut}, 0},
		{"served and sold out", 1, 1, []request{{1, "k"}}, []request{{1, "k"}, {1, ""}, {2, ""}}, []string{replayed, already, soldOut}, 0},
		{"a limit above one", 9, 3, []request{{1, ""}}, []request{{1, ""}, {2, ""}, {1, ""}, {1, ""}, {1, ""}},
			[]string{placed, placed, placed, already, already}, 5},
		{"a limit and a repeated request", 9, 2, []request{{1, "a"}}, []request{{1, "a"}, {1, "b"}, {1, "b"}, {1, "c"}},
			[]string{replayed, placed, replayed, already}, 7},
		{"a repeat whose first try finds no unit", 0, 1, nil, []request{{1, "k"}, {1, "k"}}, []string{soldOut, soldOut}, 0},
	}
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				voucher := onSale(t, db, tt.stock, tt.limit)
				// Request ids are unique for a user over all vouchers, so each case has other users.
				first := service.UserID(nextID()) * 100
				batch := func(requests []request) (batch []*service.Placement) {
					for _, r := range requests {
						batch = append(batch, placement(voucher, first+r.user, r.id))
					}
					return batch
				}
				if tt.before != nil {
					place(t, db, batch(tt.before)...)
				}
				got := place(t, db, batch(tt.batch)...)
				if !slices.Equal(verdicts(got), tt.want) {
					t.Errorf("got %v, want %v", verdicts(got), tt.want)
				}
				if left := stockOf(t, db, voucher); left != tt.wantEnd {
					t.Errorf("%d left, want %d", left, tt.wantEnd)
				}
				checkAnswers(t, db, got)
			})
		}
	})
}

// checkAnswers compares the answers with the database.
func checkAnswers(t *testing.T, db *DB, batch []*service.Placement) {
	t.Helper()
	for _, p := range batch {
		order := p.Order
		switch service.CodeOf(p.Err) {
		case "":
		case service.CodeAlreadyOrdered:
			order = *p.Err.(*service.Error).Order
		default:
			continue
		}
		standing, err := NewOrders(db).Order(t.Context(), order.ID)
		if err != nil {
			t.Fatalf("order %s was answered and is not there: %v", order.ID, err)
		}
		if standing != order {
			t.Errorf("answered %+v, stands %+v", order, standing)
		}
		if standing.UserID != p.Order.UserID {
			t.Errorf("the answer to user %d is an order of user %d", p.Order.UserID, standing.UserID)
		}
	}
}

func TestPlace_Window(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		window := func(start, end time.Duration) *service.Placement {
			now := time.Now()
			voucher := createVoucher(t, db, service.NewVoucher{
				Title: "t", Stock: 5, UserLimit: 1, PayWithin: time.Second, StartsAt: now.Add(start), EndsAt: now.Add(end),
			})
			return place(t, db, placement(voucher, 1, ""))[0]
		}
		if got := service.CodeOf(window(time.Hour, 2*time.Hour).Err); got != service.CodeNotStarted {
			t.Errorf("before the start: %q", got)
		}
		if got := service.CodeOf(window(-2*time.Hour, -time.Hour).Err); got != service.CodeEnded {
			t.Errorf("after the end: %q", got)
		}
	})
}

func TestPlace_RequestIDOfAnotherVoucher(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		one, other := onSale(t, db, 5, 1), onSale(t, db, 5, 1)
		place(t, db, placement(one, 1, "k"))
		got := place(t, db, placement(other, 2, ""), placement(other, 1, "k"), placement(other, 1, "l"))
		if want := []string{"placed", "idempotency-key-reuse", "placed"}; !slices.Equal(verdicts(got), want) {
			t.Errorf("got %v, want %v", verdicts(got), want)
		}
	})
}

func TestPlace_UnknownVoucher(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		if got := place(t, db, placement(nextID(), 1, ""))[0]; service.CodeOf(got.Err) != service.CodeNotFound {
			t.Errorf("got %v", got.Err)
		}
	})
}

// A row that the database refuses fails alone, whatever the reason.
func TestPlace_BadRowFailsAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) { // SQLite accepts a text of any length
		db := openDB(t, target)
		voucher := onSale(t, db, 100, 1)
		var batch []*service.Placement
		for user := range service.UserID(50) {
			batch = append(batch, placement(voucher, user+1, ""))
		}
		batch[17].Order.RequestID = strings.Repeat("x", service.MaxRequestID+1)
		batch[33].EventID = batch[2].Order.ID // an event with a duplicate id
		place(t, db, placement(voucher, 1000, ""))
		if err := db.gorm.Exec("INSERT INTO outbox_event (event_id, biz_type, biz_id, version, payload, next_retry_time, created_at, updated_at)"+
			" SELECT ?, biz_type, biz_id, 2, payload, next_retry_time, created_at, updated_at FROM outbox_event LIMIT 1", batch[33].EventID).Error; err != nil {
			t.Fatal(err)
		}
		place(t, db, batch...)
		for i, verdict := range verdicts(batch) {
			want := "placed"
			if i == 17 || i == 33 {
				want = "internal"
			}
			if verdict != want {
				t.Errorf("row %d: %s (%v), want %s", i, verdict, batch[i].Err, want)
			}
		}
		if err := db.gorm.Exec("DELETE FROM outbox_event WHERE event_id = ?", batch[33].EventID).Error; err != nil {
			t.Fatal(err)
		}
		if left := stockOf(t, db, voucher); left != 100-1-48 {
			t.Errorf("%d left", left)
		}
	})
}

// Whatever another instance did since the last batch, the next order gets the database's verdict.
func TestPlace_AnotherInstanceBetweenTwoBatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		stock     int64
		meanwhile func(t *testing.T, rival *Orders, admin *Vouchers, voucher idgen.ID, next service.UserID)
		user      service.UserID // of the next order; user 1 placed the first
		want      string
	}{
		{"nothing", 3, nil, 2, "placed"},
		{"sold the rest", 3, func(_ *testing.T, rival *Orders, _ *Vouchers, voucher idgen.ID, _ service.UserID) {
			rival.Place(context.Background(), voucher, []*service.Placement{placement(voucher, 91, ""), placement(voucher, 92, "")})
		}, 2, "sold-out"},
		{"sold to the same user", 3, func(_ *testing.T, rival *Orders, _ *Vouchers, voucher idgen.ID, next service.UserID) {
			rival.Place(context.Background(), voucher, []*service.Placement{placement(voucher, next, "")})
		}, 2, "already-ordered"},
		{"ended the sale", 3, func(t *testing.T, _ *Orders, admin *Vouchers, voucher idgen.ID, _ service.UserID) {
			if err := admin.End(t.Context(), voucher); err != nil {
				t.Fatal(err)
			}
			waitForEnd(admin.db, voucher)
		}, 2, "sale-ended"},
		{"added units", 1, func(t *testing.T, _ *Orders, admin *Vouchers, voucher idgen.ID, _ service.UserID) {
			if err := admin.AddStock(t.Context(), voucher, 1, "more"); err != nil {
				t.Fatal(err)
			}
		}, 2, "placed"},
		{"raised the limit", 3, func(t *testing.T, _ *Orders, admin *Vouchers, voucher idgen.ID, _ service.UserID) {
			limit := 2
			if err := admin.Change(t.Context(), voucher, service.VoucherChange{UserLimit: &limit}); err != nil {
				t.Fatal(err)
			}
		}, 1, "placed"},
	}
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		otherDB := openRaw(t, target, PoolOptions{})
		orders := NewOrders(db)
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				voucher := onSale(t, db, tt.stock, 1)
				first := service.UserID(1000 * (i + 1))
				buy := func(user service.UserID) string {
					p := placement(voucher, first+user, "")
					orders.Place(t.Context(), voucher, []*service.Placement{p})
					return verdicts([]*service.Placement{p})[0]
				}
				if got := buy(1); got != "placed" {
					t.Fatal(got)
				}
				if tt.meanwhile != nil {
					tt.meanwhile(t, NewOrders(otherDB), NewVouchers(otherDB), voucher, first+tt.user)
				}
				if got := buy(tt.user); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		}
	})
}

// The machine slept between reading the terms and the transaction, or a clock was set: no order gets such a time.
func TestPlace_TimeIsNotTheDatabases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		for name, off := range map[string]time.Duration{"behind": -30 * time.Minute, "ahead": 30 * time.Minute} {
			t.Run(name, func(t *testing.T) {
				voucher := onSale(t, db, 3, 1)
				_, now, err := NewVouchers(db).Terms(t.Context(), voucher)
				if err != nil {
					t.Fatal(err)
				}
				err = NewOrders(db).placeAll(t.Context(), voucher, []*service.Placement{placement(voucher, 1, "")}, now.Add(off))
				if !errors.Is(err, errStaleTerms) || live(t, db, voucher) != 0 {
					t.Errorf("%v, %d orders, by a clock that is %s off", err, live(t, db, voucher), off)
				}
			})
		}
	})
}
