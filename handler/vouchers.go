package handler

import (
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// voucherJSON is a voucher in an answer.
type voucherJSON struct {
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

func newVoucherJSON(v *service.Voucher) *voucherJSON {
	return &voucherJSON{
		ID: v.ID, Title: v.Title, PriceCents: v.PriceCents, PaySeconds: int64(v.PayWithin / time.Second),
		UserLimit: v.UserLimit, Total: v.Total, Stock: v.Stock,
		StartsAt: v.StartsAt.UTC(), EndsAt: v.EndsAt.UTC(), ServerTime: v.ServerTime.UTC(),
	}
}

func respondVoucher(c *gin.Context, voucher service.Voucher, err error) error {
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, newVoucherJSON(&voucher))
}

// getVoucher is GET /api/v1/vouchers/{id}.
func (h *Handler) getVoucher(c *gin.Context, id idgen.ID) error {
	voucher, err := h.cfg.Shop.Voucher(c.Request.Context(), id)
	return respondVoucher(c, voucher, err)
}

// listVouchers is GET /api/v1/vouchers.
func (h *Handler) listVouchers(c *gin.Context) error {
	before, limit, err := page(c)
	if err != nil {
		return err
	}
	vouchers, err := h.cfg.Shop.Vouchers(c.Request.Context(), before, limit)
	if err != nil {
		return err
	}
	list := struct {
		Vouchers []*voucherJSON `json:"vouchers"`
		Next     idgen.ID       `json:"next,omitzero"`
	}{}
	for i := range vouchers {
		list.Vouchers = append(list.Vouchers, newVoucherJSON(&vouchers[i]))
	}
	if len(vouchers) == limit {
		list.Next = vouchers[limit-1].ID
	}
	return respond(c, http.StatusOK, list)
}

// Defaults of a new voucher.
const (
	defaultUserLimit  = 1
	defaultPaySeconds = 900
)

// createVoucher is POST /api/v1/admin/vouchers.
func (h *Handler) createVoucher(c *gin.Context) error {
	var body struct {
		Title      string    `json:"title"`
		PriceCents int64     `json:"price_cents"`
		Stock      int64     `json:"stock"`
		UserLimit  *int      `json:"user_limit"`
		PaySeconds *int64    `json:"pay_seconds"`
		StartsAt   time.Time `json:"starts_at"`
		EndsAt     time.Time `json:"ends_at"`
	}
	if err := h.decode(c, &body); err != nil {
		return err
	}
	voucher, err := h.cfg.Shop.CreateVoucher(c.Request.Context(), service.NewVoucher{
		Title: body.Title, PriceCents: body.PriceCents, Stock: body.Stock,
		UserLimit: valueOr(body.UserLimit, defaultUserLimit),
		PayWithin: seconds(valueOr(body.PaySeconds, defaultPaySeconds)),
		StartsAt:  body.StartsAt, EndsAt: body.EndsAt,
	})
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/vouchers/"+voucher.ID.String())
	return respond(c, http.StatusCreated, newVoucherJSON(&voucher))
}

// seconds converts n to a duration. A number that does not fit becomes one that the service refuses.
func seconds(n int64) time.Duration {
	const tooLong = int64(service.MaxPayWithin/time.Second) + 1
	return time.Duration(max(-1, min(n, tooLong))) * time.Second
}

// changeVoucher is PATCH /api/v1/admin/vouchers/{id}.
func (h *Handler) changeVoucher(c *gin.Context, id idgen.ID) error {
	var body struct {
		Title      *string    `json:"title"`
		PriceCents *int64     `json:"price_cents"`
		UserLimit  *int       `json:"user_limit"`
		StartsAt   *time.Time `json:"starts_at"`
		EndsAt     *time.Time `json:"ends_at"`
	}
	if err := h.decode(c, &body); err != nil {
		return err
	}
	voucher, err := h.cfg.Shop.ChangeVoucher(c.Request.Context(), id, service.VoucherChange(body))
	return respondVoucher(c, voucher, err)
}

// addStock is POST /api/v1/admin/vouchers/{id}/stock.
func (h *Handler) addStock(c *gin.Context, id idgen.ID) error {
	var body struct {
		Units int64 `json:"units"`
	}
	if err := h.decode(c, &body); err != nil {
		return err
	}
	key, err := idempotencyKey(c.Request.Header)
	if err != nil {
		return err
	}
	if key == "" {
		key = rand.Text() // the answer to an unknown outcome names it
	}
	voucher, err := h.cfg.Shop.AddStock(c.Request.Context(), id, body.Units, key)
	if e, ok := errors.AsType[*service.Error](err); ok && e.Code == service.CodeUnknown {
		withKey := *e
		withKey.RequestID = key
		err = &withKey
	}
	return respondVoucher(c, voucher, err)
}

// endSale is POST /api/v1/admin/vouchers/{id}/end.
func (h *Handler) endSale(c *gin.Context, id idgen.ID) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	voucher, err := h.cfg.Shop.EndSale(c.Request.Context(), id)
	return respondVoucher(c, voucher, err)
}
