package main

import (
	"bytes"
	"context"
	"errors"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/loadtest"
)

func TestDrills_Complete(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range drills() {
		if d.name == "" || d.expectation == "" || d.risk == "" || d.script == nil || d.duration <= 0 || len(d.locks) == 0 && d.fixedLock == "" || seen[d.name] {
			t.Errorf("%q is not complete, or there are two", d.name)
		}
		seen[d.name] = true
		for _, lock := range d.locks {
			if !slices.Contains(allLocks, lock) {
				t.Errorf("%s: there is no lock %q", d.name, lock)
			}
		}
	}
	var out bytes.Buffer
	list(&out)
	for name := range seen {
		if !strings.Contains(out.String(), name+"\n") {
			t.Errorf("list leaves out %s", name)
		}
	}
}

// Drills that can share a cluster follow each other, so that it is brought up once.
func TestTurns_ShareClusters(t *testing.T) {
	leases := needs{env: map[string]string{"SECKILL_LOCK_LEASE": "2s"}}
	chosen := []drill{
		{name: "a", locks: allLocks}, {name: "b", locks: allLocks, needs: leases}, {name: "c", locks: []string{"redis"}}, {name: "d", locks: allLocks, needs: leases},
	}
	all, skipped := drillRuns(chosen, []string{"redis", "redlock"})
	var order []string
	for _, run := range all {
		order = append(order, run.lock+" "+run.name)
	}
	if want := []string{"redis a", "redis c", "redis b", "redis d", "redlock a", "redlock b", "redlock d"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	if len(skipped) != 1 || !strings.Contains(skipped[0], "c ") {
		t.Errorf("skipped %q", skipped)
	}
	own, _ := drillRuns([]drill{{name: "e", fixedLock: "zookeeper"}}, []string{"redis", "none"})
	if len(own) != 1 || own[0].lock != "zookeeper" {
		t.Errorf("a drill of one lock runs with %+v", own)
	}
}

func TestCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"list":              {[]string{"list"}, 0, "redis-failover"},
		"unknown drill":     {[]string{"earthquake"}, 2, `no drill "earthquake"`},
		"unknown lock":      {[]string{"list", "--lock", "paper"}, 2, "zookeeper, all"},
		"too few orders":    {[]string{"list", "--orders", "1"}, 2, "--orders"},
		"negative rate":     {[]string{"list", "--rate=-1"}, 2, "--rate"},
		"no flag like that": {[]string{"--fast", "all"}, 2, "--fast"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			status := start(context.Background(), c.args, &out, &out)
			if status != c.status || !strings.Contains(out.String(), c.says) {
				t.Errorf("status %d, output %q", status, out.String())
			}
		})
	}
}

func TestCommand_Settings(t *testing.T) {
	c := command{Orders: 20000, Short: true}
	if s := c.settings(false); s.units != shortOrders || s.seed == 0 {
		t.Errorf("short: %+v", s)
	}
	c.Seed = 7
	if s := c.settings(true); s.units != 20000 || s.seed != 7 {
		t.Errorf("given: %+v", s)
	}
}

func TestParseMetric(t *testing.T) {
	page := "# HELP seckill_breaker_open x\nseckill_breaker_open{breaker=\"broker\"} 0\nseckill_breaker_open{breaker=\"lock\"} 1\nseckill_lock 2.5e+03\n"
	for name, want := range map[string]float64{`seckill_breaker_open{breaker="lock"}`: 1, "seckill_lock": 2500, "absent": 0} {
		if got, err := parseMetric(page, name); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestParseOwners(t *testing.T) {
	h := &lockHolders{voucher: loadtest.Voucher{ID: "9"}}
	text := "a:1\n-\nb:2\n" + strings.Repeat("-\n", holders-3)
	all, err := parseOwners(text, h)
	if err != nil || len(all) != 2 || all["lock:voucher:9:user:100"] != "a:1" || all["lock:voucher:9:user:102"] != "b:2" {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := parseOwners("ERR unknown command\n", h); err == nil {
		t.Error("an error of Redis was read as owners")
	}
}

func TestParseLost(t *testing.T) {
	text := " Sent 5 bytes 2 pkt (dropped 7, overlimits 0)\n---\n    pkts bytes target\n      4      90 DROP  all\n      9      90 ACCEPT  all\n"
	if n, err := parseLost(text); err != nil || n != 11 {
		t.Errorf("%d, %v", n, err)
	}
}

// A failed step ends the script, with its error; any other panic stays a panic.
func TestSteps_Attempt(t *testing.T) {
	cause := errors.New("the cause")
	after := false
	err := attempt(func() { must(1, cause); after = true })
	if !errors.Is(err, cause) || after {
		t.Errorf("%v; went on: %v", err, after)
	}
	if err := attempt(func() { check(nil) }); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a bug was taken for a failed step")
		}
	}()
	_ = attempt(func() { panic("a bug") })
}

func TestSteps_Until(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{ctx: t.Context()}
		tries := 0
		s.until("the third try", func() error {
			tries++
			if tries == 1 {
				check(errors.New("a failed step counts as not yet"))
			}
			return expect(tries == 3, "%d tries", tries)
		})
		begin := time.Now()
		err := attempt(func() { s.until("it holds", func() error { return errors.New("never") }) })
		if took := time.Since(begin); tries != 3 || err == nil || !strings.Contains(err.Error(), "it holds: never") || took < stepTimeout || took > 2*stepTimeout {
			t.Errorf("%d tries; %v after %s", tries, err, took)
		}
	})
}

