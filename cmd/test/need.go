package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"

	"seckill/repository/repotest/brokerserver"
	"seckill/repository/repotest/dbserver"
)

// need is a program or a container image that checks and tests use. The images are needed even if a variable names a
// server: tests that break a server start their own.
type need struct {
	name  string
	found []check // one of them is enough
	ways  []way   // how to get it, the best way first
}

// check reports whether something is on this machine.
type check func() bool

// way is one way to get a program or an image.
type way struct {
	command  string // as a person would type it
	possible check
	get      func(context.Context) error
}

// prometheusImage checks the rules in loadtest/observe.
const prometheusImage = "prom/prometheus:v3.5.3"

// needs lists everything that checks and tests use beside Go.
func needs() []need {
	return []need{
		{"C compiler (race detector)", []check{onPath("gcc"), onPath("clang")}, []way{aptInstall("gcc", "libc6-dev")}},
		// The names of databases equal those of dbserver.Engines, whatever their case; see provide.
		{"MariaDB", []check{onPath("mariadbd"), image(dbserver.MariaDBImage)}, []way{aptInstall("mariadb-server"), pull(dbserver.MariaDBImage)}},
		{"MySQL", []check{image(dbserver.MySQLImage)}, []way{pull(dbserver.MySQLImage)}},
		{"Redis", []check{onPath("redis-server")}, []way{aptInstall("redis-server")}},
		{"ZooKeeper", []check{file("/usr/share/java/zookeeper.jar")}, []way{aptInstall("zookeeper")}},
		{"Java (Kafka, RocketMQ, ZooKeeper)", []check{onPath("java")}, []way{aptInstall("default-jre-headless")}},
		{"Maven (Kafka, RocketMQ)", []check{onPath("mvn")}, []way{aptInstall("maven")}},
		{"RabbitMQ", []check{image(brokerserver.RabbitMQImage)}, []way{pull(brokerserver.RabbitMQImage)}},
		{"Prometheus", []check{image(prometheusImage)}, []way{pull(prometheusImage)}},
		{"Chromium (web pages)", []check{onPath("chromium"), onPath("google-chrome")}, []way{aptInstall("chromium")}},
		{"npm (types of the k6 scripts)", []check{onPath("npm")}, []way{aptInstall("npm")}},
		{"k6", []check{onPath("k6"), file(goBin("k6"))}, []way{goBuild("go.k6.io/k6/v2@v2.2.0", ".", "k6")}},
		{linter, []check{onPath(linter), file(goBin(linter))}, []way{goBuild("github.com/golangci/golangci-lint/v2@v2.15.0", "./cmd/"+linter, linter)}},
	}
}

// installable reports whether one of the ways is possible on this machine.
func (n need) installable() bool {
	return slices.ContainsFunc(n.ways, func(w way) bool { return w.possible() })
}

func (n need) present() bool {
	return slices.ContainsFunc(n.found, func(found check) bool { return found() })
}

// obtain installs the needs that are missing, if it may, and returns the names of those that are missing still.
func obtain(ctx context.Context, needs []need, yes bool) (leftOut []string, err error) {
	missing := slices.DeleteFunc(needs, need.present)
	if len(missing) == 0 {
		return nil, nil
	}
	say("missing on this machine:")
	for _, n := range missing {
		say("  %s: %s", n.name, n.commands())
	}
	install := mayInstall(missing, yes)
	for _, n := range missing {
		if install {
			err := n.install(ctx)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err == nil {
				continue
			}
			say("%v", err)
		}
		leftOut = append(leftOut, n.name)
	}
	if len(leftOut) > 0 {
		say("LEFT OUT, and what needs it does not run: %s", strings.Join(leftOut, ", "))
	}
	return leftOut, nil
}

// commands says how to get what is needed.
func (n need) commands() string {
	var all []string
	for _, w := range n.ways {
		all = append(all, w.command)
	}
	return strings.Join(all, "; or: ")
}

// mayInstall asks on a terminal. Otherwise --yes or the variable CI decides.
func mayInstall(missing []need, yes bool) bool {
	if yes || os.Getenv("CI") != "" {
		return true
	}
	if !slices.ContainsFunc(missing, need.installable) {
		say("none of this can be installed here: packages need root, images need Docker")
		return false
	}
	if !isatty.IsTerminal(os.Stdin.Fd()) {
		say("nothing is installed without --yes, since there is no terminal to ask on")
		return false
	}
	fmt.Print("== Install all of this now? [y/N] ")
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no answer means no
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}

// install tries every way until the need is present. Its error says what was tried.
func (n need) install(ctx context.Context) error {
	var tried []string
	for _, w := range n.ways {
		if !w.possible() {
			tried = append(tried, w.command+": not possible here")
			continue
		}
		say("%s: %s", n.name, w.command)
		if err := w.get(ctx); err != nil {
			tried = append(tried, fmt.Sprintf("%s: %v", w.command, err))
		} else if n.present() {
			return nil
		} else {
			tried = append(tried, w.command+": succeeded, but it is still not found")
		}
	}
	return fmt.Errorf("cannot install %s:\n  %s", n.name, strings.Join(tried, "\n  "))
}
