package service

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seckill/service/idgen"
)

var firstDay = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

func goodVoucher() NewVoucher {
	return NewVoucher{
		Title: "Coffee", PriceCents: 990, Stock: 100, UserLimit: 1, PayWithin: 15 * time.Minute,
		StartsAt: firstDay, EndsAt: firstDay.Add(time.Hour),
	}
}

// limits are values at the limits of each field; field is "" for valid ones.
var limits = []struct {
	name  string
	set   func(v *NewVoucher)
	field string
}{
	{"as it should be", func(*NewVoucher) {}, ""},
	{"no title", func(v *NewVoucher) { v.Title = "" }, "title"},
	{"longest title", func(v *NewVoucher) { v.Title = strings.Repeat("券", MaxTitle) }, ""},
	{"title too long", func(v *NewVoucher) { v.Title = strings.Repeat("券", MaxTitle+1) }, "title"},
	{"title of broken UTF-8", func(v *NewVoucher) { v.Title = "a\xff" }, "title"},
	{"free", func(v *NewVoucher) { v.PriceCents = 0 }, ""},
	{"negative price", func(v *NewVoucher) { v.PriceCents = -1 }, "price_cents"},
	{"highest price", func(v *NewVoucher) { v.PriceCents = MaxPriceCents }, ""},
	{"price too high", func(v *NewVoucher) { v.PriceCents = MaxPriceCents + 1 }, "price_cents"},
	{"no stock yet", func(v *NewVoucher) { v.Stock = 0 }, ""},
	{"negative stock", func(v *NewVoucher) { v.Stock = -1 }, "stock"},
	{"most stock", func(v *NewVoucher) { v.Stock = MaxStock }, ""},
	{"too much stock", func(v *NewVoucher) { v.Stock = MaxStock + 1 }, "stock"},
	{"no limit", func(v *NewVoucher) { v.UserLimit = 0 }, "user_limit"},
	{"highest limit", func(v *NewVoucher) { v.UserLimit = MaxUserLimit }, ""},
	{"limit too high", func(v *NewVoucher) { v.UserLimit = MaxUserLimit + 1 }, "user_limit"},
	{"no time to pay", func(v *NewVoucher) { v.PayWithin = 0 }, "pay_seconds"},
	{"shortest time to pay", func(v *NewVoucher) { v.PayWithin = time.Second }, ""},
	{"split second to pay", func(v *NewVoucher) { v.PayWithin = 1500 * time.Millisecond }, "pay_seconds"},
	{"longest time to pay", func(v *NewVoucher) { v.PayWithin = MaxPayWithin }, ""},
	{"time to pay too long", func(v *NewVoucher) { v.PayWithin = MaxPayWithin + time.Second }, "pay_seconds"},
	{"no start", func(v *NewVoucher) { v.StartsAt = time.Time{} }, "starts_at"},
	{"no end", func(v *NewVoucher) { v.EndsAt = time.Time{} }, "ends_at"},
	{"earliest start", func(v *NewVoucher) { v.StartsAt = minTime }, ""},
	{"start too early", func(v *NewVoucher) { v.StartsAt = minTime.Add(-1) }, "starts_at"},
	{"start too late", func(v *NewVoucher) { v.StartsAt = maxTime.Add(1) }, "starts_at"},
	{"latest end", func(v *NewVoucher) { v.EndsAt = maxTime }, ""},
	{"end too late", func(v *NewVoucher) { v.EndsAt = maxTime.Add(1) }, "ends_at"},
	{"end at the start", func(v *NewVoucher) { v.EndsAt = v.StartsAt }, "ends_at"},
	{"end before the start", func(v *NewVoucher) { v.EndsAt = v.StartsAt.Add(-1) }, "ends_at"},
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != field || e.Message == "" {
		t.Errorf("got %v, want a refusal of %s", err, field)
	}
}

