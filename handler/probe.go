package handler

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// readyTimeout is how long the servers may take to answer: with it an instance that is cut off from them says so within
// a second, before whoever asks gives up waiting.
const readyTimeout = 750 * time.Millisecond

type probeAnswer struct {
	Status string `json:"status"`
}

// healthz is GET /healthz: the process is alive. Whoever restarts it when this fails must not do so because a database
// is away.
func (h *Handler) healthz(c *gin.Context) {
	if err := respond(c, http.StatusOK, probeAnswer{"ok"}); err != nil {
		h.fail(c, err)
	}
}

// readyz is GET /readyz: orders can be taken here.
func (h *Handler) readyz(c *gin.Context) {
	if err := h.ready(c); err != nil {
		h.fail(c, err)
		return
	}
	if err := respond(c, http.StatusOK, probeAnswer{"ready"}); err != nil {
		h.fail(c, err)
	}
}

func (h *Handler) ready(c *gin.Context) error {
	if h.draining.Load() {
		return notReady("the shop is shutting down", nil)
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := h.cfg.Ready(ctx); err != nil {
		return notReady("a server that the shop needs is away or not migrated", err)
	}
	return nil
}

// notReady keeps the cause for the log: it may name servers.
func notReady(detail string, cause error) error {
	p := newProblem(codeNotReady, detail)
	p.RetryAfter = 1
	return errors.Join(p, cause)
}
