package handler

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// voucherShelf is where anybody sees what is on sale.
type voucherShelf interface {
	Voucher(ctx context.Context, id idgen.ID) (service.Voucher, error)
	Vouchers(ctx context.Context, before idgen.ID, limit int) ([]service.Voucher, error)
}

// voucherView is a voucher as clients see it.
type voucherView struct {
	ID         idgen.ID  `json:"id"`
	Title      string    `json:"title"`
	PriceCents int64     `json:"price_cents"`
	PaySeconds int64     `json:"pay_seconds"`
	UserLimit  int       `json:"user_limit"`
	Total      int64     `json:"total"`
	Stock      int64     `json:"stock"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
	ServerTime time.Time `json:"server_time"`
}

func viewVoucher(v *service.Voucher) *voucherView {
	return &voucherView{
		ID: v.ID, Title: v.Title, PriceCents: v.PriceCents, PaySeconds: int64(v.PayWithin / time.Second),
		UserLimit: v.UserLimit, Total: v.Total, Stock: v.Stock,
		StartsAt: v.StartsAt.UTC(), EndsAt: v.EndsAt.UTC(), ServerTime: v.ServerTime.UTC(),
	}
}

// getVoucher is GET /api/v1/vouchers/{id}.
func (h *Handler) getVoucher(c *gin.Context) error {
	return h.withVoucher(c, h.cfg.Shop.Voucher)
}

// withVoucher does something with the voucher that the path names, and answers with it as it is then.
func (h *Handler) withVoucher(c *gin.Context, do func(context.Context, idgen.ID) (service.Voucher, error)) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	voucher, err := do(ctx, id)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, viewVoucher(&voucher))
}

// listVouchers is GET /api/v1/vouchers.
func (h *Handler) listVouchers(c *gin.Context) error {
	before, limit, err := page(c)
	if err != nil {
		return err
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	vouchers, err := h.cfg.Shop.Vouchers(ctx, before, limit)
	if err != nil {
		return err
	}
	list := struct {
		Vouchers []*voucherView `json:"vouchers"`
		Next     idgen.ID       `json:"next,omitzero"`
	}{Vouchers: make([]*voucherView, len(vouchers))}
	for i := range vouchers {
		list.Vouchers[i] = viewVoucher(&vouchers[i])
	}
	if len(vouchers) == limit {
		list.Next = vouchers[limit-1].ID
	}
	return respond(c, http.StatusOK, list)
}
