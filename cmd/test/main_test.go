package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args, test string
		want       options
	}{
		{args: "", test: "./..."},
		{args: "-run X -v", test: "-run X -v ./..."},
		{args: "--no-static -run X ./service", test: "-run X ./service", want: options{noStatic: true}},
		{args: "-peers --keep-servers seckill/service/...", test: "seckill/service/...", want: options{peers: true, keepServers: true}},
		{args: "-run peers", test: "-run peers ./..."},
		{args: "--yes", test: "./...", want: options{yes: true}},
	} {
		got := parse(strings.Fields(c.args))
		if !slices.Equal(got.test, strings.Fields(c.test)) || got.yes != c.want.yes || got.noStatic != c.want.noStatic || got.peers != c.want.peers || got.keepServers != c.want.keepServers {
			t.Errorf("parse(%q) = %+v, want go test %q and %+v", c.args, got, c.test, c.want)
		}
	}
}

// fakeMachine is where the ways of a test install something.
type fakeMachine struct {
	present bool
	tried   []string
}

func (m *fakeMachine) found() bool { return m.present }

func (m *fakeMachine) way(name string, possible, works bool, err error) way {
	return way{name, func() bool { return possible }, func(context.Context) error {
		m.tried = append(m.tried, name)
		m.present = works
		return err
	}}
}

func TestNeed_InstallTriesEachWay(t *testing.T) {
	m := &fakeMachine{}
	impossible, broken := m.way("impossible", false, true, nil), m.way("broken", true, false, errors.New("no network"))
	useless, good := m.way("useless", true, false, nil), m.way("good", true, true, nil)

	n := need{"It", []check{m.found}, []way{impossible, broken, useless, good}}
	if err := n.install(t.Context()); err != nil || !slices.Equal(m.tried, []string{"broken", "useless", "good"}) {
		t.Errorf("install: %v after %q, want the first way that works", err, m.tried)
	}
	m.present = false
	err := need{"It", []check{m.found}, []way{impossible, broken, useless}}.install(t.Context())
	for _, part := range []string{"It", "impossible: not possible here", "broken: no network", "useless: succeeded, but it is still not found"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not contain %q", err, part)
		}
	}
}

func TestObtain_InstallsOnlyIfAllowed(t *testing.T) {
	for _, c := range []struct {
		name    string
		yes     bool
		ci      string
		tried   int
		leftOut []string
	}{
		{"no terminal", false, "", 0, []string{"It", "Other"}},
		{"--yes", true, "", 2, []string{"Other"}},
		{"CI", false, "true", 2, []string{"Other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("CI", c.ci)
			m, other, there := &fakeMachine{}, &fakeMachine{}, &fakeMachine{present: true}
			needs := []need{
				{"It", []check{m.found}, []way{m.way("good", true, true, nil)}},
				{"Other", []check{other.found}, []way{other.way("broken", true, false, errors.New("no network"))}},
				{"There", []check{there.found}, []way{there.way("superfluous", true, true, nil)}},
			}
			stdin := os.Stdin
			defer func() { os.Stdin = stdin }()
			os.Stdin = noTerminal(t)
			leftOut, err := obtain(t.Context(), needs, c.yes)
			if err != nil || !slices.Equal(leftOut, c.leftOut) {
				t.Errorf("left out: %q, %v, want %q", leftOut, err, c.leftOut)
			}
			if got := len(m.tried) + len(other.tried); got != c.tried || len(there.tried) > 0 {
				t.Errorf("tried %q %q %q, want %d", m.tried, other.tried, there.tried, c.tried)
			}
		})
	}
}

func noTerminal(t *testing.T) *os.File {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	return null
}
