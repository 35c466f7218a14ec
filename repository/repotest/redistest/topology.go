package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// StartReplica starts a replica of master, and waits until it is in step.
func StartReplica(t testing.TB, master *Server) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := Start(t, "--replicaof", host+" "+port)
	client := replica.Client()
	await(t, "the replica is in step", func(ctx context.Context) bool {
		return strings.Contains(client.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	return replica
}

// StartSentinel starts a single Sentinel, enough for its own majority, that watches master under name. It finds a
// failure within half a second. It returns when it knows the master's first replica.
func StartSentinel(t testing.TB, name string, master *Server) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\nsentinel down-after-milliseconds %[1]s 500\n"+
		"sentinel failover-timeout %[1]s 5000\n", name, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The file comes first on the command line, so that options may follow it.
	s := start(t, []string{config}, "--sentinel")
	client := s.Client()
	await(t, "the Sentinel knows the replica", func(ctx context.Context) bool {
		return strings.Contains(client.Info(ctx, "sentinel").Val(), "slaves=1")
	})
	return s
}

// StartCluster starts a cluster of three masters and returns their addresses.
func StartCluster(t testing.TB) []string {
	t.Helper()
	const masters, slots = 3, 16384
	var addrs, first []string
	for i := range masters {
		bus := portOf(freeAddr(t))
		s := Start(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", bus)
		cluster(t, s, "addslotsrange", i*slots/masters, (i+1)*slots/masters-1)
		cluster(t, s, "set-config-epoch", i+1)
		if first == nil {
			first = []string{"127.0.0.1", portOf(s.Addr), bus}
		} else {
			cluster(t, s, "meet", first[0], first[1], first[2])
		}
		addrs = append(addrs, s.Addr)
	}
	for _, addr := range addrs {
		client := Client(t, addr)
		await(t, "the cluster is whole", func(ctx context.Context) bool {
			info := client.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(masters))
		})
	}
	return addrs
}

func cluster(t testing.TB, s *Server, args ...any) {
	t.Helper()
	if err := s.Client().Do(context.Background(), append([]any{"cluster"}, args...)...).Err(); err != nil {
		t.Fatalf("cluster %v: %v", args, err)
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func await(t testing.TB, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			t.Fatal("not after 30 seconds: " + what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