// What a failed drill leaves broken is repaired, and a repair that fails does not keep the others from running.
func TestFaults_RepairAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &faults{steps: &steps{ctx: ctx}, repairs: map[string]func(){}}
	repaired := false
	f.repairs["a"] = func() { check(errors.New("a cannot be repaired")) }
	f.repairs["b"] = func() { check(f.ctx.Err()); repaired = true }
	if err := f.repairAll(); err == nil || !repaired || len(f.repairs) != 0 {
		t.Errorf("%v, repaired: %v, left: %v", err, repaired, f.repairs)
	}
}

func TestMeter(t *testing.T) {
	m, begin := newMeter(), time.Now()
	add := func(at time.Duration, o loadtest.Outcome) {
		m.add(&loadtest.Entry{Op: loadtest.OpPlace, At: begin.Add(at), Took: time.Millisecond, Outcome: o})
	}
	add(0, loadtest.Placed)
	add(5*time.Second, loadtest.Placed) // answered out of order
	add(2*time.Second, loadtest.Placed)
	add(3*time.Second, loadtest.Broken)
	add(3*time.Second, "unavailable")
	add(3*time.Second, "sold-out")
	if d := m.longestPause(); d != 3*time.Second {
		t.Errorf("longest pause %s", d)
	}
	if first, ok := m.acceptedAfter(begin.Add(time.Second)); !ok || first.Sub(begin).Round(time.Second) != 2*time.Second {
		t.Errorf("first after a second: %v, %s", ok, first.Sub(begin))
	}
	if n, _ := m.failuresIn(begin, begin.Add(4*time.Second)); n != 2 {
		t.Errorf("%d faults", n)
	}
	if c := m.take(); c.accepted != 3 || c.refused != 1 || c.failures != 2 {
		t.Errorf("%+v", c)
	}
	if c := m.take(); c != (counts{}) {
		t.Errorf("after it was taken: %+v", c)
	}
}

func TestPage(t *testing.T) {
	v, a := sound()
	r := &result{
		Name: "redis-failover", Lock: "redis", Seed: 7, Expectation: "what <is> shown", Risk: "what could go wrong", Verdict: v, Answers: a, OK: true, Pause: time.Second,
		Figures: []figure{{Name: "locks again", Took: 3 * time.Second, Limit: 5 * time.Second, Judged: true}},
		Events:  []event{{2 * time.Second, fault, "redis-1 is killed"}, {3 * time.Second, healed, "redis-1 is started"}, {4 * time.Second, noted, "found"}},
	}
	for i := range 8 {
		r.Slots = append(r.Slots, loadtest.Slot{At: time.Duration(i) * time.Second, Width: time.Second, Accepted: int64(100 + i), Faults: int64(i), AcceptedP50: time.Millisecond, AcceptedP99: 9 * time.Millisecond})
	}
	r.Control = &result{Name: r.Name, Expectation: "Without the guard: 3 oversold", OK: true, guardOff: true, Verdict: v}
	results := []*result{r, {Name: "mysql-kill", Wrong: []string{"it did not come up"}}}
	var got bytes.Buffer
	if err := page(results).Write(&got); err != nil {
		t.Fatal(err)
	}
	text := html.UnescapeString(got.String())
	for _, want := range []string{"what <is> shown", "Risk: what could go wrong", "Without the guard", "✗ redis-1 is killed", "2.0 s", "locks again", "it did not come up", "FAILED", "<svg"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	var list bytes.Buffer
	table(&list, results)
	for _, want := range []string{"redis-failover", "… guard off", "damage found", "FAILED"} {
		if !strings.Contains(list.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, list.String())
		}
	}
}

// Nobody gets a shop without its guard by accident: one file has it, behind a build tag that only drills set.
func TestGuard_InEveryNormalBuild(t *testing.T) {
	root := filepath.Join("..", "..")
	files := func(tags string) string {
		out, err := exec.Command("go", "list", "-C", root, "-tags", tags, "-f", "{{.GoFiles}}", "./repository").CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v: %s", err, out)
		}
		return string(out)
	}
	if normal := files(""); !strings.Contains(normal, "guard.go") || strings.Contains(normal, "guard_off.go") {
		t.Errorf("a normal build has %s", normal)
	}
	if off := files(guardOffTag); strings.Contains(off, " guard.go") || !strings.Contains(off, "guard_off.go") {
		t.Errorf("with the tag a build has %s", off)
	}
	compose, err := os.ReadFile(filepath.Join(root, composeFile))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(compose), guardOffTag) || !strings.Contains(string(compose), "${SECKILL_BUILD_TAGS:-}") {
		t.Errorf("%s must build without tags unless it is configured otherwise", composeFile)
	}
}
