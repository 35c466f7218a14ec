package brokerserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"seckill/repository/repotest/dbserver"
)

// KafkaVersion is the version that the tests run.
const KafkaVersion = "4.1.0"

// KafkaServer is one Kafka node that is both broker and controller.
type KafkaServer struct {
	Addr string
	process
}

// Kafka starts a node. It returns ErrUnavailable if the machine has no Java or cannot download from Maven. The first call
// on a machine downloads Kafka.
func Kafka(t testing.TB) (*KafkaServer, error) {
	t.Helper()
	lib, err := jars("kafka-"+KafkaVersion, "org.apache.kafka:kafka_2.13:"+KafkaVersion)
	if err != nil {
		return nil, fmt.Errorf("%w: Kafka: %w", ErrUnavailable, err)
	}
	k := &KafkaServer{Addr: freeAddr(t)}
	controller := above(t, k.Addr, 1)
	k.dir = dataDir(t, dbserver.DataDir())
	config := filepath.Join(k.dir, "server.properties")
	settings := []string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@" + controller,
		"listeners=PLAINTEXT://" + k.Addr + ",CONTROLLER://" + controller, "advertised.listeners=PLAINTEXT://" + k.Addr,
		"controller.listener.names=CONTROLLER", "log.dirs=" + filepath.Join(k.dir, "data"),
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4", "transaction.state.log.replication.factor=1",
		"group.initial.rebalance.delay.ms=0",
		// A node without replicas must write to disk before it confirms; otherwise a kill could lose confirmed events.
		"log.flush.interval.messages=1",
	}
	if err := os.WriteFile(config, []byte(strings.Join(settings, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	java := []string{"-Xmx512m", "-cp", lib + "/*"}
	format := exec.Command("java", append(java, "kafka.tools.StorageTool", "format", "--config", config, "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")...)
	if out, err := format.CombinedOutput(); err != nil {
		t.Fatalf("format Kafka's storage: %v: %s", err, out)
	}
	k.args = append(java, "kafka.Kafka", config)
	t.Cleanup(k.kill)
	k.launch(t)
	return k, nil
}

// launch starts the node with the data that it had, and waits until it accepts connections.
func (k *KafkaServer) launch(t testing.TB) {
	t.Helper()
	k.start(t)
	await(t, "Kafka", func() error {
		if err := k.running(); err != nil {
			t.Fatal(err)
		}
		return listening(k.Addr)()
	})
}

// Stop kills the node.
func (k *KafkaServer) Stop(*testing.T) { k.kill() }

// Start starts the node again.
func (k *KafkaServer) Start(t *testing.T) { t.Helper(); k.launch(t) }

// Freeze suspends the node: connections stay open and nothing is answered.
func (k *KafkaServer) Freeze(t *testing.T) { t.Helper(); k.signal(t, syscall.SIGSTOP) }

// Thaw resumes the node.
func (k *KafkaServer) Thaw(t *testing.T) { t.Helper(); k.signal(t, syscall.SIGCONT) }
