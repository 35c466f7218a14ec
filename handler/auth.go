package handler

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/handler/token"
	"seckill/service"
)

const bearer = "Bearer "

var (
	errNoToken      = authProblem(codeUnauthenticated, "", "send a token in the header Authorization: Bearer …")
	errExpiredToken = authProblem(codeUnauthenticated, `, error="invalid_token", error_description="expired"`, "the token has expired; get a new one")
	errRevokedToken = authProblem(codeUnauthenticated, `, error="invalid_token", error_description="revoked"`, "the token was revoked; get a new one")
	errBadToken     = authProblem(codeUnauthenticated, `, error="invalid_token", error_description="not valid here"`, "the token is not valid for this shop")
	errNotAdmin     = authProblem(codeForbidden, `, error="insufficient_scope", error_description="role admin needed"`, "only an admin may do this")
)

// authProblem returns a problem with a challenge of RFC 6750, section 3.
func authProblem(code service.Code, parameters, detail string) *problem {
	p := newProblem(code, detail)
	p.challenge = `Bearer realm="seckill"` + parameters
	return p
}

const claimsKey = "claims"

// authenticate verifies the token of a request and keeps its claims for claimsOf.
func (h *Handler) authenticate(c *gin.Context) error {
	values := c.Request.Header["Authorization"]
	if len(values) != 1 || len(values[0]) < len(bearer) || !strings.EqualFold(values[0][:len(bearer)], bearer) {
		return errNoToken
	}
	claims, err := h.tokens.Verify(values[0][len(bearer):])
	switch {
	case errors.Is(err, token.ErrExpired):
		return errExpiredToken
	case errors.Is(err, token.ErrRevoked):
		return errRevokedToken
	case err != nil:
		return errBadToken
	}
	c.Set(claimsKey, claims)
	return nil
}

// claimsOf returns the claims of an authenticated request.
func claimsOf(c *gin.Context) token.Claims { return c.MustGet(claimsKey).(token.Claims) }

func userOf(c *gin.Context) service.UserID { return claimsOf(c).User }

func requireAdmin(c *gin.Context) error {
	if claimsOf(c).Role != token.Admin {
		return errNotAdmin
	}
	return nil
}

// guestSession is POST /api/v1/session/guest. It issues a token for a new user.
func (h *Handler) guestSession(c *gin.Context) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	claims := token.Claims{User: newGuest(), Role: token.User, Expires: time.Now().Add(h.cfg.GuestTTL).Truncate(time.Second)}
	signed, err := token.Sign(h.cfg.Keys[0], claims)
	if err != nil {
		return err
	}
	return respond(c, http.StatusCreated, struct {
		Token     string         `json:"token"`
		UserID    service.UserID `json:"user_id,string"`
		ExpiresAt time.Time      `json:"expires_at"`
	}{signed, claims.User, claims.Expires.UTC()})
}

// newGuest returns a random user id of at least 2^62. Ids of users with accounts are expected to be lower, so that a guest
// never gets the id of such a user.
func newGuest() service.UserID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return service.UserID(binary.LittleEndian.Uint64(b[:])>>2 | 1<<62)
}
