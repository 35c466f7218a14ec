package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"seckill/repository/repotest/dbserver"
)

// servers are the databases of this run, and what tests must know of it.
type servers struct {
	started   []*dbserver.Server
	variables []string // names of the environment variables that tests read
	run       string   // the label of all containers of this run
	data      string   // the directory for the data of all servers
}

// provide starts the databases that tests share. The result must be stopped, also after an error. If nothing was left out,
// a test fails where it would skip for lack of a server.
func provide(ctx context.Context, leftOut []string) (*servers, error) {
	s := &servers{run: rand.Text()}
	var err error
	if s.data, err = os.MkdirTemp(dbserver.DataDir(), "seckill-test-"); err != nil {
		return s, err
	}
	s.export(dbserver.DataVariable, s.data)
	s.export(dbserver.RunVariable, s.run)
	if len(leftOut) == 0 {
		s.export("SECKILL_TEST_REQUIRED", "1")
	}
	for _, engine := range dbserver.Engines() {
		// needs() names databases like their engines.
		missing := func(name string) bool { return strings.EqualFold(name, string(engine)) }
		if os.Getenv(dbserver.Variable(engine)) == "" && slices.ContainsFunc(leftOut, missing) {
			continue
		}
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

// database starts a server that tests share, unless a variable names one.
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

// print prints the variables that make another process use the servers.
func (s *servers) print() {
	say("the servers run until Ctrl-C; to use them in another shell:")
	for _, variable := range s.variables {
		fmt.Printf("export %s='%s'\n", variable, os.Getenv(variable))
	}
}

// stop removes the shared servers, and what tests could not clean up because they died.
func (s *servers) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for _, server := range s.started {
		errs = append(errs, server.Remove(ctx))
	}
	if s.data != "" { // otherwise nothing was started
		errs = append(errs, os.RemoveAll(s.data), removeContainers(ctx, s.run))
	}
	return errors.Join(errs...)
}

// removeContainers removes the containers that carry the label of a run.
func removeContainers(ctx context.Context, run string) error {
	ids, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--quiet", "--filter=label="+dbserver.RunLabel+"="+run).Output()
	if err != nil {
		return nil // Docker is not here or not for us, so the run has started no container
	}
	for _, id := range strings.Fields(string(ids)) {
		say("removing container %s, which a test left behind", id)
		if out, err := exec.CommandContext(ctx, "docker", "rm", "--force", "--volumes", id).CombinedOutput(); err != nil {
			return fmt.Errorf("docker rm: %w: %s", err, out)
		}
	}
	return nil
}
