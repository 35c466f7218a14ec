package handler

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// routes lists all routes. Handlers and checks return errors; fail (problem.go) turns them
// into answers.
func (h *Handler) routes(e *gin.Engine) {
	h.probes(e)
	e.GET("/openapi.yaml", serveOpenAPI)
	e.GET("/docs", func(c *gin.Context) { c.Redirect(http.StatusMovedPermanently, "/docs/") })
	docs := newDocs()
	e.GET("/docs/", docs)
	e.GET("/docs/:asset", docs)

	api := e.Group("/api/v1", setHeaders, h.handle(h.limitAddress))
	requestTimeout := withTimeout(h.cfg.RequestTimeout)

	public := api.Group("", requestTimeout)
	public.GET("/vouchers", h.handle(h.listVouchers))
	public.GET("/vouchers/:id", h.handleID(h.getVoucher))
	if h.cfg.Guests {
		public.POST("/session/guest", h.handle(h.guestSession))
	}

	user := api.Group("/orders", h.handle(h.authenticate), h.handle(h.limitUser))
	user.POST("", withTimeout(h.cfg.PlaceTimeout), h.handle(h.placeOrder))
	user.GET("", requestTimeout, h.handle(h.listOrders))
	user.GET("/:id", requestTimeout, h.handleID(h.getOrder))
	user.POST("/:id/pay", requestTimeout, h.handleID(h.payOrder))
	user.POST("/:id/cancel", requestTimeout, h.handleID(h.cancelOrder))

	admin := api.Group("/admin", h.handle(h.authenticate), h.handle(requireAdmin))
	if h.cfg.Audit != nil {
		admin.GET("/audit", withTimeout(h.cfg.AuditTimeout), h.handle(h.audit))
	}
	admin.Use(requestTimeout) // for the routes that follow
	admin.POST("/vouchers", h.handle(h.createVoucher))
	admin.PATCH("/vouchers/:id", h.handleID(h.changeVoucher))
	admin.POST("/vouchers/:id/stock", h.handleID(h.addStock))
	admin.POST("/vouchers/:id/end", h.handleID(h.endSale))
	if h.cfg.IDs != nil {
		admin.POST("/ids", h.handle(h.makeIDs))
		admin.GET("/ids/:id", h.handleID(h.decodeID))
	}
	if h.cfg.Outbox != nil {
		admin.GET("/outbox", h.handle(h.listOutbox))
		admin.GET("/outbox/:id", h.handleID(h.getOutbox))
		admin.POST("/outbox/:id/retry", h.handleID(h.retryOutbox))
	}

	if h.cfg.Board != nil {
		viewer := api.Group("/board")
		if h.cfg.BoardForAdmins {
			viewer.Use(h.handle(h.authenticate), h.handle(requireAdmin))
		}
		viewer.GET("", h.handle(h.getBoard))
		viewer.GET("/stream", h.handle(h.streamBoard)) // no timeout
		admin.POST("/board/marks", h.handle(h.markBoard))
	}
}

// probes adds the routes for load balancers, process managers and Prometheus.
func (h *Handler) probes(e *gin.Engine) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		e.Handle(method, "/healthz", h.handle(healthz))
		e.Handle(method, "/readyz", h.handle(h.readyz))
	}
	if h.cfg.Metrics != nil {
		e.GET("/metrics", gin.WrapH(h.cfg.Metrics))
	}
}

// handle turns a handler or check that returns an error into one for gin. An error ends the request.
func (h *Handler) handle(next func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := next(c); err != nil {
			h.fail(c, err)
		}
	}
}

// handleID is handle for a route with an id. A text that is not an id is a resource that does not exist.
func (h *Handler) handleID(next func(*gin.Context, idgen.ID) error) gin.HandlerFunc {
	return h.handle(func(c *gin.Context) error {
		id, err := idgen.ParseID(c.Param("id"))
		if err != nil {
			return service.ErrNotFound
		}
		return next(c, id)
	})
}

// withTimeout limits the context of a request, which also ends when the client goes away.
func withTimeout(timeout time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), timeout)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// setHeaders forbids caching, because orders are private and stock changes all the time, and guessing of content types.
func setHeaders(c *gin.Context) {
	c.Header("Cache-Control", "no-store")
	c.Header("X-Content-Type-Options", "nosniff")
}

// notFound answers requests that no route matches.
func (h *Handler) notFound(c *gin.Context) {
	if h.cfg.Web != nil && !isAPI(c.Request.URL.Path) {
		c.Status(http.StatusOK) // instead of gin's 404; the page may set another one
		h.cfg.Web.ServeHTTP(c.Writer, c.Request)
		return
	}
	h.fail(c, errNoSuchRoute)
}

func isAPI(path string) bool { return strings.HasPrefix(path, "/api/") }
