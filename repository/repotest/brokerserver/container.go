// Package brokerserver starts message brokers for tests: RabbitMQ from its official image, Kafka and RocketMQ as Java
// processes. The servers listen on loopback and end with their test. A test can stop them, start them again with their
// data, and freeze them.
package brokerserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"seckill/repository/repotest/dbserver"
)

// RabbitMQImage is the official image that the tests run.
const RabbitMQImage = "rabbitmq:4.3"

// Container is a broker that runs in a container.
type Container struct {
	Addr string // host:port on loopback

	id    string
	ready func() error
}

// RabbitMQ starts a server. Without its image the test is skipped, or fails if SECKILL_TEST_REQUIRED is 1.
func RabbitMQ(t testing.TB) *Container {
	t.Helper()
	if !dbserver.HasImage(RabbitMQImage) {
		missing(t, "Docker does not run here, or has no image "+RabbitMQImage+"; `go run ./cmd/test` gets it")
	}
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	id, err := docker("run", "--detach", "--label="+dbserver.RunLabel+"="+os.Getenv(dbserver.RunVariable),
		"--publish=127.0.0.1:"+port+":5672", "--hostname=rabbit", RabbitMQImage)
	if err != nil {
		t.Fatal(err)
	}
	c := &Container{Addr: addr, id: id}
	c.ready = func() error {
		_, err := docker("exec", c.id, "rabbitmq-diagnostics", "--quiet", "check_port_connectivity")
		return err
	}
	t.Cleanup(func() {
		if _, err := docker("rm", "--force", "--volumes", c.id); err != nil {
			t.Error(err)
		}
	})
	await(t, "RabbitMQ", c.ready)
	return c
}

// URL returns the address of RabbitMQ for clients.
func (c *Container) URL() string { return "amqp://guest:guest@" + c.Addr + "/" }

// Stop kills the server; its data remains. It waits for two seconds first, because RabbitMQ 4.3 loses a quorum queue that
// was declared right before a kill ("configured member of queue … was not found on this node").
func (c *Container) Stop(t *testing.T) {
	t.Helper()
	time.Sleep(2 * time.Second)
	c.do(t, "kill")
}

// Start starts the server again and waits until it accepts connections.
func (c *Container) Start(t *testing.T) {
	t.Helper()
	c.do(t, "start")
	await(t, "RabbitMQ", c.ready)
}

// Freeze suspends the server: connections stay open and nothing is answered.
func (c *Container) Freeze(t *testing.T) { t.Helper(); c.do(t, "pause") }

// Thaw resumes the server.
func (c *Container) Thaw(t *testing.T) { t.Helper(); c.do(t, "unpause") }

// Run runs a command in the container and returns what it prints.
func (c *Container) Run(t testing.TB, command ...string) string {
	t.Helper()
	out, err := docker(append([]string{"exec", c.id}, command...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *Container) do(t testing.TB, command string) {
	t.Helper()
	if _, err := docker(command, c.id); err != nil {
		t.Fatal(err)
	}
}

func docker(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// await polls until a server is ready.
func await(t testing.TB, name string, ready func() error) {
	t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < 2*time.Minute; time.Sleep(100 * time.Millisecond) {
		if err = ready(); err == nil {
			return
		}
	}
	t.Fatalf("%s is not ready: %v", name, err)
}

// freeAddr finds a loopback port below those that the kernel gives to outgoing connections.
func freeAddr(t testing.TB) string {
	t.Helper()
	for port := 20000 + time.Now().Nanosecond()/1000%6000; port < 32000; port++ {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no free port on loopback")
	return ""
}

func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
