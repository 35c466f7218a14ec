package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// static runs the checks that need no server. The import table is a test of this package and runs with the
// others.
func static(ctx context.Context) error {
	if err := formatted(ctx); err != nil {
		return err
	}
	if err := command(ctx, "go", "vet", "./..."); err != nil {
		return err
	}
	// Beyond the defaults: every package has a comment, and a comment on an exported name begins with it. The
	// checks stand here since a staticcheck.conf would be one more file at the top.
	return command(ctx, "go", "tool", "staticcheck", "-checks=inherit,ST1000,ST1020,ST1021,ST1022", "./...")
}

func formatted(ctx context.Context) error {
	say("gofmt -l .")
	out, err := exec.CommandContext(ctx, "gofmt", "-l", ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("gofmt: %w: %s", err, out)
	}
	if len(out) > 0 {
		return errors.New("not formatted by gofmt: " + strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

// peers checks the modules that the load tests compare the shop with. Each is a module of its own, so that
// its dependencies are not the shop's.
func peers(ctx context.Context) error {
	modules, err := filepath.Glob("loadtest/peers/*/go.mod")
	if err != nil {
		return err
	}
	if len(modules) == 0 {
		return errors.New("no module below loadtest/peers")
	}
	for _, module := range modules {
		dir := filepath.Dir(module)
		for _, args := range [][]string{{"-C", dir, "build", "-o", "/dev/null", "./..."}, {"-C", dir, "vet", "./..."}} {
			if err := command(ctx, "go", args...); err != nil {
				return err
			}
		}
	}
	return nil
}
