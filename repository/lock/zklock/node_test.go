package zklock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/repository/repotest/zktest"
)

// TestNode_OfAnotherSessionIsNotUsed: a node with our id that belongs to another session, as it would look if our session had expired
// and the server had not removed the node yet, gives no lock.
func TestNode_OfAnotherSessionIsNotUsed(t *testing.T) {
	server := zktest.Start(t)
	s, err := connect(Config{Addrs: []string{server.Addr}}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	n := newNode(s, "/locks", "key")
	by := time.Now().Add(20 * time.Second)
	if err := n.createParents(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Client().Create(n.parent+"/"+n.id, nil, zk.FlagEphemeralSequential, world); err != nil {
		t.Fatal(err)
	}
	if err := n.find(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	if err := n.readStat(t.Context(), by); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("readStat: %v, want ErrNoNode", err)
	}
	if before, err := n.predecessor(t.Context(), by); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("predecessor: %q, %v, want ErrNoNode", before, err)
	}
}

// TestSession_GrantedTimeout: what the server grants, not what was asked for, is how long the session can be trusted.
func TestSession_GrantedTimeout(t *testing.T) {
	server := zktest.Start(t)
	s, err := connect(Config{Addrs: []string{server.Addr}, Session: time.Hour}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	by := time.Now().Add(20 * time.Second)
	if _, err := repeat(context.Background(), s, by, func() ([]string, error) { c, _, err := s.Children("/"); return c, err }); err != nil {
		t.Fatal(err)
	}
	if got := s.timeout(); got != time.Minute {
		t.Errorf("%v, want the server's maximum of a minute", got)
	}
}

func TestHosts_InTurn(t *testing.T) {
	h := new(hosts)
	_ = h.Init([]string{"a", "b"})
	want := func(server string, pause bool) {
		t.Helper()
		if s, p := h.Next(); s != server || p != pause {
			t.Errorf("%s, %t; want %s, %t", s, p, server, pause)
		}
	}
	want("a", false)
	want("b", false)
	want("a", true) // none was reached in a round
	h.Connected()
	want("a", false) // lost: the same again at once
	want("b", false)
	want("a", true)
}

func FuzzSequence(f *testing.F) {
	for _, name := range []string{"_c_ID-lock-0000000012", "lock-0000000000", "lock-1", "", "lock-9999999999", "x-lock-000000000a"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, ok := sequence(name)
		if ok && (n < 0 || len(name) < len("lock-")+10) {
			t.Errorf("%q is number %d", name, n)
		}
	})
}
