package dbserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// RunVariable names the environment variable with the name of a test run. Containers are labelled with it, so
// that the run can remove those of a test that died before its cleanup.
const RunVariable = "SECKILL_TEST_RUN"

// RunLabel is the label that containers carry the run's name in.
const RunLabel = "seckill.test.run"

// container runs a server from an official image.
type container struct {
	image string
	flags []string // of docker run
	args  []string // of the server
	id    string   // empty until it was created
}

// HasImage reports whether Docker runs here and has an image. Tests pull none; cmd/test does.
func HasImage(image string) bool {
	return exec.Command("docker", "image", "inspect", image).Run() == nil
}

func newContainer(image string, port int, args ...string) (*container, error) {
	if !HasImage(image) {
		return nil, fmt.Errorf("%w: Docker does not run here, or has no image %s", ErrUnavailable, image)
	}
	c := &container{image: image, args: append(args, settings(port)...)}
	if runtime.GOOS == "linux" {
		// A forwarded port leads through a proxy process, which costs much of the speed that tests measure.
		c.flags = []string{"--network=host"}
	} else {
		c.flags = []string{fmt.Sprintf("--publish=127.0.0.1:%d:%[1]d", port)}
		c.args = append(c.args, "--bind-address=0.0.0.0")
	}
	return c, nil
}

func (c *container) how() string { return "container of " + c.image }

func (c *container) start(ctx context.Context) error {
	if c.id != "" {
		_, err := docker(ctx, "start", c.id)
		return err
	}
	args := append([]string{"run", "--detach",
		"--label=" + RunLabel + "=" + os.Getenv(RunVariable),
		"--env=MYSQL_ALLOW_EMPTY_PASSWORD=yes", "--env=MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=yes"}, c.flags...)
	args = append(append(args, c.image), c.args...)
	id, err := docker(ctx, args...)
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
