package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"seckill/service"
)

// logAccess logs requests and calls Config.Observe.
func (h *Handler) logAccess(c *gin.Context) {
	start, client := time.Now(), c.Request.Context()
	c.Next()
	took := time.Since(start)
	status := c.Writer.Status()
	if h.cfg.Observe != nil && !isStream(c) {
		h.cfg.Observe(c.Request.Method, c.FullPath(), status, took)
	}
	switch {
	case status >= http.StatusInternalServerError && !isExpected(c, client):
		h.logRequest(c, slog.LevelError, took, 0)
	case h.accessLog.Allow():
		h.logRequest(c, slog.LevelInfo, took, h.unlogged.Swap(0))
	default:
		h.unlogged.Add(1)
	}
}

// newAccessLimiter returns the limiter of the access log; a negative rate is no limit.
func newAccessLimiter(perSecond int) *rate.Limiter {
	if perSecond < 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), perSecond)
}

// isExpected reports whether a 503 needs no log line of its own: metrics count full queues, and nobody waits for an answer
// after the client is gone.
func isExpected(c *gin.Context, client context.Context) bool {
	last := c.Errors.Last()
	return c.Writer.Status() == http.StatusServiceUnavailable &&
		(last == nil || errors.Is(last.Err, service.ErrBusy) || errors.Is(client.Err(), context.Canceled))
}

func (h *Handler) logRequest(c *gin.Context, level slog.Level, took time.Duration, unlogged int64) {
	attrs := []slog.Attr{
		slog.String("method", c.Request.Method), slog.String("path", c.Request.URL.Path),
		slog.Int("status", c.Writer.Status()), slog.Duration("took", took),
		slog.String("client", c.ClientIP()),
	}
	if last := c.Errors.Last(); last != nil {
		attrs = append(attrs, slog.String("error", last.Err.Error()))
	}
	if unlogged > 0 {
		attrs = append(attrs, slog.Int64("not_logged_before", unlogged))
	}
	h.cfg.Log.LogAttrs(c.Request.Context(), level, "request", attrs...)
}

// recover answers a panic with an internal error, and logs the stack.
func (h *Handler) recover(c *gin.Context) {
	defer func() {
		cause := recover()
		switch cause {
		case nil:
			return
		case http.ErrAbortHandler: // the documented way to close a connection
			panic(cause)
		}
		h.cfg.Log.ErrorContext(c.Request.Context(), "panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		err := fmt.Errorf("panic: %v", cause)
		if c.Writer.Written() {
			_ = c.Error(err)
			panic(http.ErrAbortHandler) // the client must see that the answer is incomplete
		}
		h.fail(c, err)
	}()
	c.Next()
}

// trace calls Config.Trace.
func (h *Handler) trace(c *gin.Context) {
	if !isAPI(c.FullPath()) || isStream(c) {
		c.Next()
		return
	}
	traced, answered := h.cfg.Trace(c.Writer, c.Request, c.FullPath())
	c.Request = traced
	defer func() {
		var err error
		if last := c.Errors.Last(); last != nil {
			err = last.Err
		}
		answered(c.Writer.Status(), err)
	}()
	c.Next()
}
