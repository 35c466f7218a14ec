package handler

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// orderJSON is an order in an answer.
type orderJSON struct {
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

func newOrderJSON(o *service.Order) *orderJSON {
	return &orderJSON{
		ID: o.ID, VoucherID: o.VoucherID, UserID: o.UserID, RequestID: o.RequestID,
		Status: o.Status.String(), CloseReason: o.CloseReason.String(), PriceCents: o.PriceCents,
		CreatedAt: o.CreatedAt.UTC(), PayBy: o.PayBy.UTC(), PaidAt: o.PaidAt.UTC(), ClosedAt: o.ClosedAt.UTC(),
	}
}

// placeOrder is POST /api/v1/orders.
func (h *Handler) placeOrder(c *gin.Context) error {
	var body struct {
		VoucherID idgen.ID `json:"voucher_id"`
	}
	if err := h.decode(c, &body); err != nil {
		return err
	}
	key, err := idempotencyKey(c.Request.Header)
	if err != nil {
		return err
	}
	order, replayed, err := h.cfg.Shop.PlaceOrder(c.Request.Context(),
		service.PlaceRequest{UserID: userOf(c), VoucherID: body.VoucherID, RequestID: key})
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if replayed {
		status = http.StatusOK
	}
	c.Header("Location", "/api/v1/orders/"+order.ID.String())
	return respond(c, status, newOrderJSON(&order))
}

// getOrder is GET /api/v1/orders/{id}.
func (h *Handler) getOrder(c *gin.Context, id idgen.ID) error {
	order, err := h.cfg.Shop.Order(c.Request.Context(), userOf(c), id)
	return respondOrder(c, order, err)
}

// payOrder is POST /api/v1/orders/{id}/pay.
func (h *Handler) payOrder(c *gin.Context, id idgen.ID) error {
	var body struct {
		PaymentID *string `json:"payment_id"`
	}
	if err := h.decodeOptional(c, &body); err != nil {
		return err
	}
	if body.PaymentID != nil && *body.PaymentID == "" {
		return invalid("payment_id", "must not be empty; leave it out if no money was transferred")
	}
	order, err := h.cfg.Shop.PayOrder(c.Request.Context(), userOf(c), id, valueOr(body.PaymentID, ""))
	return respondOrder(c, order, err)
}

// cancelOrder is POST /api/v1/orders/{id}/cancel.
func (h *Handler) cancelOrder(c *gin.Context, id idgen.ID) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	order, err := h.cfg.Shop.CancelOrder(c.Request.Context(), userOf(c), id)
	return respondOrder(c, order, err)
}

func respondOrder(c *gin.Context, order service.Order, err error) error {
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, newOrderJSON(&order))
}

// listOrders is GET /api/v1/orders.
func (h *Handler) listOrders(c *gin.Context) error {
	before, limit, err := page(c)
	if err != nil {
		return err
	}
	orders, err := h.cfg.Shop.Orders(c.Request.Context(), userOf(c), before, limit)
	if err != nil {
		return err
	}
	list := struct {
		Orders []*orderJSON `json:"orders"`
		Next   idgen.ID     `json:"next,omitzero"`
	}{}
	for i := range orders {
		list.Orders = append(list.Orders, newOrderJSON(&orders[i]))
	}
	if len(orders) == limit {
		list.Next = orders[limit-1].ID
	}
	return respond(c, http.StatusOK, list)
}
