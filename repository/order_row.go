package repository

import (
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// orderRow is a row of voucher_order.
type orderRow struct {
	ID          int64
	VoucherID   int64
	UserID      int64
	Slot        *int
	RequestID   string
	Status      int8
	CloseReason *int8
	Version     int
	PriceCents  int64
	CreatedAt   time.Time
	PayBy       *time.Time
	PaidAt      *time.Time
	ClosedAt    *time.Time
}

// TableName is gorm's hook.
func (orderRow) TableName() string { return "voucher_order" }

func (r *orderRow) order() service.Order {
	o := service.Order{
		ID: idgen.ID(r.ID), VoucherID: idgen.ID(r.VoucherID), UserID: service.UserID(r.UserID),
		RequestID: r.RequestID, Status: service.Status(r.Status), Version: r.Version, PriceCents: r.PriceCents,
		CreatedAt: r.CreatedAt.UTC(), PayBy: orZero(r.PayBy), PaidAt: orZero(r.PaidAt), ClosedAt: orZero(r.ClosedAt),
	}
	if r.CloseReason != nil {
		o.CloseReason = service.CloseReason(*r.CloseReason)
	}
	return o
}
