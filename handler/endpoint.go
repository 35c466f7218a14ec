package handler

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
)

// endpoint is a handler whose error is answered by fail.
type endpoint func(c *gin.Context) error

// open lets anybody call.
func (h *Handler) open(next endpoint) gin.HandlerFunc {
	return func(c *gin.Context) {
		header := c.Writer.Header()
		header["Cache-Control"] = noStore // orders are private, and stock is old in a moment
		header["X-Content-Type-Options"] = noSniff
		if h.addresses != nil {
			if wait := h.addresses.wait(h.network(c), time.Now()); wait > 0 {
				h.fail(c, rateLimited("your address", wait))
				return
			}
		}
		if err := next(c); err != nil {
			h.fail(c, err)
		}
	}
}

// Values of headers, shared by all answers: net/http does not change them.
var (
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
)

// user lets a user call, within the limits of one.
func (h *Handler) user(next func(*gin.Context, service.UserID) error) gin.HandlerFunc {
	return h.open(func(c *gin.Context) error {
		claims, err := h.authenticate(c.Request)
		if err != nil {
			return err
		}
		if h.users != nil {
			if wait := h.users.wait(claims.User, time.Now()); wait > 0 {
				return rateLimited("you", wait)
			}
		}
		return next(c, claims.User)
	})
}

// admin lets an admin call.
func (h *Handler) admin(next endpoint) gin.HandlerFunc {
	return h.open(func(c *gin.Context) error {
		claims, err := h.authenticate(c.Request)
		switch {
		case err != nil:
			return err
		case claims.Role != token.Admin:
			return forbidden
		}
		return next(c)
	})
}

// network is what the address limit counts by: one IPv4 address, or the /64 that an IPv6 client has to itself.
type network = netip.Prefix

func (h *Handler) network(c *gin.Context) network {
	var addr netip.Addr
	if len(h.cfg.TrustedProxies) > 0 {
		addr, _ = netip.ParseAddr(c.ClientIP())
	} else if ap, err := netip.ParseAddrPort(c.Request.RemoteAddr); err == nil {
		addr = ap.Addr()
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.Prefix(bits) // fails for no address at all: these share a bucket
	return prefix
}

// pathID is the id that the path names. What is no id names nothing.
func pathID(c *gin.Context) (idgen.ID, error) {
	id, err := idgen.ParseID(c.Param("id"))
	if err != nil {
		return 0, noSuchID
	}
	return id, nil
}

// within bounds a use case. It also ends when the client goes away.
func within(c *gin.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), timeout)
}

// respond answers with a JSON document.
func respond(c *gin.Context, status int, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	write(c, status, typeJSON, body)
	return nil
}

func write(c *gin.Context, status int, contentType []string, body []byte) {
	c.Writer.Header()["Content-Type"] = contentType
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // fails only if the client is gone
}

// notFound answers what no route matches.
func (h *Handler) notFound(c *gin.Context) {
	if h.cfg.Web != nil && !isAPI(c.Request.URL.Path) {
		c.Writer.WriteHeader(http.StatusOK) // gin has put 404 there; a page that writes no status means 200
		h.cfg.Web.ServeHTTP(c.Writer, c.Request)
		return
	}
	h.fail(c, noSuchRoute)
}

func isAPI(path string) bool { return len(path) >= 5 && path[:5] == "/api/" }

// methodNotAllowed answers where only other methods have a route; gin has set Allow.
func (h *Handler) methodNotAllowed(c *gin.Context) { h.fail(c, methodNotAllowed) }
