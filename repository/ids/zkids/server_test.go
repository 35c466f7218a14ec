package zkids_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// server is a ZooKeeper of the test's own.
type server struct {
	addr string
	cmd  *exec.Cmd
}

const classPath = "/usr/share/java" // where Debian's package puts it

func startServer(t *testing.T) *server {
	t.Helper()
	jars, err := filepath.Glob(filepath.Join(classPath, "zookeeper*.jar"))
	java, lookErr := exec.LookPath("java")
	if err != nil || lookErr != nil || len(jars) == 0 {
		if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
			t.Fatal("there is no java or no zookeeper.jar")
		}
		t.Skip("there is no java or no zookeeper.jar: install Debian's package zookeeper")
	}
	s := &server{addr: freeAddr(t)}
	_, port, _ := net.SplitHostPort(s.addr)
	s.cmd = exec.Command(java, "-cp", classPath+"/*", "-Xmx128m", "-Dzookeeper.admin.enableServer=false",
		"-Dzookeeper.log.dir="+t.TempDir(), "org.apache.zookeeper.server.ZooKeeperServerMain", port, t.TempDir())
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	return s
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect returns a connection with a session, which ends with the test.
func (s *server) connect(t *testing.T) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{s.addr}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-ctx.Done():
			t.Fatal("ZooKeeper does not answer")
		}
	}
}
