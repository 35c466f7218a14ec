// Package compose runs docker compose projects from Go: it brings a compose file up under a separate name, with its own
// images, networks, volumes and free ports, works on its containers, and takes all of it down.
package compose

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

// Docker runs the docker command.
type Docker struct {
	Env        []string  // added to the environment of this process
	Transcript io.Writer // every command is written here, and the output of those that fail
}

// commandTimeout bounds commands whose context has no deadline, since the daemon may hang.
const commandTimeout = time.Minute

// Run runs docker and returns its trimmed output. The command has its own process group, so Ctrl-C does not reach it:
// it is for the caller, who cleans up with more commands.
func (d *Docker) Run(ctx context.Context, args ...string) (string, error) {
	return d.run(ctx, nil, args...)
}

func (d *Docker) run(ctx context.Context, env []string, args ...string) (string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commandTimeout)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(append(os.Environ(), d.Env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	fmt.Fprintf(d.Transcript, "%s docker %s (%s)\n", begin.Format(time.TimeOnly+".000"), strings.Join(args, " "), time.Since(begin).Round(time.Millisecond))
	if err != nil {
		fmt.Fprintf(d.Transcript, "%s%s", &stdout, &stderr)
		return "", commandError(ctx, err, args, stderr.String(), stdout.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// commandError says what failed, with the last lines of the command's output.
func commandError(ctx context.Context, err error, args []string, outputs ...string) error {
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	const maxLines, maxShown = 15, 160
	shown := strings.Join(args, " ")
	shown = shown[:min(len(shown), maxShown)]
	for _, output := range outputs {
		lines := strings.Split(strings.TrimSpace(output), "\n")
		if text := strings.Join(lines[max(0, len(lines)-maxLines):], "\n  "); text != "" {
			return fmt.Errorf("docker %s: %w\n  %s", shown, err, text)
		}
	}
	return fmt.Errorf("docker %s: %w", shown, err)
}

// Available returns an error if this machine cannot run docker compose.
func (d *Docker) Available(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not on the path; Docker with the compose plugin is needed")
	}
	if _, err := d.Run(ctx, "info", "--format", "{{.ServerVersion}}"); err != nil {
		return fmt.Errorf("the Docker engine does not answer: %w", err)
	}
	if _, err := d.Run(ctx, "compose", "version", "--short"); err != nil {
		return fmt.Errorf("docker compose is needed (the plugin, version 2.24 or later): %w", err)
	}
	return nil
}

// GoBuildEnv returns the settings of this machine's Go for the build of an image, which could not fetch modules otherwise
// where this machine uses a proxy.
func GoBuildEnv(ctx context.Context) ([]string, error) {
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
	return env, nil
}