func TestCreateVoucher(t *testing.T) {
	for _, c := range limits {
		t.Run(c.name, func(t *testing.T) {
			store := newFakeStore()
			s := openShop(t, store)
			want := goodVoucher()
			c.set(&want)
			v, err := s.CreateVoucher(t.Context(), want)
			wantField(t, err, c.field)
			if err != nil {
				if len(store.vouchers) != 0 {
					t.Error("a voucher that was refused is there")
				}
				return
			}
			got := NewVoucher{v.Title, v.PriceCents, v.Stock, v.UserLimit, v.PayWithin, v.StartsAt, v.EndsAt}
			if got != want || v.ID != 1001 || v.Total != want.Stock {
				t.Errorf("created %+v of %+v", v, want)
			}
		})
	}
}

func TestChangeVoucher(t *testing.T) {
	now := firstDay.Add(30 * time.Minute) // in the middle of the sale
	type change = VoucherChange
	changes := map[string]struct {
		change VoucherChange
		field  string
	}{
		"nothing":             {change{}, "body"},
		"title":               {change{Title: new("Tea")}, ""},
		"no title":            {change{Title: new("")}, "title"},
		"price":               {change{PriceCents: new(int64(1))}, ""},
		"negative price":      {change{PriceCents: new(int64(-1))}, "price_cents"},
		"same limit":          {change{UserLimit: new(2)}, ""},
		"higher limit":        {change{UserLimit: new(MaxUserLimit)}, ""},
		"lower limit":         {change{UserLimit: new(1)}, "user_limit"},
		"limit too high":      {change{UserLimit: new(MaxUserLimit + 1)}, "user_limit"},
		"no limit":            {change{UserLimit: new(0)}, "user_limit"},
		"earlier start":       {change{StartsAt: new(firstDay.Add(-time.Hour))}, ""},
		"same start":          {change{StartsAt: new(firstDay)}, ""},
		"later start":         {change{StartsAt: new(firstDay.Add(1))}, "starts_at"},
		"start too early":     {change{StartsAt: new(minTime.Add(-1))}, "starts_at"},
		"later end":           {change{EndsAt: new(firstDay.Add(2 * time.Hour))}, ""},
		"earlier end":         {change{EndsAt: new(now.Add(time.Second))}, ""},
		"end in the past":     {change{EndsAt: new(now.Add(-1))}, "ends_at"},
		"end too late":        {change{EndsAt: new(maxTime.Add(1))}, "ends_at"},
		"both":                {change{StartsAt: new(firstDay.Add(-1)), EndsAt: new(now.Add(time.Second))}, ""},
		"good and bad":        {change{Title: new("Tea"), UserLimit: new(1)}, "user_limit"},
		"good, bad and worse": {change{Title: new(""), UserLimit: new(1)}, "title"},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			store := newFakeStore()
			store.offset = time.Until(now) // near enough: no edge is closer than a second, but for those in the past
			s := openShop(t, store)
			n := goodVoucher()
			n.UserLimit = 2
			before, err := s.CreateVoucher(t.Context(), n)
			wantNoError(t, err)
			after, err := s.ChangeVoucher(t.Context(), before.ID, c.change)
			wantField(t, err, c.field)
			if err != nil {
				after, err = s.Voucher(t.Context(), before.ID)
				wantNoError(t, err)
			}
			want := before
			if c.field == "" {
				apply(&want, c.change)
			}
			want.ServerTime = after.ServerTime
			if after != want {
				t.Errorf("%+v, want %+v", after, want)
			}
		})
	}
}

func apply(v *Voucher, c VoucherChange) {
	set(&v.Title, c.Title)
	set(&v.PriceCents, c.PriceCents)
	set(&v.UserLimit, c.UserLimit)
	set(&v.StartsAt, c.StartsAt)
	set(&v.EndsAt, c.EndsAt)
}

func set[T any](v, to *T) {
	if to != nil {
		*v = *to
	}
}

