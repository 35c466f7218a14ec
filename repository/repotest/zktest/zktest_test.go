package zktest

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerKeepsItsData(t *testing.T) {
	s := Start(t)
	if _, err := s.Client().Create("/kept", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Kill()
	s.Restart()
	if ok, _, err := s.Client().Exists("/kept"); !ok || err != nil {
		t.Fatalf("kept %t, %v", ok, err)
	}
	if answer := s.Ask("mntr"); !strings.Contains(answer, "zk_znode_count") {
		t.Errorf("mntr: %q", answer)
	}
}
