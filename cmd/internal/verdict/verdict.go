// Package verdict answers one question for every command: did anything go wrong? Check compares what clients were told
// (Claims) with the orders in the database and audits the database. An audit alone shows that a database is consistent;
// only the clients' side can show that an order is missing, or exists although its buyer was told that it does not.
package verdict

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/dustin/go-humanize"

	"seckill/loadtest"
	"seckill/service"
	"seckill/service/idgen"
)

// Verdict is the result of all checks.
type Verdict struct {
	OK bool `json:"ok"`
	Counts
	Answers  map[loadtest.Outcome]int64 `json:"answers,omitempty"` // to requests to place an order
	Sales    []Sale                     `json:"sales,omitempty"`   // one for each claimed voucher, by id
	Findings []Finding                  `json:"findings"`          // one for each check, whether it holds or not
}

// Counts are the numbers of a verdict.
type Counts struct {
	// In the database.
	Vouchers int64 `json:"vouchers"`
	Total    int64 `json:"total"`  // units ever put on sale
	Stock    int64 `json:"stock"`  // units left
	Orders   int64 `json:"orders"` // ever placed
	Live     int64 `json:"live"`   // orders that hold a unit
	Pending  int64 `json:"pending"`
	Paid     int64 `json:"paid"`
	Closed   int64 `json:"closed"`
	Events   int64 `json:"events"`
	Effects  int64 `json:"effects"`

	// Claimed by clients.
	Requests     int64 `json:"requests"`
	Acknowledged int64 `json:"acknowledged"` // orders that clients were told of
	Unknown      int64 `json:"unknown"`      // requests whose outcome was unknown at first

	// Defects: all of them are 0 if everything holds.
	Unresolved       int64 `json:"unresolved"` // requests whose outcome is still unknown
	Lost             int64 `json:"lost"`       // orders that clients were told of and that do not exist
	Unexpected       int64 `json:"unexpected"` // orders that exist although their buyers were told otherwise
	Oversold         int64 `json:"oversold"`   // units
	Undersold        int64 `json:"undersold"`  // units
	Duplicates       int64 `json:"duplicates"` // live orders beyond their user's limit
	DuplicateIDs     int64 `json:"duplicate_ids"`
	Unsent           int64 `json:"unsent_events"`
	MissingEffects   int64 `json:"missing_effects"`
	DuplicateEffects int64 `json:"duplicate_effects"`
}

// Sale is what the database holds of a claimed voucher.
type Sale struct {
	Voucher idgen.ID `json:"voucher_id"`
	Orders  int64    `json:"orders"` // ever placed
	Live    int64    `json:"live"`
	Paid    int64    `json:"paid"`
	Closed  int64    `json:"closed"`
}

func (s *Sale) count(status service.Status) {
	s.Orders++
	switch status {
	case service.Closed:
		s.Closed++
		return
	case service.Paid:
		s.Paid++
	}
	s.Live++
}

// Finding is service.Finding with the JSON of the API.
type Finding struct {
	ID        string              `json:"id"`
	Invariant int                 `json:"invariant"` // 0: none of the numbered ones
	Check     string              `json:"check"`
	OK        bool                `json:"ok"`
	Broken    int64               `json:"broken"`
	Rows      []map[string]string `json:"rows,omitempty"`
}

// maxRows is the number of offending rows that a finding shows.
const maxRows = 10

// New returns a verdict without any checks.
func New() *Verdict { return &Verdict{OK: true} }

func fromAudit(a *service.Audit) *Verdict {
	v, t := New(), a.Totals
	v.Counts = Counts{
		Vouchers: t.Vouchers, Total: t.Total, Stock: t.Stock, Orders: t.Orders, Live: t.Live, Pending: t.Pending, Paid: t.Paid, Closed: t.Closed,
		Events: t.Events, Effects: t.Effects, Unsent: t.Unsent, Oversold: t.Oversold, Duplicates: t.Duplicates,
	}
	for _, f := range a.Findings {
		v.add(Finding(f))
	}
	return v
}

// ParseAudit reads the audit that a shop's API has answered.
func ParseAudit(answer []byte) (*Verdict, error) {
	var audit struct {
		Totals   Counts    `json:"totals"`
		Findings []Finding `json:"findings"`
	}
	if err := json.Unmarshal(answer, &audit); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	v := New()
	v.Counts = audit.Totals
	for _, f := range audit.Findings {
		v.add(f)
	}
	return v, nil
}

