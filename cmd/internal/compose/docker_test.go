package compose

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeDocker puts a docker into the path that prints its arguments and the compose config of two services.
func fakeDocker(t *testing.T) (d *Docker, transcript *strings.Builder) {
	t.Helper()
	bin := t.TempDir()
	script := `#!/bin/sh
case "$1 $*" in
hang*) echo out of order >&2; sleep 100;;
fail*) echo out of order >&2; exit 3;;
*config*) echo '{"services":{"shop":{"image":"shop:1","build":{},"ports":[{"target":8080}]},"db":{"image":"mysql"}},"networks":{"sql":{"name":"p_sql"}}}';;
*"ps --all"*) echo shop abc; echo db def;;
*) echo "$*";;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(script), 0o700); err != nil { //nolint:gosec // it has to be run
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	transcript = &strings.Builder{}
	return &Docker{Transcript: transcript}, transcript
}

// A command that is interrupted ends, with all processes that it has started, and says why.
func TestDocker_Bounded(t *testing.T) {
	d, _ := fakeDocker(t)
	if _, err := d.Run(t.Context(), "fail"); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("failed with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := d.Run(ctx, "hang"); err == nil || time.Since(begin) > 30*time.Second {
		t.Errorf("ended after %s with %v", time.Since(begin), err)
	}
}

func TestProject_Override(t *testing.T) {
	d, transcript := fakeDocker(t)
	dir := t.TempDir()
	p, err := Open(t.Context(), d, Options{Name: "p", File: "compose.yml", Dir: dir, Image: "shop:1", Ports: map[string]int{"shop": 0, "db": 3306}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Configure(Config{Profiles: []string{"a"}, Image: "shop:2", Env: map[string]string{"LOCK": "redis"}, Overlay: "services: {}\n"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "p.yml"))
	if err != nil {
		t.Fatal(err)
	}
	want := "services:\n  db:\n    ports: !override [\"" + p.Addr("db") + ":3306\"]\n  shop:\n    ports: !override [\"" + p.Addr("shop") +
		":8080\"]\n    image: shop:2\n    pull_policy: never\n    environment:\n      LOCK: \"redis\"\n"
	if string(text) != want {
		t.Errorf("override:\n%s\nwant\n%s", text, want)
	}
	if err := p.Configure(Config{Profiles: []string{"b"}, Image: "shop:2"}); err != nil { // profile a stays
		t.Fatal(err)
	}
	if err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Do(t.Context(), []string{"kill"}, "shop", "db"); err != nil {
		t.Fatal(err)
	}
	if err := p.Connect(t.Context(), "db", "sql"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--profile b --profile a up --detach", "docker kill abc def (", "docker network connect --alias db p_sql def ("} {
		if !strings.Contains(transcript.String(), want) {
			t.Errorf("no %q in\n%s", want, transcript)
		}
	}
	if _, err := p.Container("other"); err == nil || p.Containers() != 2 {
		t.Errorf("%d containers, %v", p.Containers(), err)
	}
}

func TestOpen_MissingService(t *testing.T) {
	d, _ := fakeDocker(t)
	if _, err := Open(t.Context(), d, Options{Name: "p", File: "compose.yml", Dir: t.TempDir(), Ports: map[string]int{"nginx": 0}}); err == nil {
		t.Error("a missing service was accepted")
	}
}
