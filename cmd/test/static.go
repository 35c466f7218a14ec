package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// linter is the program that runs the linters of .golangci.yml.
const linter = "golangci-lint"

// static runs the checks that need no server.
func static(ctx context.Context) error {
	if err := formatted(ctx); err != nil {
		return err
	}
	if err := command(ctx, "go", "vet", "./...", "./.compose"); err != nil { // ./... skips folders whose names begin with a dot
		return err
	}
	for _, program := range []string{linter, goBin(linter)} {
		if path, err := exec.LookPath(program); err == nil {
			return command(ctx, path, "run", "./...")
		}
	}
	return nil // obtain has reported that it is left out
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

// peers checks the modules that the load tests compare the shop with. Each is a separate module, so that our go.mod has none
// of their dependencies.
func peers(ctx context.Context) error {
	modules, err := filepath.Glob("loadtest/peers/*/go.mod")
	if err != nil {
		return err
	}
	if len(modules) == 0 {
		return errors.New("no module in loadtest/peers")
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