// Require adds a check of the caller's own. broken is the number of things that break it.
func (v *Verdict) Require(id, check string, broken int64) {
	v.add(Finding{ID: id, Check: check, Broken: broken})
}

// RequireSold adds the check that buyers got every unit they asked for; unsold is the number of units they did not get.
func (v *Verdict) RequireSold(unsold int64) {
	v.Undersold = unsold
	v.add(Finding{ID: "undersold", Invariant: 1, Check: "every unit that a buyer wanted was sold", Broken: unsold})
}

func (v *Verdict) add(f Finding) {
	f.OK = f.Broken == 0
	v.OK = v.OK && f.OK
	v.Findings = append(v.Findings, f)
	switch f.ID {
	case orderLost:
		v.Lost += f.Broken
	case orderRefused, orderUnclaimed:
		v.Unexpected += f.Broken
	case outcomeUnresolved:
		v.Unresolved += f.Broken
	case "id-duplicate", orderTwoUsers:
		v.DuplicateIDs += f.Broken
	case "effect-missing":
		v.MissingEffects += f.Broken
	case "effect-duplicate":
		v.DuplicateEffects += f.Broken
	}
}

// Broken describes each check that does not hold in one line.
func (v *Verdict) Broken() (lines []string) {
	for _, f := range v.Findings {
		if !f.OK {
			lines = append(lines, service.Finding(f).String())
		}
	}
	return lines
}

// Sale returns what the database holds of a claimed voucher.
func (v *Verdict) Sale(voucher string) Sale {
	for _, s := range v.Sales {
		if s.Voucher.String() == voucher {
			return s
		}
	}
	return Sale{}
}

// Summary is the verdict in a few words.
func (v *Verdict) Summary() string {
	conclusion := "everything holds"
	if !v.OK {
		conclusion = "NOT EVERYTHING HOLDS"
	}
	return fmt.Sprintf("%d oversold, %d undersold, %d duplicates, %d lost, %d unknown: %s",
		v.Oversold, v.Undersold, v.Duplicates, v.Lost, v.Unresolved, conclusion)
}

// Print writes the broken checks and the lines of Lines. If all is set, it also writes the checks that hold.
func (v *Verdict) Print(w io.Writer, all bool) {
	shown := 3
	if all {
		shown = maxRows
	}
	for _, f := range v.Findings {
		if !f.OK || all {
			f.print(w, shown)
		}
	}
	for _, line := range v.Lines() {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// Lines are the counts, in a few lines of text.
func (v *Verdict) Lines() []string {
	n := humanize.Comma
	lines := []string{
		fmt.Sprintf("units   %s of %s vouchers, %s left: oversold %d, undersold %d", n(v.Total), n(v.Vouchers), n(v.Stock), v.Oversold, v.Undersold),
		fmt.Sprintf("orders  %s: %s pending, %s paid, %s closed; duplicates %d, duplicate ids %d",
			n(v.Orders), n(v.Pending), n(v.Paid), n(v.Closed), v.Duplicates, v.DuplicateIDs),
		fmt.Sprintf("events  %s, unsent %d; effects %s, missing %d, duplicate %d", n(v.Events), v.Unsent, n(v.Effects), v.MissingEffects, v.DuplicateEffects),
		fmt.Sprintf("checks  %d, %d broken", len(v.Findings), len(v.Broken())),
	}
	if v.Requests > 0 {
		clients := fmt.Sprintf("clients %s requests, told of %s orders: lost %d, unexpected %d; outcomes unknown at first %s, still %d",
			n(v.Requests), n(v.Acknowledged), v.Lost, v.Unexpected, n(v.Unknown), v.Unresolved)
		lines = slices.Insert(lines, 0, clients)
	}
	return lines
}

func (f *Finding) print(w io.Writer, shown int) {
	if f.OK {
		fmt.Fprintf(w, "  ok      %d  %s\n", f.Invariant, f.Check)
		return
	}
	fmt.Fprintf(w, "  BROKEN  %d  %s (%s): broken by %s\n", f.Invariant, f.Check, f.ID, humanize.Comma(f.Broken))
	rows := f.Rows[:min(shown, len(f.Rows))]
	for _, row := range rows {
		fmt.Fprintf(w, "             %v\n", row)
	}
	if rest := f.Broken - int64(len(rows)); rest > 0 && len(rows) > 0 {
		fmt.Fprintf(w, "             and %s more\n", humanize.Comma(rest))
	}
}
