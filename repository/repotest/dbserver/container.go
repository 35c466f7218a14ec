package dbserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// RunVariable names the environment variable with the name of a test run. Containers are labelled with it, so
// that the run can remove those of a test that died before its cleanup.
const RunVariable = "SECKILL_TEST_RUN"

// RunLabel is the label that containers carry the run's name in.
const RunLabel = "seckill.test.run"

// container runs MySQL from its official image. It shares the host's network: a forwarded port would lead
// through a proxy process, which costs much of the speed that is measured here.
type container struct {
	args []string
	id   string // empty until it was created
}

func (c *container) how() string { return "container of " + MySQLImage }

func (c *container) start(ctx context.Context) error {
	if c.id != "" {
		_, err := docker(ctx, "start", c.id)
		return err
	}
	args := []string{"run", "--detach", "--network=host",
		"--label=" + RunLabel + "=" + os.Getenv(RunVariable),
		"--env=MYSQL_ALLOW_EMPTY_PASSWORD=yes", MySQLImage, "--mysqlx=OFF"}
	id, err := docker(ctx, append(args, c.args...)...)
	c.id = id
	return err
}

func (c *container) alive(ctx context.Context) error {
	if c.id == "" {
		return errors.New("never started")
	}
	state, err := docker(ctx, "inspect", "--format={{.State.Status}}", c.id)
	if err != nil {
		return err
	}
	if state == "running" || state == "paused" {
		return nil
	}
	log, err := docker(ctx, "logs", "--tail=20", c.id)
	return errors.Join(fmt.Errorf("container is %s\n%s", state, log), err)
}

func (c *container) kill(ctx context.Context) error   { return c.do(ctx, "kill") }
func (c *container) pause(ctx context.Context) error  { return c.do(ctx, "pause") }
func (c *container) resume(ctx context.Context) error { return c.do(ctx, "unpause") }

// remove takes the anonymous volume with the data along.
func (c *container) remove(ctx context.Context) error {
	if c.id == "" {
		return nil
	}
	return c.do(ctx, "rm", "--force", "--volumes")
}

func (c *container) do(ctx context.Context, command ...string) error {
	_, err := docker(ctx, append(command, c.id)...)
	return err
}

// docker runs a docker command and returns what it printed, without the spaces around it.
func docker(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	text := strings.TrimSpace(string(out))
	if args[0] == "logs" {
		text += stderr.String() // servers log to standard error
	}
	if err != nil {
		return text, fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return text, nil
}
