package main

import (
	"context"
	"errors"
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
	} {
		got := parse(strings.Fields(c.args))
		if !slices.Equal(got.test, strings.Fields(c.test)) || got.noStatic != c.want.noStatic || got.peers != c.want.peers || got.keepServers != c.want.keepServers {
			t.Errorf("parse(%q) = %+v, want go test %q and %+v", c.args, got, c.test, c.want)
		}
	}
}

func TestObtain(t *testing.T) {
	var present bool
	var asked []string
	try := func(name string, possible, works bool, err error) way {
		return way{name, func() bool { return possible }, func(context.Context) error {
			asked = append(asked, name)
			present = works
			return err
		}}
	}
	found := holds{func() bool { return present }}
	no, broken, useless, good := try("no", false, true, nil), try("broken", true, false, errors.New("no network")), try("useless", true, false, nil), try("good", true, true, nil)

	if err := (need{"It", found, []way{no, broken, useless, good}}).obtain(t.Context()); err != nil || !slices.Equal(asked, []string{"broken", "useless", "good"}) {
		t.Errorf("obtain: %v after %q, want the first way that works", err, asked)
	}
	if err := (need{"It", found, []way{broken}}).obtain(t.Context()); err != nil {
		t.Errorf("obtain what is there: %v", err)
	}
	present = false
	err := (need{"It", found, []way{no, broken, useless}}).obtain(t.Context())
	for _, part := range []string{"It", "no: not possible", "broken: no network", "useless: done, and still not found"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not tell %q", err, part)
		}
	}
}
