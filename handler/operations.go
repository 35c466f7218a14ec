package handler

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/swaggest/swgui/v5emb"
)

// readyTimeout limits Config.Ready. It is shorter than the usual second of a load balancer's probe.
const readyTimeout = 750 * time.Millisecond

type probeJSON struct {
	Status string `json:"status"`
}

// healthz is GET /healthz: the process is alive. It does not check other servers, because a restart would not help.
func healthz(c *gin.Context) error { return respond(c, http.StatusOK, probeJSON{"ok"}) }

// readyz is GET /readyz: this instance can take orders.
func (h *Handler) readyz(c *gin.Context) error {
	if h.draining.Load() {
		return notReady("the shop is shutting down", nil)
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := h.cfg.Ready(ctx); err != nil {
		return notReady("a server that the shop needs is not available", err)
	}
	return respond(c, http.StatusOK, probeJSON{"ready"})
}

// notReady adds the cause for the log; clients do not see it, because it may name servers.
func notReady(detail string, cause error) error {
	p := newProblem(codeNotReady, detail)
	p.RetryAfter = 1
	return errors.Join(p, cause)
}

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the description of the API in YAML. Callers must not change it.
func OpenAPI() []byte { return openAPI }

func serveOpenAPI(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", openAPI) }

// docsPolicy allows the page to load files of this server only. Its script and styles are inline.
const docsPolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

// newDocs returns the handler of Swagger UI, which is embedded in the program.
func newDocs() gin.HandlerFunc {
	ui := v5emb.New("Seckill", "/openapi.yaml", "/docs/")
	return func(c *gin.Context) {
		c.Header("Content-Security-Policy", docsPolicy)
		ui.ServeHTTP(c.Writer, c.Request)
	}
}
