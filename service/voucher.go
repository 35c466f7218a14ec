package service

import (
	"time"
	"unicode/utf8"

	"seckill/service/idgen"
)

// Limits of a voucher's values. They keep every sum below 2^63 and every list in memory.
const (
	MaxTitle      = 120         // characters
	MaxPriceCents = 100_000_000 // one million units of currency
	MaxStock      = 10_000_000  // units of one voucher
	MaxUserLimit  = 100         // live orders of one user
	MaxPayWithin  = 7 * 24 * time.Hour
)

// Terms is the stock row of a voucher: the conditions of the guard, and the counters Stock and Placed, which the guard
// changes in the same statement. Every placed order satisfied the conditions at its CreatedAt.
type Terms struct {
	Total     int64     // units ever put on sale
	Stock     int64     // units left
	Placed    int64     // orders ever placed, closed ones included
	UserLimit int       // live orders that one user may hold
	StartsAt  time.Time // the sale includes this instant
	EndsAt    time.Time // and excludes this one
}

// Voucher is an item on sale.
type Voucher struct {
	ID         idgen.ID
	Title      string
	PriceCents int64         // price of one unit, in hundredths of the currency
	PayWithin  time.Duration // time allowed to pay, whole seconds
	Terms
	ServerTime time.Time // the database's clock when this was read
}

// CheckOpen refuses a time outside of the sale window, with CodeNotStarted or CodeEnded.
func (v *Voucher) CheckOpen(now time.Time) error {
	switch {
	case now.Before(v.StartsAt):
		return &Error{Code: CodeNotStarted, Message: "the sale has not started", Voucher: v}
	case !now.Before(v.EndsAt):
		return &Error{Code: CodeEnded, Message: "the sale has ended", Voucher: v}
	}
	return nil
}

// NewVoucher describes a voucher to be created.
type NewVoucher struct {
	Title      string
	PriceCents int64
	Stock      int64
	UserLimit  int
	PayWithin  time.Duration
	StartsAt   time.Time
	EndsAt     time.Time
}

// validate refuses the first invalid value.
func (v *NewVoucher) validate() error {
	if err := validFields(&v.Title, &v.PriceCents, &v.UserLimit); err != nil {
		return err
	}
	if v.Stock < 0 || v.Stock > MaxStock {
		return Invalid("stock", "must be from 0 to %d", MaxStock)
	}
	if v.PayWithin < time.Second || v.PayWithin > MaxPayWithin || v.PayWithin%time.Second != 0 {
		return Invalid("pay_seconds", "must be from 1 to %d", int64(MaxPayWithin/time.Second))
	}
	return validWindow(v.StartsAt, v.EndsAt)
}

// VoucherChange is a change of a voucher by an admin; nil leaves a value as it is.
//
// Two rules keep every placed order within its terms, so that the audit can compare them at any time: the limit can only
// be raised, and the window can only move where no order can be (see Apply).
type VoucherChange struct {
	Title      *string
	PriceCents *int64
	UserLimit  *int
	StartsAt   *time.Time
	EndsAt     *time.Time
}

func (c *VoucherChange) validate() error {
	if c.Title == nil && c.PriceCents == nil && c.UserLimit == nil && c.StartsAt == nil && c.EndsAt == nil {
		return Invalid("body", "has nothing to change: title, price_cents, user_limit, starts_at or ends_at")
	}
	return validFields(c.Title, c.PriceCents, c.UserLimit)
}

// validFields checks the values that can also be changed; nil is valid.
func validFields(title *string, priceCents *int64, userLimit *int) error {
	switch {
	case title != nil && (!utf8.ValidString(*title) || *title == "" || utf8.RuneCountInString(*title) > MaxTitle):
		return Invalid("title", "must have 1 to %d characters", MaxTitle)
	case priceCents != nil && (*priceCents < 0 || *priceCents > MaxPriceCents):
		return Invalid("price_cents", "must be from 0 to %d", MaxPriceCents)
	case userLimit != nil && (*userLimit < 1 || *userLimit > MaxUserLimit):
		return Invalid("user_limit", "must be from 1 to %d", MaxUserLimit)
	}
	return nil
}

// The range of DATETIME that every supported database and client can hold.
var (
	minTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
)

func validWindow(start, end time.Time) error {
	if start.Before(minTime) || start.After(maxTime) {
		return Invalid("starts_at", "must be a time from %d to %d", minTime.Year(), maxTime.Year())
	}
	if end.Before(minTime) || end.After(maxTime) {
		return Invalid("ends_at", "must be a time from %d to %d", minTime.Year(), maxTime.Year())
	}
	if !start.Before(end) {
		return Invalid("ends_at", "must be after starts_at")
	}
	return nil
}

// Apply returns the changed terms; now is the database's time. It refuses with CodeInvalid a change that would leave placed
// orders outside of the terms: a lower limit, a later start after the sale has begun, an end in the past.
func (c *VoucherChange) Apply(t Terms, now time.Time) (Terms, error) {
	before := t
	if c.UserLimit != nil {
		if *c.UserLimit < t.UserLimit {
			return t, Invalid("user_limit", "can only be raised: somebody may hold %d already", t.UserLimit)
		}
		t.UserLimit = *c.UserLimit
	}
	if c.StartsAt != nil && !c.StartsAt.Equal(t.StartsAt) {
		if !now.Before(t.StartsAt) && c.StartsAt.After(t.StartsAt) {
			return t, Invalid("starts_at", "cannot move to a later time, the sale began at %s", t.StartsAt.Format(time.RFC3339Nano))
		}
		t.StartsAt = *c.StartsAt
	}
	if c.EndsAt != nil && !c.EndsAt.Equal(t.EndsAt) {
		if !c.EndsAt.Truncate(time.Millisecond).After(now) { // there may be an order of this millisecond
			return t, Invalid("ends_at", "must be in the future, it is %s now; to end the sale at once, end it", now.Format(time.RFC3339Nano))
		}
		t.EndsAt = *c.EndsAt
	}
	if t.StartsAt.Equal(before.StartsAt) && t.EndsAt.Equal(before.EndsAt) {
		return t, nil // a sale that was ended before it began has an empty window, and can still be renamed
	}
	return t, validWindow(t.StartsAt, t.EndsAt)
}
