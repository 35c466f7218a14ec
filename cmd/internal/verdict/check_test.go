package verdict

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"seckill/loadtest"
)

// Check adds the audit, and counts what both have found.
func TestCheck_AuditAndClaims(t *testing.T) {
	f := newFixture(t)
	v, err := Check(t.Context(), f.db, f.claims, Options{Settled: true})
	if err != nil || !v.OK || len(v.Findings) <= len(claimChecks) || v.Summary() != "0 oversold, 0 undersold, 0 duplicates, 0 lost, 0 unknown: everything holds" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, id := range []string{"id-duplicate", "effect-missing", "effect-duplicate"} { // the audit's checks that Counts name
		if !slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.ID == id }) {
			t.Errorf("no check is called %q", id)
		}
	}
	if _, err := f.raw.Exec("DROP INDEX order_once_per_slot"); err != nil { // the guard is off
		t.Fatal(err)
	}
	if _, err := f.raw.Exec(`INSERT INTO voucher_stock (voucher_id, total, stock, placed, user_limit, starts_at, ends_at) VALUES (7, 1, 0, 2, 1, 0, 9)`); err != nil {
		t.Fatal(err)
	}
	f.insert(20, 1, "x", 1)
	f.insert(21, 1, "y", 1)
	f.answer(1, "z", loadtest.Placed, "22")
	v, err = Check(t.Context(), f.db, f.claims, Options{Settled: true, Complete: true})
	if err != nil || v.OK || v.Orders != 2 || v.Oversold != 1 || v.Duplicates != 1 || v.Lost != 1 || v.Unexpected != 2 || v.Acknowledged != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	v.RequireSold(3)
	v.Require("too-late", "it was in time", 2)
	if text := strings.Join(v.Broken(), "\n"); v.Undersold != 3 || !strings.Contains(text, "it was in time (too-late): broken by 2") {
		t.Errorf("undersold %d; %s", v.Undersold, text)
	}
	var brief, full bytes.Buffer
	v.Print(&brief, false)
	v.Print(&full, true)
	for _, want := range []string{"BROKEN  4  every order that a client was told of exists (order-lost): broken by 1\n", "map[order:22", "oversold 1, undersold 3\n", "duplicates 1, ", "lost 1, unexpected 2; "} {
		if !strings.Contains(brief.String(), want) || !strings.Contains(full.String(), want) {
			t.Errorf("no %q in\n%s", want, brief.String())
		}
	}
	if strings.Contains(brief.String(), "ok   ") || !strings.Contains(full.String(), "ok      1  stock is not negative\n") {
		t.Errorf("brief:\n%s\nfull:\n%s", brief.String(), full.String())
	}
}

func TestParseAudit(t *testing.T) {
	answer := `{"ok":false,"totals":{"orders":5,"oversold":1},"findings":[{"id":"stock-balance","invariant":1,"check":"c","ok":false,"broken":1,"rows":[{"stock":"2"}]}]}`
	v, err := ParseAudit([]byte(answer))
	if err != nil || v.OK || v.Orders != 5 || v.Oversold != 1 || len(v.Findings) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	text, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(text), `"oversold":1`) {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := ParseAudit([]byte("[")); err == nil {
		t.Error("no JSON was accepted")
	}
}
