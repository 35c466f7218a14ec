package handler

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// voucherOffice is where admins put vouchers on sale.
type voucherOffice interface {
	CreateVoucher(ctx context.Context, v service.NewVoucher) (service.Voucher, error)
	ChangeVoucher(ctx context.Context, id idgen.ID, c service.VoucherChange) (service.Voucher, error)
	AddStock(ctx context.Context, id idgen.ID, units int64, requestID string) (service.Voucher, error)
	EndSale(ctx context.Context, id idgen.ID) (service.Voucher, error)
}

// What a new voucher has if the admin does not say.
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
	v := service.NewVoucher{
		Title: body.Title, PriceCents: body.PriceCents, Stock: body.Stock,
		UserLimit: orElse(body.UserLimit, defaultUserLimit),
		PayWithin: seconds(orElse(body.PaySeconds, defaultPaySeconds)),
		StartsAt:  body.StartsAt, EndsAt: body.EndsAt,
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	voucher, err := h.cfg.Shop.CreateVoucher(ctx, v)
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/vouchers/"+voucher.ID.String())
	return respond(c, http.StatusCreated, viewVoucher(&voucher))
}

func orElse[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// seconds keeps a number that is too large for a duration out of range instead of wrapping it round.
func seconds(n int64) time.Duration {
	const beyond = int64(service.MaxPayWithin/time.Second) + 1
	return time.Duration(max(-1, min(n, beyond))) * time.Second
}

// changeVoucher is PATCH /api/v1/admin/vouchers/{id}.
func (h *Handler) changeVoucher(c *gin.Context) error {
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
	return h.withVoucher(c, func(ctx context.Context, id idgen.ID) (service.Voucher, error) {
		return h.cfg.Shop.ChangeVoucher(ctx, id, service.VoucherChange(body))
	})
}

// addStock is POST /api/v1/admin/vouchers/{id}/stock.
func (h *Handler) addStock(c *gin.Context) error {
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
		key = rand.Text() // ours to know, so that an unknown outcome can be settled
	}
	return h.withVoucher(c, func(ctx context.Context, id idgen.ID) (service.Voucher, error) {
		voucher, err := h.cfg.Shop.AddStock(ctx, id, body.Units, key)
		return voucher, nameUnknown(err, key)
	})
}

// nameUnknown adds the request id to an unknown outcome.
func nameUnknown(err error, requestID string) error {
	var e *service.Error
	if !errors.As(err, &e) || e.Code != service.CodeUnknown {
		return err
	}
	named := *e
	named.RequestID = requestID
	return &named
}

// endSale is POST /api/v1/admin/vouchers/{id}/end.
func (h *Handler) endSale(c *gin.Context) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	return h.withVoucher(c, h.cfg.Shop.EndSale)
}

// audit is GET /api/v1/admin/audit. It may take longer than the server gives other answers.
func (h *Handler) audit(c *gin.Context) error {
	deadline := time.Now().Add(h.cfg.AuditTimeout + h.cfg.RequestTimeout)
	if err := http.NewResponseController(c.Writer).SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	ctx, cancel := within(c, h.cfg.AuditTimeout)
	defer cancel()
	audit, err := h.cfg.Audit(ctx)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, toAuditJSON(&audit))
}
