// Package zktest gives tests real ZooKeeper servers, as processes of their own that end with the test.
package zktest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/repository/repotest/orphan"
)

// Server is a standalone ZooKeeper on a loopback port. It removes empty container nodes within a second, and allows
// session timeouts from 200 ms.
type Server struct {
	Addr string

	t    testing.TB
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// defaultClassPath is where Debian's package has ZooKeeper.
const defaultClassPath = "/usr/share/java/zookeeper.jar"

// classPath returns where ZooKeeper is: what SECKILL_TEST_ZOOKEEPER_CLASSPATH says, or Debian's package. Without it or
// java, the test fails if SECKILL_TEST_REQUIRED is 1, and is skipped otherwise.
func classPath(t testing.TB) string {
	t.Helper()
	path := os.Getenv("SECKILL_TEST_ZOOKEEPER_CLASSPATH")
	if path == "" {
		path = defaultClassPath
		if _, err := os.Stat(path); err != nil {
			missing(t, "ZooKeeper is not installed (Debian: zookeeper); cmd/test provides it")
		}
	}
	if _, err := exec.LookPath("java"); err != nil {
		missing(t, "java is not on PATH, and ZooKeeper needs it")
	}
	return path
}

func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Start starts an empty server. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	classPath(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s := &Server{Addr: addr, t: t, dir: t.TempDir()}
	_, port, _ := net.SplitHostPort(addr)
	config := fmt.Sprintf("dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\ntickTime=100\nmaxSessionTimeout=60000\n"+
		"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=ruok,mntr,wchs\n", s.dir, port)
	if err := os.WriteFile(s.config(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

func (s *Server) config() string { return filepath.Join(s.dir, "zoo.cfg") }

// Restart starts the server again at the same address, after Kill, with the data that it had, and waits until it
// answers.
func (s *Server) Restart() {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "zookeeper.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=300",
		"-cp", classPath(s.t), "org.apache.zookeeper.server.ZooKeeperServerMain", s.config())
	s.cmd.Stdout, s.cmd.Stderr = log, log
	orphan.Prevent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(s.cmd, s.done)
	for end := time.Now().Add(60 * time.Second); s.Ask("ruok") != "imok"; time.Sleep(20 * time.Millisecond) {
		select {
		case <-s.done:
			text, _ := os.ReadFile(log.Name())
			s.t.Fatalf("ZooKeeper ended at once: %s", text)
		default:
		}
		if time.Now().After(end) {
			s.t.Fatal("ZooKeeper does not answer")
		}
	}
}

// Ask sends one of the server's four-letter commands (ruok, mntr, wchs) and returns the answer, "" if there is none.
func (s *Server) Ask(command string) string {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, command); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(conn)
	return strings.TrimSpace(string(answer))
}

// Kill ends the server as a crash would, paused or not, and waits for its end. A second call does nothing.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// Pause stops the process, which keeps its connections, until Resume.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Client returns a session for looking at the server from the test's side, closed with the test.
func (s *Server) Client() *zk.Conn {
	s.t.Helper()
	conn, events, err := zk.Connect([]string{s.Addr}, 30*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	for late := time.After(30 * time.Second); ; {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-late:
			s.t.Fatal("ZooKeeper gives no session")
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}
