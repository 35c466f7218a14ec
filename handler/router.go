package handler

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// routes lists every route. open, user and admin (see endpoint.go) say who may call; what follows /api/v1 is limited in
// rate, and its errors are problem+json.
func (h *Handler) routes(e *gin.Engine) {
	h.probes(e)
	e.GET("/openapi.yaml", serveOpenAPI)
	e.GET("/docs", func(c *gin.Context) { c.Redirect(http.StatusMovedPermanently, "/docs/") })
	docs := newDocs()
	e.GET("/docs/", docs)
	e.GET("/docs/:asset", docs)

	v1 := e.Group("/api/v1")
	v1.GET("/vouchers", h.open(h.listVouchers))
	v1.GET("/vouchers/:id", h.open(h.getVoucher))

	v1.POST("/orders", h.user(h.placeOrder))
	v1.GET("/orders", h.user(h.listOrders))
	v1.GET("/orders/:id", h.user(h.getOrder))
	v1.POST("/orders/:id/pay", h.user(h.payOrder))
	v1.POST("/orders/:id/cancel", h.user(h.cancelOrder))

	v1.POST("/admin/vouchers", h.admin(h.createVoucher))
	v1.PATCH("/admin/vouchers/:id", h.admin(h.changeVoucher))
	v1.POST("/admin/vouchers/:id/stock", h.admin(h.addStock))
	v1.POST("/admin/vouchers/:id/end", h.admin(h.endSale))
	if h.cfg.IDs != nil {
		v1.POST("/admin/ids", h.admin(h.makeIDs))
		v1.GET("/admin/ids/:id", h.admin(h.decodeID))
	}
	if h.cfg.Outbox != nil {
		v1.GET("/admin/outbox", h.admin(h.listOutbox))
		v1.GET("/admin/outbox/:id", h.admin(h.showOutbox))
		v1.POST("/admin/outbox/:id/retry", h.admin(h.retryOutbox))
	}
	if h.cfg.Audit != nil {
		v1.GET("/admin/audit", h.admin(h.audit))
	}

	if h.cfg.Board != nil {
		watch := h.open
		if h.cfg.BoardForAdmins {
			watch = h.admin
		}
		v1.GET("/board", watch(h.showBoard))
		v1.GET("/board/stream", watch(h.streamBoard))
		v1.POST("/admin/board/marks", h.admin(h.markBoard))
	}

	if h.cfg.Guests {
		v1.POST("/session/guest", h.open(h.guestSession))
	}
}

// probes are the routes for whoever looks after the process. Next to those of a shop, or alone: see NewProbes.
func (h *Handler) probes(e *gin.Engine) {
	e.GET("/healthz", h.healthz)
	e.HEAD("/healthz", h.healthz)
	e.GET("/readyz", h.readyz)
	e.HEAD("/readyz", h.readyz)
	if h.cfg.Metrics != nil {
		e.GET("/metrics", gin.WrapH(h.cfg.Metrics))
	}
}
