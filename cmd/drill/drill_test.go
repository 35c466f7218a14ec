package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/loadtest"
)

func TestEveryDrillIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range drills() {
		if d.name == "" || d.shows == "" || d.fears == "" || d.do == nil || d.span <= 0 || len(d.locks) == 0 && d.own == "" || seen[d.name] {
			t.Errorf("%q is not complete, or there are two", d.name)
		}
		seen[d.name] = true
		for _, lock := range d.locks {
			if !slices.Contains(everyLock, lock) {
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

// Drills that can share a project follow each other, so that it is brought up once.
func TestTurnsShareProjects(t *testing.T) {
	leases := needs{env: map[string]string{"SECKILL_LOCK_LEASE": "2s"}}
	chosen := []drill{
		{name: "a", locks: everyLock}, {name: "b", locks: everyLock, needs: leases}, {name: "c", locks: []string{"redis"}}, {name: "d", locks: everyLock, needs: leases},
	}
	all, skipped := turns(chosen, []string{"redis", "redlock"})
	var order []string
	for _, turn := range all {
		order = append(order, turn.lock+" "+turn.name)
	}
	if want := []string{"redis a", "redis c", "redis b", "redis d", "redlock a", "redlock b", "redlock d"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	if len(skipped) != 1 || !strings.Contains(skipped[0], "c ") {
		t.Errorf("skipped %q", skipped)
	}
	if n := all[4].needs.withLock("redlock"); !slices.Contains(n.profiles, "redlock") || len(all[4].needs.profiles) != 0 {
		t.Errorf("profiles %q of %q", n.profiles, all[4].needs.profiles)
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

func TestSettings(t *testing.T) {
	c := cli{Orders: 20000, Short: true}
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
	for name, want := range map[string]float64{lockBreaker: 1, "seckill_lock": 2500, "absent": 0} {
		if got, err := parseMetric(page, name); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestParseOwners(t *testing.T) {
	w := &witnesses{n: 3, voucher: loadtest.Voucher{ID: "9"}}
	owners, err := parseOwners("a:1\n-\nb:2\n", w)
	if err != nil || len(owners) != 2 || owners["lock:voucher:9:user:100"] != "a:1" || owners["lock:voucher:9:user:102"] != "b:2" {
		t.Errorf("%v, %v", owners, err)
	}
	if _, err := parseOwners("ERR unknown command\n", &witnesses{n: 20}); err == nil {
		t.Error("an error of Redis was taken for owners")
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
	if n, _ := m.faultsIn(begin, begin.Add(4*time.Second)); n != 2 {
		t.Errorf("%d faults", n)
	}
	if c := m.take(); c.accepted != 3 || c.refused != 1 || c.faults != 2 {
		t.Errorf("%+v", c)
	}
	if c := m.take(); c != (counts{}) {
		t.Errorf("after it was taken: %+v", c)
	}
}

// The page is compared with one that somebody has looked at; UPDATE=1 replaces that.
func TestPage(t *testing.T) {
	v, a := sound()
	r := &result{
		Name: "redis-failover", Lock: "redis", Seed: 7, Shows: "what <is> shown", Fears: "what is feared", Verdict: v, Answers: a, OK: true, Pause: time.Second,
		Figures: []figure{{Name: "locks again", Took: 3 * time.Second, Limit: 5 * time.Second, Judged: true}},
		Events:  []event{{2 * time.Second, fault, "redis-1 is killed"}, {3 * time.Second, healed, "redis-1 is started"}, {4 * time.Second, noted, "found"}},
	}
	for i := range 8 {
		r.Slots = append(r.Slots, loadtest.Slot{At: time.Duration(i) * time.Second, Width: time.Second, Accepted: int64(100 + i), Faults: int64(i), AcceptedP50: time.Millisecond, AcceptedP99: 9 * time.Millisecond})
	}
	r.Control = &result{Name: r.Name, Shows: "without the guard: 3 units were oversold", OK: true, guardOff: true, Verdict: v}
	var got bytes.Buffer
	if err := page(&got, []*result{r, {Name: "mysql-kill", Wrong: []string{"it did not come up"}}}); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "page.html")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the page is not %s any more; look at it, then UPDATE=1 go test", golden)
	}
	for _, outside := range []string{"http://", "https://", "<script", "src="} {
		if strings.Contains(got.String(), outside) {
			t.Errorf("the page has %s: it has to stand by itself", outside)
		}
	}
}

// A command that is interrupted ends, with all that it has started, and says why.
func TestDockerCommandIsBounded(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\necho out of order >&2\ncase $1 in hang) sleep 100;; esac\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it has to be run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	d := docker{transcript: io.Discard}
	if _, err := d.run(context.Background(), "fail"); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("failed with %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := d.run(ctx, "hang"); err == nil || time.Since(begin) > 30*time.Second {
		t.Errorf("ended after %s with %v", time.Since(begin), err)
	}
}

// Nobody gets a shop without its guard by accident: one file has it, behind a tag that nothing sets but a drill.
func TestGuardIsInEveryNormalBuild(t *testing.T) {
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
		t.Errorf("%s must build without tags unless it is told to", composeFile)
	}
}
