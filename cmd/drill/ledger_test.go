package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/cmd/internal/reconcile"
	"seckill/loadtest"
	"seckill/repository"
)

// sound is what a shop that came through comes to.
func sound() (repository.Audit, reconcile.Verdict) {
	audit := repository.Audit{OK: true, Totals: repository.Totals{Orders: 100, Events: 120, Effects: 20}}
	verdict := reconcile.Verdict{
		OK: true, Told: 100, Unknown: 3,
		Outcomes: map[loadtest.Outcome]int64{loadtest.Placed: 97, loadtest.Replayed: 3, loadtest.Broken: 3, "sold-out": 10, "unavailable": 5},
	}
	return audit, verdict
}

func TestLedgerOfASoundShop(t *testing.T) {
	audit, verdict := sound()
	g := newLedger(&audit, &verdict)
	g.Settled = g.Unknown
	if d := g.defects(); len(d) > 0 {
		t.Errorf("defects: %q", d)
	}
	if g.Sent != 118 || g.Accepted != 100 || g.Refused != 10 || g.Failed != 5 || g.Internal != 0 {
		t.Errorf("ledger: %+v", g)
	}
}

// Each kind of defect fails the verdict. A ledger that overlooks one would be worse than none.
func TestEachDefectIsFound(t *testing.T) {
	broken := func(check string) repository.Finding { return repository.Finding{Check: check, Broken: 1} }
	for name, plant := range map[string]func(*repository.Audit, *reconcile.Verdict, *ledger){
		"1 orders were lost": func(_ *repository.Audit, v *reconcile.Verdict, _ *ledger) {
			v.Findings = append(v.Findings, broken(checkLost[0]))
		},
		"2 orders stand": func(_ *repository.Audit, v *reconcile.Verdict, _ *ledger) {
			v.Findings = append(v.Findings, broken(checkGhosts[0]), broken(checkGhosts[1]))
		},
		"1 units were oversold": func(a *repository.Audit, _ *reconcile.Verdict, _ *ledger) { a.Totals.Oversold = 1 },
		"1 units were left":     func(_ *repository.Audit, _ *reconcile.Verdict, g *ledger) { g.Undersold = 1 },
		"1 orders are beyond":   func(a *repository.Audit, _ *reconcile.Verdict, _ *ledger) { a.Totals.Excess = 1 },
		"1 ids were given": func(a *repository.Audit, _ *reconcile.Verdict, _ *ledger) {
			a.Findings = append(a.Findings, broken(checkIDs[0]))
		},
		"1 outcomes are still":   func(_ *repository.Audit, _ *reconcile.Verdict, g *ledger) { g.Settled-- },
		"1 events were not sent": func(a *repository.Audit, _ *reconcile.Verdict, _ *ledger) { a.Totals.Unsent = 1 },
		"1 events had no effect": func(a *repository.Audit, _ *reconcile.Verdict, _ *ledger) {
			a.Findings = append(a.Findings, broken(checkWithoutEffect[0]))
		},
		"1 effects happened twice": func(a *repository.Audit, _ *reconcile.Verdict, _ *ledger) {
			a.Findings = append(a.Findings, broken(checkEffectsTwice[0]))
		},
		"1 requests were answered":                           func(_ *repository.Audit, v *reconcile.Verdict, _ *ledger) { v.Outcomes["internal"] = 1 },
		"1 requests failed although they were repeated once": func(_ *repository.Audit, _ *reconcile.Verdict, g *ledger) { g.RepeatsFailed = 1 },
		`"what no line is about": broken`: func(a *repository.Audit, _ *reconcile.Verdict, _ *ledger) {
			a.Findings = append(a.Findings, broken("what no line is about"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			audit, verdict := sound()
			after := ledger{}
			plant(&audit, &verdict, &after)
			g := newLedger(&audit, &verdict)
			g.Settled, g.Undersold, g.RepeatsFailed = g.Unknown+after.Settled, after.Undersold, after.RepeatsFailed
			r := &result{Ledger: g}
			r.judge(nil, 0)
			if r.OK || len(r.Wrong) != 1 || !strings.Contains(r.Wrong[0], name) {
				t.Errorf("wrong: %q", r.Wrong)
			}
			if r.notShown() {
				t.Error("it would be played again")
			}
		})
	}
}

// The ledger finds its lines by the names of checks in other packages.
func TestLedgerKnowsTheNamesOfChecks(t *testing.T) {
	ctx := context.Background()
	db, err := repository.OpenSQLite(filepath.Join(t.TempDir(), "shop.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	audit, err := db.Audit(ctx, repository.AuditOptions{Settled: true})
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := reconcile.NewBook().Check(ctx, db, reconcile.Options{Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(audit.Findings, verdict.Findings)
	for _, name := range slices.Concat(checkLost, checkGhosts, checkIDs, checkWithoutEffect, checkEffectsTwice) {
		if !slices.ContainsFunc(all, func(f repository.Finding) bool { return f.Check == name }) {
			t.Errorf("no check is called %q any more", name)
		}
	}
}

func TestJudge(t *testing.T) {
	audit, verdict := sound()
	late := figure{Name: "an order", Took: 11 * time.Second, Limit: 10 * time.Second, Judged: true}
	informing := late
	informing.Judged = false
	for name, c := range map[string]struct {
		figures []figure
		failed  error
		least   int64
		ok      bool
	}{
		"good":                  {ok: true, least: 100},
		"too few orders":        {least: 101},
		"an assertion failed":   {failed: context.DeadlineExceeded},
		"a limit was exceeded":  {figures: []figure{late}},
		"a limit that informs":  {figures: []figure{informing}, ok: true},
		"without any limit set": {figures: []figure{{Took: time.Hour, Judged: true}}, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newLedger(&audit, &verdict)
			g.Settled = g.Unknown
			r := &result{Ledger: g, Figures: c.figures}
			if r.judge(c.failed, c.least); r.OK != c.ok {
				t.Errorf("ok: %v, wrong: %q", r.OK, r.Wrong)
			}
		})
	}
}

// What did no harm may be played again, and nothing else.
func TestNotShown(t *testing.T) {
	audit, verdict := sound()
	g := newLedger(&audit, &verdict)
	g.Settled = g.Unknown
	for want, r := range map[bool]*result{true: {Ledger: g}, false: {}} {
		r.judge(errors.New("no lock had two holders"), 0)
		if got := r.notShown(); got != want {
			t.Errorf("with a ledger %v: %v", r.Ledger != nil, got)
		}
	}
	passed := &result{Ledger: g}
	if passed.judge(nil, 0); passed.notShown() {
		t.Error("a drill that passed would be played again")
	}
}

// The negative control passes only if the damage was found.
func TestJudgeControl(t *testing.T) {
	audit, verdict := sound()
	for name, c := range map[string]struct {
		oversold, duplicates int64
		failed               error
		ok                   bool
	}{
		"oversold":             {oversold: 3, ok: true},
		"duplicates":           {duplicates: 3, ok: true},
		"nothing found":        {},
		"it did not get there": {oversold: 3, failed: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			audit := audit
			audit.Totals.Oversold, audit.Totals.Excess = c.oversold, c.duplicates
			r := &result{Ledger: newLedger(&audit, &verdict)}
			if r.judgeControl(c.failed); r.OK != c.ok {
				t.Errorf("ok: %v, wrong: %q", r.OK, r.Wrong)
			}
		})
	}
}
