package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"seckill/repository/repotest/dbserver"
)

// servers are what this run provides to the tests.
type servers struct {
	started   []*dbserver.Server
	variables []string // how the tests find them, in this process's environment
	run       string   // names this run on its containers and those of the tests
	data      string   // directory of all servers' data
}

// provide makes sure that everything in the table of needs is there and starts the shared databases. What it
// returns has to be stopped, also when it fails.
func provide(ctx context.Context) (*servers, error) {
	s := &servers{run: rand.Text()}
	for _, n := range needs() {
		if err := n.obtain(ctx); err != nil {
			return s, err
		}
	}
	var err error
	if s.data, err = os.MkdirTemp(dbserver.DataDir(), "seckill-test-"); err != nil {
		return s, err
	}
	s.export(dbserver.DataVariable, s.data)
	s.export(dbserver.RunVariable, s.run)
	s.export("SECKILL_TEST_REQUIRED", "1")
	for _, engine := range dbserver.Engines() {
		if err := s.database(ctx, engine); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *servers) export(variable, value string) {
	if err := os.Setenv(variable, value); err != nil {
		panic(err) // only a malformed name fails
	}
	s.variables = append(s.variables, variable)
}

// database starts the server of an engine that the tests share, unless a variable names one.
func (s *servers) database(ctx context.Context, engine dbserver.Engine) error {
	variable := dbserver.Variable(engine)
	if dsn := os.Getenv(variable); dsn != "" {
		version, err := dbserver.Version(ctx, dsn)
		if err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
		say("%s %s: %s", engine, version, variable)
		return nil
	}
	server, err := dbserver.Start(ctx, engine)
	if err != nil {
		return err
	}
	s.started = append(s.started, server)
	s.export(variable, server.DSN(""))
	say("%s %s: %s, on %s", engine, server.Version, server.How(), server.Addr)
	return nil
}

// print says how to use the servers from elsewhere.
func (s *servers) print() {
	say("servers stay up until Ctrl-C; to use them elsewhere:")
	for _, variable := range s.variables {
		fmt.Printf("export %s='%s'\n", variable, os.Getenv(variable))
	}
}

// stop removes the shared servers, and what tests have left behind that died before their cleanup.
func (s *servers) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, server := range s.started {
		errs = append(errs, server.Remove(ctx))
	}
	if s.data != "" { // this run got as far as to start something
		errs = append(errs, os.RemoveAll(s.data), removeContainers(ctx, s.run))
	}
	return errors.Join(errs...)
}

// removeContainers removes the containers that carry the label of a run.
func removeContainers(ctx context.Context, run string) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return nil
	}
	ids, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--quiet", "--filter=label="+dbserver.RunLabel+"="+run).Output()
	if err != nil {
		return fmt.Errorf("docker ps: %w", err)
	}
	for _, id := range strings.Fields(string(ids)) {
		say("removing container %s, which was left behind", id)
		if out, err := exec.CommandContext(ctx, "docker", "rm", "--force", "--volumes", id).CombinedOutput(); err != nil {
			return fmt.Errorf("docker rm: %w: %s", err, out)
		}
	}
	return nil
}
