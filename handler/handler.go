// Package handler is the shop's HTTP API: routes, authentication, limits, strict decoding, and the one place where
// errors become answers. What it promises to clients stands in openapi.yaml. Start reading in router.go.
package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// Shop is what the handlers need of service.Shop.
type Shop interface {
	orderDesk
	voucherShelf
	voucherOffice
}

// Config is what a Handler needs. Shop, Keys, Ready and Log are required.
type Config struct {
	Shop Shop
	// Keys verify tokens, each at least token.MinKeyBytes long; guest tokens are signed with the first.
	Keys [][]byte
	// Revoked, if set, is asked for every use of a token.
	Revoked func(token.Claims) bool
	// Ready tells whether the servers that the shop needs are there. It gets three quarters of a second.
	Ready func(ctx context.Context) error
	Log   *slog.Logger

	IDs      idgen.Generator // for the admin's routes about ids; nil: no such routes
	IDLayout *idgen.Layout   // of the ids, if they are snowflakes

	Outbox outbox.Admin // for the admin's routes about events; nil: no such routes

	Audit   func(ctx context.Context) (service.Audit, error) // nil: no such route
	Metrics http.Handler                                     // nil: no such route
	Web     http.Handler                                     // gets what no route matches, except below /api/; nil: not found

	Board          Screen // for the routes of the live board; nil: no such routes
	BoardForAdmins bool   // whether only admins may watch it

	Guests   bool          // whether anybody may get a session of a new user; for demonstrations only
	GuestTTL time.Duration // how long such a session lasts; default 1 h

	UserLimit    Rate // requests of one user; zero: unlimited
	AddressLimit Rate // requests from one IPv4 address or IPv6 /64 network; zero: unlimited
	// TrustedProxies are the addresses or networks whose X-Forwarded-For header tells the client's address. Default:
	// none, the address is the connection's.
	TrustedProxies []string
	// BodyLimit is the most bytes that a request body may have. Default 16 KiB.
	BodyLimit int

	// PlaceTimeout bounds placing an order. It has to be longer than service.Config.CommitTimeout, which else could not
	// settle what it began. Default 12 s.
	PlaceTimeout time.Duration
	// RequestTimeout bounds every other use case. Default 10 s.
	RequestTimeout time.Duration
	// AuditTimeout bounds an audit. Default 5 min.
	AuditTimeout time.Duration

	// AccessLog is the most requests a second that are logged; the next line tells how many were left out. Server
	// errors are always logged. Default 50; negative: all.
	AccessLog int
	// Observe, if set, is told of every answered request. route is the pattern that matched, "" if none did. It must
	// not block.
	Observe func(method, route string, status int, took time.Duration)
	// Trace, if set, is told of every request below /api/ before it is served. It returns the request to go on with, and
	// what is called when it was answered, with the error that is the server's fault, if any.
	Trace func(w http.ResponseWriter, r *http.Request, route string) (traced *http.Request, answered func(status int, err error))
}

// Rate is a token bucket.
type Rate struct {
	PerSecond float64 // zero: unlimited
	Burst     int     // how many may come at once; at least 1
}

// Handler answers the shop's requests. It starts no goroutine and owns nothing that has to be closed.
type Handler struct {
	cfg       Config
	engine    *gin.Engine
	tokens    *token.Verifier
	users     *limiter[service.UserID]
	addresses *limiter[network]
	access    sampler
	prepared  map[*service.Error]preparedProblem
	buffers   sync.Pool // *[]byte, each BodyLimit+1 long
	draining  atomic.Bool
}

// New builds the handler. It refuses a configuration that would not be safe.
func New(cfg Config) (*Handler, error) {
	if cfg.Shop == nil || cfg.Ready == nil || cfg.Log == nil {
		return nil, errors.New("handler: Shop, Ready and Log are required")
	}
	cfg.setDefaults()
	tokens, err := token.NewVerifier(token.Config{Keys: cfg.Keys, Revoked: cfg.Revoked})
	if err != nil {
		return nil, err
	}
	h := newHandler(cfg)
	h.tokens = tokens
	h.users, h.addresses = newLimiter[service.UserID](cfg.UserLimit), newLimiter[network](cfg.AddressLimit)
	h.buffers.New = func() any { b := make([]byte, cfg.BodyLimit+1); return &b }
	if h.engine, err = h.newEngine(h.routes); err != nil {
		return nil, err
	}
	return h, nil
}

// NewProbes builds a handler that answers nothing but /healthz, /readyz and /metrics, for a process that is no shop. Of
// the configuration it needs Ready and Log, and heeds Metrics, Observe and AccessLog.
func NewProbes(cfg Config) (*Handler, error) {
	if cfg.Ready == nil || cfg.Log == nil {
		return nil, errors.New("handler: Ready and Log are required")
	}
	cfg.setDefaults()
	h := newHandler(Config{Ready: cfg.Ready, Log: cfg.Log, Metrics: cfg.Metrics, Observe: cfg.Observe, AccessLog: cfg.AccessLog})
	var err error
	if h.engine, err = h.newEngine(h.probes); err != nil {
		return nil, err
	}
	return h, nil
}

func newHandler(cfg Config) *Handler {
	return &Handler{cfg: cfg, access: sampler{perSecond: int64(cfg.AccessLog)}, prepared: prepareProblems()}
}

func (c *Config) setDefaults() {
	for value, byDefault := range map[*time.Duration]time.Duration{
		&c.GuestTTL: time.Hour, &c.PlaceTimeout: 12 * time.Second,
		&c.RequestTimeout: 10 * time.Second, &c.AuditTimeout: 5 * time.Minute,
	} {
		if *value <= 0 {
			*value = byDefault
		}
	}
	if c.BodyLimit <= 0 {
		c.BodyLimit = 16 << 10
	}
	if c.AccessLog == 0 {
		c.AccessLog = 50
	}
}

// newEngine sets gin up so that each URL has one spelling and each refusal is ours.
func (h *Handler) newEngine(routes func(*gin.Engine)) (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	if err := e.SetTrustedProxies(h.cfg.TrustedProxies); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w (each is an address or a network, such as 10.0.0.0/8)", err)
	}
	e.Use(h.log)
	if h.cfg.Trace != nil {
		e.Use(h.trace) // between the two: the log knows the trace, and the trace what became of a panic
	}
	e.Use(h.recover)
	routes(e)
	e.NoRoute(h.notFound)
	e.NoMethod(h.methodNotAllowed)
	return e, nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.engine.ServeHTTP(w, r) }

// Drain makes /readyz fail from now on, so that load balancers send their requests elsewhere. Everything else is still
// answered.
func (h *Handler) Drain() { h.draining.Store(true) }
