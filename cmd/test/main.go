// Command test runs everything that has to pass before a change is done: formatting, vet, staticcheck, the
// import table, and the whole test suite with the race detector. It provides the real servers that the suite
// needs and stops them at the end. It never tests less in silence: what can't be provided is an error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `Usage: go run ./cmd/test [options] [go test flags] [packages]

Provides the servers that the tests need, then runs the static checks and the tests (with -race).

  --no-static     skip gofmt, vet and staticcheck
  --peers         also build and vet the modules below loadtest/peers (downloads much)
  --keep-servers  keep the servers up after the tests until Ctrl-C, and print their addresses
  --help          this text

Everything else goes to go test, in this order; without a package it gets ./...

  go run ./cmd/test                                    all of it, as CI does
  go run ./cmd/test --no-static -run Expiry ./service  one test

Servers are taken where they are found first: named by a variable, a program on PATH, a Debian package (as
root), a Docker image.

  SECKILL_TEST_MARIADB_DSN   root@tcp(127.0.0.1:3306)/  a MariaDB server to use; the tests create databases on it
  SECKILL_TEST_MYSQL_DSN     the same for MySQL
  SECKILL_TEST_REDIS_ADDR    127.0.0.1:6379, a Redis for the tests that do not break theirs (default: one each)
  SECKILL_TEST_DATA          directory for servers' data, on a real disk (default: below /var/tmp)
`

// options are what the command line asks for.
type options struct {
	help, noStatic, peers, keepServers bool

	test []string // arguments of go test
}

func parse(args []string) options {
	var o options
	own := map[string]*bool{"help": &o.help, "h": &o.help, "no-static": &o.noStatic, "peers": &o.peers, "keep-servers": &o.keepServers}
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
	err := run(ctx, o)
	stop()
	if err != nil {
		say("FAILED: %v", err)
		os.Exit(1)
	}
	say("all passed")
}

func run(ctx context.Context, o options) (err error) {
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("run this in the root of the repository, where go.mod is")
	}
	servers, err := provide(ctx)
	defer func() { err = errors.Join(err, servers.stop()) }()
	if err != nil {
		return err
	}
	if !o.noStatic {
		if err := static(ctx); err != nil {
			return err
		}
	}
	if o.peers {
		if err := peers(ctx); err != nil {
			return err
		}
	}
	err = command(ctx, "go", append([]string{"test", "-race", "-timeout=30m"}, o.test...)...) // a busy machine takes its time
	if o.keepServers && ctx.Err() == nil {
		servers.print()
		<-ctx.Done()
	}
	return err
}

// say prints a line that can be told from the output of the commands.
func say(format string, args ...any) { fmt.Printf("== "+format+"\n", args...) }
