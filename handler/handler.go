// Package handler is the shop's HTTP API. Every route is listed in routes.go; each resource has a file; problem.go maps
// errors to answers. What the API promises to clients is written in openapi.yaml.
package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"seckill/handler/board"
	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// Shop is the part of service.Shop that the handlers use.
type Shop interface {
	PlaceOrder(ctx context.Context, req service.PlaceRequest) (order service.Order, replayed bool, err error)
	PayOrder(ctx context.Context, user service.UserID, id idgen.ID, paymentID string) (service.Order, error)
	CancelOrder(ctx context.Context, user service.UserID, id idgen.ID) (service.Order, error)
	Order(ctx context.Context, user service.UserID, id idgen.ID) (service.Order, error)
	Orders(ctx context.Context, user service.UserID, before idgen.ID, limit int) ([]service.Order, error)

	Voucher(ctx context.Context, id idgen.ID) (service.Voucher, error)
	Vouchers(ctx context.Context, before idgen.ID, limit int) ([]service.Voucher, error)
	CreateVoucher(ctx context.Context, v service.NewVoucher) (service.Voucher, error)
	ChangeVoucher(ctx context.Context, id idgen.ID, c service.VoucherChange) (service.Voucher, error)
	AddStock(ctx context.Context, id idgen.ID, units int64, requestID string) (service.Voucher, error)
	EndSale(ctx context.Context, id idgen.ID) (service.Voucher, error)
}

// Config configures a Handler. Shop, Keys, Ready and Log are required. Routes whose dependency is nil do not exist.
type Config struct {
	Shop Shop
	// Keys verify tokens, each at least token.MinKeyBytes long. The first one signs tokens of guests.
	Keys [][]byte
	// Revoked, if set, is called at every use of a token.
	Revoked func(token.Claims) bool
	// Ready returns an error if a server that the shop needs is not available. Its context expires after readyTimeout.
	Ready func(ctx context.Context) error
	Log   *slog.Logger

	IDs      idgen.Generator                                  // for /api/v1/admin/ids
	IDLayout *idgen.Layout                                    // of snowflake ids; nil for segments
	Outbox   outbox.Admin                                     // for /api/v1/admin/outbox
	Audit    func(ctx context.Context) (service.Audit, error) // for /api/v1/admin/audit
	Metrics  http.Handler                                     // for /metrics
	Web      http.Handler                                     // for all paths outside /api/ that no route matches

	Board          *board.Board // for /api/v1/board
	BoardForAdmins bool         // only admins may watch it

	Guests   bool          // anybody may get a token of a new user; for demonstrations only
	GuestTTL time.Duration // of such a token; default 1 h

	UserLimit    Rate // requests of one user; zero: unlimited
	AddressLimit Rate // requests from one IPv4 address or IPv6 /64 network; zero: unlimited
	// TrustedProxies are the addresses or networks whose X-Forwarded-For header is trusted. Default: none, the client's
	// address is the connection's.
	TrustedProxies []string
	// BodyLimit is the maximum size of a request body in bytes. Default 16 KiB.
	BodyLimit int

	// PlaceTimeout limits placing an order. It must be longer than service.Config.CommitTimeout, so that an unknown
	// commit can be resolved. Default 12 s.
	PlaceTimeout time.Duration
	// RequestTimeout limits all other use cases. Default 10 s.
	RequestTimeout time.Duration
	// AuditTimeout limits an audit. Default 5 min.
	AuditTimeout time.Duration

	// AccessLog is the maximum number of requests that are logged per second. Default 50; negative: no limit. Server
	// errors (5xx) are always logged, except 503 for a full queue or for a client that is gone.
	AccessLog int
	// Observe, if set, is called after every request except streams. route is the pattern that matched, or "". It must
	// not block.
	Observe func(method, route string, status int, took time.Duration)
	// Trace, if set, is called before every request below /api/ except streams. It returns the request to continue with
	// and a function that is called after the answer; err is set if the server is at fault.
	Trace func(w http.ResponseWriter, r *http.Request, route string) (traced *http.Request, answered func(status int, err error))
}

