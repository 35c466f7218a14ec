package shop

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service"
)

//go:embed place.lua
var placeSource string

// What place.lua answers.
const (
	sold          = 0
	soldOut       = 1
	bought        = 2
	unknownToThis = 3
)

var errAlreadyOrdered = &service.Error{Code: service.CodeAlreadyOrdered, Message: "you have an order of this voucher already"}

// PlaceOrder sells one unit. The order that it returns is in Redis, and not yet in MySQL.
//
// An error of Redis leaves the outcome open: the script may have run. The same request again then says "already
// ordered", if it did.
func (s *Shop) PlaceOrder(ctx context.Context, req service.PlaceRequest) (order service.Order, replayed bool, err error) {
	sale, err := s.sale(ctx, req.VoucherID)
	if err != nil {
		return order, false, err
	}
	now := time.Now()
	if err := sale.voucher.CheckOpen(now); err != nil {
		return order, false, err
	}
	id, err := s.ids.Next(ctx)
	if err != nil {
		return order, false, service.Unavailable(err)
	}
	verdict, err := s.place.Run(ctx, s.orders, sale.keys, sale.text, strconv.FormatInt(int64(req.UserID), 10), id.String()).Int()
	if err != nil {
		if redis.IsReadOnlyError(err) || redis.IsLoadingError(err) { // the server says that it did nothing
			return order, false, service.Unavailable(err)
		}
		e := service.Unknown(err)
		e.RequestID = req.RequestID
		return order, false, e
	}
	switch verdict {
	case soldOut:
		return order, false, service.ErrSoldOut
	case bought:
		return order, false, errAlreadyOrdered
	case unknownToThis:
		return order, false, service.Unavailable(errors.New("redis has forgotten the voucher"))
	}
	sale.acknowledge(now)
	return service.Order{
		ID: id, VoucherID: req.VoucherID, UserID: req.UserID, RequestID: req.RequestID, Status: service.Pending, Version: 1,
		PriceCents: sale.voucher.PriceCents, CreatedAt: now, PayBy: now.Add(sale.voucher.PayWithin),
	}, false, nil
}