// Before the sale the start may move in both directions.
func TestChangeVoucher_StartMovesFreelyBeforeTheSale(t *testing.T) {
	terms := Terms{UserLimit: 1, StartsAt: firstDay, EndsAt: firstDay.Add(time.Hour)}
	for _, by := range []time.Duration{-time.Hour, time.Minute, time.Hour - 1} {
		change := VoucherChange{StartsAt: new(firstDay.Add(by))}
		got, err := change.Apply(terms, firstDay.Add(-1))
		if err != nil || !got.StartsAt.Equal(firstDay.Add(by)) {
			t.Errorf("by %v: %v, %v", by, got.StartsAt, err)
		}
		if _, err := change.Apply(terms, firstDay); (err != nil) != (by > 0) {
			t.Errorf("by %v at the start: %v", by, err)
		}
	}
	change := VoucherChange{StartsAt: new(firstDay.Add(time.Hour))}
	_, err := change.Apply(terms, firstDay.Add(-1))
	wantField(t, err, "ends_at")
}

func TestAddStock(t *testing.T) {
	store, ids := newFakeStore(), &countedIDs{}
	store.sell(voucherID, 10, 1)
	s := openShop(t, store, func(c *Config) { c.IDs = ids })
	for _, c := range []struct {
		units   int64
		request string
		field   string
		stock   int64
	}{
		{0, "a", "units", 10}, {-1, "a", "units", 10}, {MaxStock + 1, "a", "units", 10},
		{1, "a", "", 11}, {1, "a", "", 11}, {1, "b", "", 12},
		{1, "", "", 13}, {1, "", "", 14}, // without a request id, each is another one
		{MaxStock, "c", "units", 14}, {MaxStock - 14, "d", "", MaxStock},
	} {
		v, err := s.AddStock(t.Context(), voucherID, c.units, c.request)
		wantField(t, err, c.field)
		if err != nil {
			v, err = s.Voucher(t.Context(), voucherID)
			wantNoError(t, err)
		}
		if v.Stock != c.stock || v.Total != c.stock {
			t.Errorf("%d units by %q: %d of %d", c.units, c.request, v.Stock, v.Total)
		}
	}
	ids.err = idgen.ErrExhausted
	_, err := s.AddStock(t.Context(), voucherID, 1, "")
	wantCode(t, err, CodeUnavailable)
	_, err = s.CreateVoucher(t.Context(), goodVoucher())
	wantCode(t, err, CodeUnavailable)
}

func TestEndSale(t *testing.T) {
	store := newFakeStore()
	store.sell(voucherID, 10, 1)
	s := openShop(t, store)
	wantNoError(t, buy(s, 1))
	v, err := s.EndSale(t.Context(), voucherID)
	wantNoError(t, err)
	wantCode(t, buy(s, 2), CodeEnded)
	again, err := s.EndSale(t.Context(), voucherID)
	if err != nil || !again.EndsAt.Equal(v.EndsAt) {
		t.Errorf("ended at %v, and again at %v (%v)", v.EndsAt, again.EndsAt, err)
	}
	_, err = s.EndSale(t.Context(), 99)
	wantCode(t, err, CodeNotFound)
	wantAudit(t, store)
}

func TestVouchers_Pages(t *testing.T) {
	store := newFakeStore()
	for id := range idgen.ID(150) {
		store.sell(id+1, 1, 1)
	}
	s := openShop(t, store)
	page, err := s.Vouchers(t.Context(), 0, 1000)
	if err != nil || len(page) != MaxPage || page[0].ID != 150 {
		t.Errorf("%d vouchers (%v)", len(page), err)
	}
	page, err = s.Vouchers(t.Context(), page[len(page)-1].ID, 1000)
	if err != nil || len(page) != 50 || page[0].ID != 50 || page[49].ID != 1 {
		t.Errorf("%d vouchers on the second page (%v)", len(page), err)
	}
}
