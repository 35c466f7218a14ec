package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// docker runs the docker command with an environment of its own. Every command is written to the transcript.
type docker struct {
	env        []string // beside that of this process
	transcript io.Writer
}

// commandTime bounds every command but those that build or start something: a daemon that hangs must not hang a drill.
const commandTime = time.Minute

// run runs docker with the arguments and returns what it printed, without blanks around. The command is in a process
// group of its own: Ctrl-C is for the drill, which then takes everything down by more commands of this kind.
func (d *docker) run(ctx context.Context, args ...string) (string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commandTime)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), d.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	fmt.Fprintf(d.transcript, "%s docker %s (%s)\n", begin.Format(time.TimeOnly+".000"), strings.Join(args, " "), time.Since(begin).Round(time.Millisecond))
	if err != nil {
		_, _ = io.Copy(d.transcript, io.MultiReader(bytes.NewReader(stdout.Bytes()), bytes.NewReader(stderr.Bytes())))
		return "", commandError(ctx, err, args, stderr.String(), stdout.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// commandError says what failed, and the last lines of what the command had to say about it.
func commandError(ctx context.Context, err error, args []string, outputs ...string) error {
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	const most, mostShown = 15, 160
	shown := strings.Join(args, " ")
	shown = shown[:min(len(shown), mostShown)]
	for _, output := range outputs {
		lines := strings.Split(strings.TrimSpace(output), "\n")
		if text := strings.Join(lines[max(0, len(lines)-most):], "\n  "); text != "" {
			return fmt.Errorf("docker %s: %w\n  %s", shown, err, text)
		}
	}
	return fmt.Errorf("docker %s: %w", shown, err)
}

// available says why no drill can run on this machine, or nothing.
func (d *docker) available(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("drills need Docker with the compose plugin, and there is no docker on the path")
	}
	if _, err := d.run(ctx, "info", "--format", "{{.ServerVersion}}"); err != nil {
		return fmt.Errorf("drills need a Docker engine, and it does not answer: %w", err)
	}
	if _, err := d.run(ctx, "compose", "version", "--short"); err != nil {
		return fmt.Errorf("drills need docker compose (the plugin, version 2.24 or later): %w", err)
	}
	return nil
}

// buildEnv hands the settings of this machine's Go to the build of the image, which otherwise could not fetch modules
// where this machine has to go through a proxy.
func buildEnv(ctx context.Context) ([]string, error) {
	var env []string
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GOPRIVATE", "GOFLAGS"} {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			return nil, fmt.Errorf("go env %s: %w", name, err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	if _, set := os.LookupEnv("SECKILL_BUILD_NETWORK"); !set {
		env = append(env, "SECKILL_BUILD_NETWORK=host")
	}
	return env, nil
}
