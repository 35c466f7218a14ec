package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
)

// log writes the access log and tells the observer.
func (h *Handler) log(c *gin.Context) {
	start := time.Now()
	c.Next()
	took := time.Since(start)
	status := c.Writer.Status()
	if h.cfg.Observe != nil && !lasts(c) {
		h.cfg.Observe(c.Request.Method, c.FullPath(), status, took)
	}
	if status >= http.StatusInternalServerError && !(status == http.StatusServiceUnavailable && expected(c)) {
		h.writeLog(c, slog.LevelError, 0, took)
		return
	}
	if skipped, admitted := h.access.admit(start.Add(took)); admitted {
		h.writeLog(c, slog.LevelInfo, skipped, took)
	}
}

// lasts tells requests that take as long as somebody watches: their time says nothing about the shop's.
func lasts(c *gin.Context) bool { return c.FullPath() == boardStream }

// expected tells answers 503 that are no news one by one: the shop is full, which metrics count, or the client has gone
// and nobody waited for the outcome.
func expected(c *gin.Context) bool {
	last := c.Errors.Last()
	return last == nil || errors.Is(last.Err, service.ErrBusy) || errors.Is(c.Request.Context().Err(), context.Canceled)
}

func (h *Handler) writeLog(c *gin.Context, level slog.Level, skipped int64, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("method", c.Request.Method), slog.String("path", c.Request.URL.Path),
		slog.Int("status", c.Writer.Status()), slog.Duration("took", took),
		slog.String("client", c.ClientIP()),
	}
	if last := c.Errors.Last(); last != nil {
		attrs = append(attrs, slog.String("error", last.Err.Error()))
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int64("not_logged_before", skipped))
	}
	h.cfg.Log.LogAttrs(c.Request.Context(), level, "request", attrs...)
}

// recover answers a panic and keeps the server alive. The log has the stack.
func (h *Handler) recover(c *gin.Context) {
	defer func() {
		cause := recover()
		switch cause {
		case nil:
			return
		case http.ErrAbortHandler: // the documented way to drop a connection
			panic(cause)
		}
		h.cfg.Log.ErrorContext(c.Request.Context(), "panic", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		err := fmt.Errorf("panic: %v", cause)
		if c.Writer.Written() {
			_ = c.Error(err)
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
		h.fail(c, err)
		c.Abort()
	}()
	c.Next()
}

// trace lets Config.Trace look on.
func (h *Handler) trace(c *gin.Context) {
	if !isAPI(c.FullPath()) || lasts(c) {
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

// sampler admits a number of events each second and counts the rest.
type sampler struct {
	perSecond int64 // negative: all
	second    atomic.Int64
	admitted  atomic.Int64
	skipped   atomic.Int64
}

// admit tells whether to log an event, and how many were left out since the last that was logged.
func (s *sampler) admit(now time.Time) (skipped int64, ok bool) {
	if s.perSecond < 0 {
		return 0, true
	}
	if second, current := s.second.Load(), now.Unix(); second < current && s.second.CompareAndSwap(second, current) {
		s.admitted.Store(0)
	}
	if s.admitted.Load() >= s.perSecond || s.admitted.Add(1) > s.perSecond {
		s.skipped.Add(1)
		return 0, false
	}
	return s.skipped.Swap(0), true
}