// Handler answers the shop's requests. It starts no goroutine and needs no closing.
type Handler struct {
	cfg       Config
	engine    *gin.Engine
	tokens    *token.Verifier
	users     *limiter[service.UserID]
	addresses *limiter[network]
	accessLog *rate.Limiter
	unlogged  atomic.Int64 // requests that were not logged since the last that was
	draining  atomic.Bool
}

// New returns a handler for all routes of the shop.
func New(cfg Config) (*Handler, error) {
	if cfg.Shop == nil {
		return nil, errors.New("handler: Shop is required")
	}
	tokens, err := token.NewVerifier(token.Config{Keys: cfg.Keys, Revoked: cfg.Revoked})
	if err != nil {
		return nil, err
	}
	h := &Handler{
		cfg: cfg, tokens: tokens,
		users: newLimiter[service.UserID](cfg.UserLimit), addresses: newLimiter[network](cfg.AddressLimit),
	}
	return h, h.init(h.routes)
}

// NewProbes returns a handler for only /healthz, /readyz and /metrics, for processes that do not sell. Ready and Log are
// required; Metrics, Observe and AccessLog are optional; other fields are ignored.
func NewProbes(cfg Config) (*Handler, error) {
	h := &Handler{cfg: Config{Ready: cfg.Ready, Log: cfg.Log, Metrics: cfg.Metrics, Observe: cfg.Observe, AccessLog: cfg.AccessLog}}
	return h, h.init(h.probes)
}

// init sets defaults and builds the router.
func (h *Handler) init(routes func(*gin.Engine)) error {
	c := &h.cfg
	if c.Ready == nil || c.Log == nil {
		return errors.New("handler: Ready and Log are required")
	}
	c.GuestTTL = cmp.Or(c.GuestTTL, time.Hour)
	c.PlaceTimeout = cmp.Or(c.PlaceTimeout, 12*time.Second)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 10*time.Second)
	c.AuditTimeout = cmp.Or(c.AuditTimeout, 5*time.Minute)
	c.BodyLimit = cmp.Or(c.BodyLimit, 16<<10)
	h.accessLog = newAccessLimiter(cmp.Or(c.AccessLog, 50))

	gin.SetMode(gin.ReleaseMode)
	h.engine = gin.New()
	h.engine.HandleMethodNotAllowed = true
	h.engine.RedirectTrailingSlash = false
	if err := h.engine.SetTrustedProxies(c.TrustedProxies); err != nil {
		return fmt.Errorf("trusted proxies: %w (each is an address or a network, such as 10.0.0.0/8)", err)
	}
	h.engine.Use(h.logAccess)
	if c.Trace != nil {
		h.engine.Use(h.trace) // inside logAccess, so that log lines carry the trace; outside recover, so that it sees panics
	}
	h.engine.Use(h.recover)
	routes(h.engine)
	h.engine.NoRoute(h.notFound)
	h.engine.NoMethod(h.handle(func(*gin.Context) error { return errMethodNotAllowed })) // gin sets Allow
	return nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.engine.ServeHTTP(w, r) }

// Drain makes /readyz fail from now on, so that load balancers stop sending requests. All other routes still answer.
func (h *Handler) Drain() { h.draining.Store(true) }

// Limits of a connection. WriteTimeout starts at the end of the request's header; it must cover ReadTimeout and
// Config.PlaceTimeout.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 10 * time.Second // header and body
	WriteTimeout      = 30 * time.Second
	IdleTimeout       = 2 * time.Minute
	MaxHeaderBytes    = 16 << 10
)

// NewServer returns an HTTP server with these limits. It logs its own errors as warnings.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: ReadHeaderTimeout, ReadTimeout: ReadTimeout,
		WriteTimeout: WriteTimeout, IdleTimeout: IdleTimeout, MaxHeaderBytes: MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
