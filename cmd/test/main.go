// Command test runs everything that has to pass before a change is done: formatting, vet, linters, the import table, and
// all tests with the race detector. It starts the servers that the tests need, and stops them at the end. If it had to leave
// something out, it says so and ends with a different status.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `Usage: go run ./cmd/test [options] [go test flags] [packages]

Runs the static checks and the tests (with -race) against real servers. It starts the servers and stops them at the end.

  --yes           install missing programs and images without asking
  --no-static     skip gofmt, vet and the linters
  --peers         also build and vet the modules in loadtest/peers (they have many dependencies)
  --keep-servers  keep the servers running after the tests until Ctrl-C, and print their addresses
  --help          print this text

All other arguments are passed to go test in this order; the default package is ./...

  go run ./cmd/test                                    everything, as CI does
  go run ./cmd/test --no-static -run Expiry ./service  one test

Programs that are missing are listed first. They are installed with --yes, if the variable CI is set, or if you agree on
the terminal: Debian packages (as root), container images (with Docker), or Go programs built from source. Tests whose
programs are missing are skipped.

Variables

  SECKILL_TEST_MARIADB_DSN   a MariaDB server to use, such as root@tcp(127.0.0.1:3306)/; tests create databases on it
  SECKILL_TEST_MYSQL_DSN     the same for MySQL
  SECKILL_TEST_REDIS_ADDR    a Redis server to use, such as 127.0.0.1:6379, for tests that do not break it
  SECKILL_TEST_REDISSON      1: run the real Redisson against the Redis lock; downloads it
  SECKILL_TEST_DATA          directory for the data of servers, on a real disk (default: below /var/tmp)

Exit status

  0  everything ran and passed
  1  something failed
  3  everything that ran has passed, but something was left out ("go run" prints this status and ends with 1)
`

// incomplete is the exit status if nothing failed, but something was left out.
const incomplete = 3

// options are the command line.
type options struct {
	help, yes, noStatic, peers, keepServers bool

	test []string // arguments of go test
}

func parse(args []string) options {
	var o options
	own := map[string]*bool{
		"help": &o.help, "h": &o.help, "yes": &o.yes, "no-static": &o.noStatic, "peers": &o.peers, "keep-servers": &o.keepServers,
	}
	packages := false
	for _, arg := range args {
		if flag := own[strings.TrimLeft(arg, "-")]; flag != nil && strings.HasPrefix(arg, "-") {
			*flag = true
			continue
		}
		packages = packages || arg == "." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "seckill")
		o.test = append(o.test, arg)
	}
	if !packages {
		o.test = append(o.test, "./...")
	}
	return o
}

func main() {
	o := parse(os.Args[1:])
	if o.help {
		fmt.Print(usage)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	leftOut, err := run(ctx, o)
	stop()
	switch {
	case err != nil:
		say("FAILED: %v", err)
		os.Exit(1)
	case len(leftOut) > 0:
		say("INCOMPLETE: what ran has passed. LEFT OUT, because it is missing here: %s", strings.Join(leftOut, ", "))
		os.Exit(incomplete)
	}
	say("all passed")
}

// run returns what it had to leave out.
func run(ctx context.Context, o options) (leftOut []string, err error) {
	if _, err := os.Stat("go.mod"); err != nil {
		return nil, errors.New("run this in the root of the repository, where go.mod is")
	}
	if leftOut, err = obtain(ctx, needs(), o.yes); err != nil {
		return nil, err
	}
	servers, err := provide(ctx, leftOut)
	defer func() { err = errors.Join(err, servers.stop()) }()
	if err != nil {
		return nil, err
	}
	if !o.noStatic {
		if err := static(ctx); err != nil {
			return nil, err
		}
	}
	if o.peers {
		if err := peers(ctx); err != nil {
			return nil, err
		}
	}
	const limit = "-timeout=30m" // of each package; the default of 10 minutes is too short for slow machines
	err = command(ctx, "go", append([]string{"test", "-race", limit}, o.test...)...)
	if o.keepServers && ctx.Err() == nil {
		servers.print()
		<-ctx.Done()
	}
	return leftOut, err
}

// say prints a line that stands out from the output of the commands.
func say(format string, args ...any) { fmt.Printf("== "+format+"\n", args...) }

// command prints and runs a command; its output goes straight through. It runs in a new process group, which is
// killed at the end: a test binary that exceeds its time limit leaves its servers running.
func command(ctx context.Context, name string, args ...string) error {
	say("%s %s", name, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if nothing of the group is left
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}
