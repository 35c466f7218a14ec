package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"seckill/repository/repotest/dbserver"
)

// aptInstall installs Debian packages without starting their services: the tests start their own servers.
func aptInstall(packages ...string) way {
	return way{
		command:  "apt-get install " + strings.Join(packages, " ") + " (as root)",
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

// forbidServices sets Debian's policy that packages start no services, unless the machine has a policy. The returned
// function removes it.
func forbidServices() (allow func(), err error) {
	const policy = "/usr/sbin/policy-rc.d"
	err = writeNew(policy, "#!/bin/sh\nexit 101\n")
	if os.IsExist(err) {
		return func() {}, nil
	}
	return func() { _ = os.Remove(policy) }, err
}

// writeNew writes an executable file that does not exist yet.
func writeNew(name, text string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func pull(name string) way {
	return way{
		command:  "docker pull " + name,
		possible: onPath("docker"),
		get:      func(ctx context.Context) error { return command(ctx, "docker", "pull", "--quiet", name) },
	}
}

// goBuild builds a program outside of our go.mod, and puts it where go install would. `go install` also asks the module
// proxy for the latest version, which some proxies cannot answer.
func goBuild(module, pkg, program string) way {
	return way{
		command:  "go install " + strings.Replace(module, "@", strings.TrimPrefix(pkg, ".")+"@", 1),
		possible: onPath("go"),
		get: func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
			var source struct{ Dir, Error string }
			if jsonErr := json.Unmarshal(out, &source); jsonErr != nil || source.Dir == "" {
				return fmt.Errorf("go mod download %s: %w: %s", module, errors.Join(err, jsonErr), source.Error)
			}
			return command(ctx, "go", "build", "-C", source.Dir, "-mod=readonly", "-o", goBin(program), pkg)
		},
	}
}

// goBin returns where go install puts a program.
func goBin(program string) string {
	out, _ := exec.Command("go", "env", "GOBIN", "GOPATH").Output() // without Go, nothing is found there
	bin, paths, _ := strings.Cut(strings.TrimRight(string(out), "\n"), "\n")
	if bin == "" {
		bin = filepath.Join(filepath.SplitList(paths + string(filepath.ListSeparator))[0], "bin")
	}
	return filepath.Join(bin, program)
}

func onPath(program string) check {
	return func() bool { _, err := dbserver.Program(program); return err == nil }
}

func file(name string) check {
	return func() bool { _, err := os.Stat(name); return err == nil }
}

func image(name string) check {
	return func() bool { return dbserver.HasImage(name) }
}
