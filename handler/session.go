package handler

import (
	"crypto/rand"
	"encoding/binary"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/handler/token"
	"seckill/service"
)

// guestSession is POST /api/v1/session/guest: a token for a user that nobody else is.
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

// newGuest draws from the upper half of all user ids, which users with accounts, counted from one, do not reach.
func newGuest() service.UserID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return service.UserID(binary.LittleEndian.Uint64(b[:])>>2 | 1<<62)
}
