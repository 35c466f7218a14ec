package brokerserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/repository/repotest/dbserver"
)

// RocketMQVersion is the version that the tests run.
const RocketMQVersion = "5.3.3"

// RocketMQServer is one broker and its name server.
type RocketMQServer struct {
	NameServer string // host:port, for clients
	Broker     string // host:port, for administration

	names, broker process
}

// RocketMQ starts a name server and a broker. It returns ErrUnavailable if the machine has no Java or cannot download from
// Maven. The first call on a machine downloads RocketMQ.
func RocketMQ(t testing.TB) (*RocketMQServer, error) {
	t.Helper()
	lib, err := jars("rocketmq-"+RocketMQVersion, "org.apache.rocketmq:rocketmq-broker:"+RocketMQVersion, "org.apache.rocketmq:rocketmq-namesrv:"+RocketMQVersion)
	if err != nil {
		return nil, fmt.Errorf("%w: RocketMQ: %w", ErrUnavailable, err)
	}
	dir := dataDir(t, dbserver.DataDir())
	s := &RocketMQServer{NameServer: freeAddr(t)}
	s.Broker = above(t, s.NameServer, 10) // it also listens two ports below and one above
	s.names = javaProcess(t, dir, lib, "names", "org.apache.rocketmq.namesrv.NamesrvStartup", map[string]string{"listenPort": port(s.NameServer)})
	s.broker = javaProcess(t, dir, lib, "broker", "org.apache.rocketmq.broker.BrokerStartup", map[string]string{
		"namesrvAddr": s.NameServer, "listenPort": port(s.Broker), "brokerIP1": "127.0.0.1", "brokerName": "test", "brokerId": "0",
		"storePathRootDir": filepath.Join(dir, "store"), "storePathCommitLog": filepath.Join(dir, "store", "commitlog"),
		"mappedFileSizeCommitLog": "67108864", "autoCreateTopicEnable": "false",
		"flushDiskType": "SYNC_FLUSH", // otherwise a crash of the machine could lose what was confirmed
		// By default a broker rejects requests that have waited for 200 ms, which they do on a busy test machine.
		"waitTimeMillsInSendQueue": "5000",
	})
	t.Cleanup(s.names.kill)
	t.Cleanup(s.broker.kill)
	s.names.start(t)
	await(t, "RocketMQ's name server", listening(s.NameServer))
	s.launch(t)
	return s, nil
}

func javaProcess(t testing.TB, home, lib, name, class string, settings map[string]string) process {
	t.Helper()
	dir := filepath.Join(home, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for key, value := range settings {
		fmt.Fprintf(&text, "%s=%s\n", key, value)
	}
	config := filepath.Join(dir, "config.properties")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return process{dir: dir, args: []string{
		"-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=512m", "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
		"--add-opens=java.base/java.nio=ALL-UNNAMED", "-Drocketmq.home.dir=" + home, "-Duser.home=" + dir,
		"-cp", lib + "/*", class, "-c", config,
	}}
}

func (s *RocketMQServer) launch(t testing.TB) {
	t.Helper()
	s.broker.start(t)
	await(t, "RocketMQ's broker", func() error {
		if err := s.broker.running(); err != nil {
			t.Fatal(err)
		}
		return listening(s.Broker)()
	})
}

// Stop kills the broker; the name server continues.
func (s *RocketMQServer) Stop(*testing.T) { s.broker.kill() }

// Start starts the broker again.
func (s *RocketMQServer) Start(t *testing.T) { t.Helper(); s.launch(t) }

// Freeze suspends the broker: connections stay open and nothing is answered.
func (s *RocketMQServer) Freeze(t *testing.T) { t.Helper(); s.broker.signal(t, syscall.SIGSTOP) }

// Thaw resumes the broker.
func (s *RocketMQServer) Thaw(t *testing.T) { t.Helper(); s.broker.signal(t, syscall.SIGCONT) }

// listening returns a check that fails unless a server accepts connections at the address.
func listening(addr string) func() error {
	return func() error {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// above returns an address with a higher port.
func above(t testing.TB, addr string, ports int) string {
	t.Helper()
	n, err := strconv.Atoi(port(addr))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", n+ports)
}
