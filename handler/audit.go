package handler

import (
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
)

// audit is GET /api/v1/admin/audit.
func (h *Handler) audit(c *gin.Context) error {
	deadline := time.Now().Add(h.cfg.AuditTimeout + h.cfg.RequestTimeout) // longer than the server's write timeout
	if err := http.NewResponseController(c.Writer).SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	result, err := h.cfg.Audit(c.Request.Context())
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, newAuditJSON(&result))
}

// auditJSON is an audit in an answer.
type auditJSON struct {
	OK       bool            `json:"ok"`
	At       time.Time       `json:"at"`
	Totals   auditTotalsJSON `json:"totals"`
	Findings []findingJSON   `json:"findings"`
}

type auditTotalsJSON struct {
	Vouchers   int64 `json:"vouchers"`
	Total      int64 `json:"total"`
	Stock      int64 `json:"stock"`
	Orders     int64 `json:"orders"`
	Live       int64 `json:"live"`
	Pending    int64 `json:"pending"`
	Paid       int64 `json:"paid"`
	Closed     int64 `json:"closed"`
	Oversold   int64 `json:"oversold"`
	Duplicates int64 `json:"duplicates"`
	Events     int64 `json:"events"`
	Unsent     int64 `json:"unsent_events"`
	Effects    int64 `json:"effects"`
	RefundsDue int64 `json:"refunds_due"`
}

type findingJSON struct {
	ID        string              `json:"id"`
	Invariant int                 `json:"invariant"`
	Check     string              `json:"check"`
	OK        bool                `json:"ok"`
	Broken    int64               `json:"broken"`
	Rows      []map[string]string `json:"rows,omitempty"`
}

func newAuditJSON(a *service.Audit) auditJSON {
	out := auditJSON{OK: a.OK, At: a.At, Totals: auditTotalsJSON(a.Totals)}
	for _, f := range a.Findings {
		out.Findings = append(out.Findings, findingJSON(f))
	}
	return out
}
