package service

import (
	"time"

	"seckill/service/idgen"
)

// UserID identifies a user: a positive number, from the token.
type UserID int64

// Status is the state of an order.
type Status int8

// The states of an order. It starts pending and ends paid or closed; pending and paid orders are live.
const (
	Pending Status = 1
	Paid    Status = 2
	Closed  Status = 3
)

func (s Status) String() string {
	switch s {
	case Pending:
		return "pending"
	case Paid:
		return "paid"
	case Closed:
		return "closed"
	}
	return "invalid"
}

// CloseReason is why an order was closed.
type CloseReason int8

// The reasons for closing; zero while an order is live.
const (
	Cancelled CloseReason = 1
	Expired   CloseReason = 2
)

func (r CloseReason) String() string {
	switch r {
	case Cancelled:
		return "cancelled"
	case Expired:
		return "expired"
	}
	return ""
}

// Order is one unit of a voucher for one user. All times are the database's.
type Order struct {
	ID          idgen.ID
	VoucherID   idgen.ID
	UserID      UserID
	RequestID   string // the idempotency key, or the order's own id if the client sent none
	Status      Status
	CloseReason CloseReason
	Version     int // 1 when placed, one more with each event
	PriceCents  int64
	CreatedAt   time.Time
	PayBy       time.Time // zero unless pending
	PaidAt      time.Time // zero unless paid
	ClosedAt    time.Time // zero unless closed
}

// MaxRequestID is the greatest length of an idempotency key.
const MaxRequestID = 64

// ValidRequestID refuses an idempotency key that is not 1 to MaxRequestID visible ASCII characters.
func ValidRequestID(key string) error {
	return validReference("Idempotency-Key", key)
}

// validReference refuses a client's reference that is not 1 to MaxRequestID visible ASCII characters.
func validReference(field, s string) error {
	if s == "" || len(s) > MaxRequestID {
		return Invalid(field, "must have 1 to %d characters", MaxRequestID)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return Invalid(field, "must be visible ASCII characters")
		}
	}
	return nil
}
