package handler

import (
	"time"

	"seckill/service"
)

// auditJSON is service.Audit as the API sends it.
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

func toAuditJSON(a *service.Audit) auditJSON {
	out := auditJSON{OK: a.OK, At: a.At, Totals: auditTotalsJSON(a.Totals), Findings: []findingJSON{}}
	for _, f := range a.Findings {
		out.Findings = append(out.Findings, findingJSON(f))
	}
	return out
}
