package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// sound is the verdict over a drill in which nothing went wrong.
func sound() (*verdict.Verdict, answers) {
	v := verdict.New()
	v.Counts = verdict.Counts{Orders: 100, Events: 120, Effects: 20, Acknowledged: 100, Unknown: 3}
	a := countAnswers(map[loadtest.Outcome]int64{
		loadtest.Placed: 97, loadtest.Replayed: 3, loadtest.Broken: 3, "sold-out": 10, "unavailable": 5, "internal": 0,
	})
	a.require(v)
	return v, a
}

func TestCountAnswers(t *testing.T) {
	_, a := sound()
	if want := (answers{Requests: 118, Accepted: 100, Refused: 10, Failed: 5}); a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	if a := countAnswers(map[loadtest.Outcome]int64{"internal": 1, loadtest.Unexpected: 2}); a.Internal != 3 {
		t.Errorf("%+v", a)
	}
}

// Each kind of defect fails the drill, and none of them is played again.
func TestResult_EachDefectFails(t *testing.T) {
	for name, plant := range map[string]func(*verdict.Verdict){
		"order-lost":      func(v *verdict.Verdict) { v.Require("order-lost", "", 1) },
		"undersold":       func(v *verdict.Verdict) { v.RequireSold(1) },
		"answer-internal": func(v *verdict.Verdict) { (&answers{Internal: 1}).require(v) },
		"repeat-failed":   func(v *verdict.Verdict) { (&answers{RepeatsFailed: 1}).require(v) },
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := sound()
			plant(v)
			r := &result{Verdict: v}
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

func TestResult_Judge(t *testing.T) {
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
			v, _ := sound()
			r := &result{Verdict: v, Figures: c.figures}
			if r.judge(c.failed, c.least); r.OK != c.ok {
				t.Errorf("ok: %v, wrong: %q", r.OK, r.Wrong)
			}
		})
	}
}

// Only a drill that did no harm may be played again.
func TestResult_NotShown(t *testing.T) {
	v, _ := sound()
	for want, r := range map[bool]*result{true: {Verdict: v}, false: {}} {
		r.judge(errors.New("no lock had two holders"), 0)
		if got := r.notShown(); got != want {
			t.Errorf("with a verdict %v: %v", r.Verdict != nil, got)
		}
	}
	passed := &result{Verdict: v}
	if passed.judge(nil, 0); passed.notShown() {
		t.Error("a drill that passed would be played again")
	}
}

// The negative control passes only if the damage was found.
func TestResult_JudgeControl(t *testing.T) {
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
			v, _ := sound()
			v.Oversold, v.Duplicates = c.oversold, c.duplicates
			r := &result{Verdict: v}
			if r.judgeControl(c.failed); r.OK != c.ok {
				t.Errorf("ok: %v, wrong: %q", r.OK, r.Wrong)
			}
		})
	}
}
