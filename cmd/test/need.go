package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"seckill/repository/repotest/dbserver"
)

// need is a program that the tests start servers of. Also where a variable names a shared server, tests that
// break servers start their own.
type need struct {
	name  string
	found holds // it is there already
	ways  []way // to get it, the best one first
}

// way is one way to get a program onto this machine.
type way struct {
	name     string
	possible func() bool
	get      func(context.Context) error
}

// holds is satisfied by any of its conditions.
type holds []func() bool

func (h holds) now() bool {
	return slices.ContainsFunc(h, func(condition func() bool) bool { return condition() })
}

// needs is the table of everything that the suite needs beside Go.
func needs() []need {
	return []need{
		{"MariaDB", holds{onPath("mariadbd"), image(dbserver.MariaDBImage)}, []way{debian("mariadb-server"), pull(dbserver.MariaDBImage)}},
		{"Redis", holds{onPath("redis-server")}, []way{debian("redis-server")}},
		{"ZooKeeper", holds{file("/usr/share/java/zookeeper.jar")}, []way{debian("zookeeper")}},
		{"Java, for Kafka and RocketMQ", holds{onPath("java")}, []way{debian("default-jre-headless")}},
		{"Maven, for Kafka's and RocketMQ's servers", holds{onPath("mvn")}, []way{debian("maven")}},
		{"Node, to check the types of the k6 scripts", holds{onPath("npm")}, []way{debian("npm")}},
		{"k6", holds{onPath("k6"), file(goBin("k6"))}, []way{goBuild("go.k6.io/k6/v2@v2.2.0", "k6")}},
		{"Chromium, for the pages", holds{onPath("chromium"), onPath("google-chrome")}, []way{debian("chromium")}},
		{"RabbitMQ", holds{image(rabbitMQImage)}, []way{standins(), pull(rabbitMQImage)}},
		{"Prometheus", holds{image(prometheusImage)}, []way{standins(), pull(prometheusImage)}},
		{"MySQL", holds{image(dbserver.MySQLImage)}, []way{standins(), pull(dbserver.MySQLImage)}},
	}
}

// prometheusImage is what checks the rules, as in docker-compose.yml.
const prometheusImage = "prom/prometheus:v3.5.3"

// rabbitMQImage is what repository/repotest/brokerserver runs.
const rabbitMQImage = "rabbitmq:4.3"

// obtain makes sure that the program is there, or says what was tried.
func (n need) obtain(ctx context.Context) error {
	if n.found.now() {
		return nil
	}
	var tried []string
	for _, w := range n.ways {
		if !w.possible() {
			tried = append(tried, w.name+": not possible on this machine")
			continue
		}
		say("%s: %s", n.name, w.name)
		if err := w.get(ctx); err != nil {
			tried = append(tried, fmt.Sprintf("%s: %v", w.name, err))
		} else if n.found.now() {
			return nil
		} else {
			tried = append(tried, w.name+": done, and still not found")
		}
	}
	return fmt.Errorf("the tests need %s, which is not here.\n  %s\nProvide it in one of these ways and run this again",
		n.name, strings.Join(tried, "\n  "))
}

// debian installs packages. Their services are not started: the tests start their own servers.
func debian(packages ...string) way {
	return way{
		name:     "Debian package " + strings.Join(packages, " ") + " (as root)",
		possible: func() bool { return os.Geteuid() == 0 && onPath("apt-get")() },
		get: func(ctx context.Context) error {
			allow, err := forbidServices()
			if err != nil {
				return err
			}
			defer allow()
			if err := command(ctx, "apt-get", "update", "-qq"); err != nil {
				return err
			}
			install := []string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-qq", "-y", "--no-install-recommends"}
			return command(ctx, "env", append(install, packages...)...)
		},
	}
}

// forbidServices sets Debian's policy that packages start no services, unless there is a policy already.
// The returned function takes it back.
func forbidServices() (allow func(), err error) {
	const policy = "/usr/sbin/policy-rc.d"
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if os.IsExist(err) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	return func() { _ = os.Remove(policy) }, err
}

// standins builds images from Debian packages, for a machine that reaches no image registry, if the script
// that does so lies beside the repository.
func standins() way {
	const script = "../shared/standins/up"
	return way{
		name:     script,
		possible: func() bool { return os.Geteuid() == 0 && file(script)() },
		get:      func(ctx context.Context) error { return command(ctx, script) },
	}
}

func pull(name string) way {
	return way{
		name:     "docker pull " + name,
		possible: onPath("docker"),
		get:      func(ctx context.Context) error { return command(ctx, "docker", "pull", "--quiet", name) },
	}
}

// goBuild builds the program of another module to where go install would put it. Nothing of it gets into our module.
// Unlike go install it asks for no version but this one: a module proxy need not know others.
func goBuild(module, program string) way {
	return way{
		name:     "go build " + module,
		possible: onPath("go"),
		get: func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
			var source struct{ Dir, Error string }
			if jsonErr := json.Unmarshal(out, &source); jsonErr != nil || source.Dir == "" {
				return fmt.Errorf("go mod download %s: %w: %s", module, errors.Join(err, jsonErr), source.Error)
			}
			return command(ctx, "go", "build", "-C", source.Dir, "-mod=readonly", "-o", goBin(program), ".")
		},
	}
}

// goBin is where go install puts a program.
func goBin(program string) string {
	out, _ := exec.Command("go", "env", "GOBIN", "GOPATH").Output() // without Go, the program is found nowhere
	bin, paths, _ := strings.Cut(strings.TrimRight(string(out), "\n"), "\n")
	if bin == "" {
		bin = filepath.Join(filepath.SplitList(paths + string(filepath.ListSeparator))[0], "bin")
	}
	return filepath.Join(bin, program)
}

func onPath(program string) func() bool {
	return func() bool { _, err := dbserver.Program(program); return err == nil }
}

func file(name string) func() bool {
	return func() bool { _, err := os.Stat(name); return err == nil }
}

func image(name string) func() bool {
	return func() bool { return exec.Command("docker", "image", "inspect", name).Run() == nil }
}
