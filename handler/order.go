package handler

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// orderDesk is where users deal with their orders.
type orderDesk interface {
	PlaceOrder(ctx context.Context, req service.PlaceRequest) (order service.Order, replayed bool, err error)
	PayOrder(ctx context.Context, user service.UserID, id idgen.ID, paymentID string) (service.Order, error)
	CancelOrder(ctx context.Context, user service.UserID, id idgen.ID) (service.Order, error)
	Order(ctx context.Context, user service.UserID, id idgen.ID) (service.Order, error)
	Orders(ctx context.Context, user service.UserID, before idgen.ID, limit int) ([]service.Order, error)
}

// orderView is an order as clients see it; appendOrder writes the same.
type orderView struct {
	ID          idgen.ID       `json:"id"`
	VoucherID   idgen.ID       `json:"voucher_id"`
	UserID      service.UserID `json:"user_id,string"`
	RequestID   string         `json:"request_id"`
	Status      string         `json:"status"`
	CloseReason string         `json:"close_reason,omitempty"`
	PriceCents  int64          `json:"price_cents"`
	CreatedAt   time.Time      `json:"created_at"`
	PayBy       time.Time      `json:"pay_by,omitzero"`
	PaidAt      time.Time      `json:"paid_at,omitzero"`
	ClosedAt    time.Time      `json:"closed_at,omitzero"`
}

func viewOrder(o *service.Order) *orderView {
	return &orderView{
		ID: o.ID, VoucherID: o.VoucherID, UserID: o.UserID, RequestID: o.RequestID,
		Status: o.Status.String(), CloseReason: o.CloseReason.String(), PriceCents: o.PriceCents,
		CreatedAt: o.CreatedAt.UTC(), PayBy: o.PayBy.UTC(), PaidAt: o.PaidAt.UTC(), ClosedAt: o.ClosedAt.UTC(),
	}
}

// placeOrder is POST /api/v1/orders.
func (h *Handler) placeOrder(c *gin.Context, user service.UserID) error {
	var body struct {
		VoucherID idgen.ID `json:"voucher_id"`
	}
	if err := h.decode(c, &body); err != nil {
		return err
	}
	req := service.PlaceRequest{UserID: user, VoucherID: body.VoucherID}
	var err error
	if req.RequestID, err = idempotencyKey(c.Request.Header); err != nil {
		return err
	}
	ctx, cancel := within(c, h.cfg.PlaceTimeout)
	defer cancel()
	order, replayed, err := h.cfg.Shop.PlaceOrder(ctx, req)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if replayed {
		status = http.StatusOK
	}
	c.Header("Location", "/api/v1/orders/"+order.ID.String())
	h.answerOrder(c, status, &order)
	return nil
}

// getOrder is GET /api/v1/orders/{id}.
func (h *Handler) getOrder(c *gin.Context, user service.UserID) error {
	return h.withOrder(c, func(ctx context.Context, id idgen.ID) (service.Order, error) {
		return h.cfg.Shop.Order(ctx, user, id)
	})
}

// payOrder is POST /api/v1/orders/{id}/pay.
func (h *Handler) payOrder(c *gin.Context, user service.UserID) error {
	var body struct {
		PaymentID *string `json:"payment_id"`
	}
	if err := h.decodeOptional(c, &body); err != nil {
		return err
	}
	paymentID := ""
	if body.PaymentID != nil {
		if paymentID = *body.PaymentID; paymentID == "" {
			return invalid("payment_id", "must not be empty; leave it out if no money has moved")
		}
	}
	return h.withOrder(c, func(ctx context.Context, id idgen.ID) (service.Order, error) {
		return h.cfg.Shop.PayOrder(ctx, user, id, paymentID)
	})
}

// cancelOrder is POST /api/v1/orders/{id}/cancel.
func (h *Handler) cancelOrder(c *gin.Context, user service.UserID) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	return h.withOrder(c, func(ctx context.Context, id idgen.ID) (service.Order, error) {
		return h.cfg.Shop.CancelOrder(ctx, user, id)
	})
}

// withOrder does something with the order that the path names, and answers with it as it is then.
func (h *Handler) withOrder(c *gin.Context, do func(context.Context, idgen.ID) (service.Order, error)) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	order, err := do(ctx, id)
	if err != nil {
		return err
	}
	h.answerOrder(c, http.StatusOK, &order)
	return nil
}

// listOrders is GET /api/v1/orders.
func (h *Handler) listOrders(c *gin.Context, user service.UserID) error {
	before, limit, err := page(c)
	if err != nil {
		return err
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	orders, err := h.cfg.Shop.Orders(ctx, user, before, limit)
	if err != nil {
		return err
	}
	list := struct {
		Orders []*orderView `json:"orders"`
		Next   idgen.ID     `json:"next,omitzero"`
	}{Orders: make([]*orderView, len(orders))}
	for i := range orders {
		list.Orders[i] = viewOrder(&orders[i])
	}
	if len(orders) == limit {
		list.Next = orders[limit-1].ID
	}
	return respond(c, http.StatusOK, list)
}
