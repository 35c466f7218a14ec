package zkids_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/repository/ids/zkids"
	"seckill/repository/repotest/zktest"
	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

var everybody = zk.WorldACL(zk.PermAll)

func TestLeases_Suite(t *testing.T) {
	server, roots := zktest.Start(t), 0
	idgentest.RunLeases(t, func(*testing.T) idgentest.LeaseBackend {
		roots++
		root := fmt.Sprintf("/seckill/%d/ids", roots)
		return idgentest.LeaseBackend{
			Open: func(t *testing.T) idgen.LeaseStore { return zkids.New(server.Client(), root, everybody) },
			TTL:  800 * time.Millisecond,
			Long: time.Minute,
		}
	})
}

func TestLeases_Generator(t *testing.T) {
	server := zktest.Start(t)
	idgentest.Run(t, func(*testing.T) idgentest.New {
		return func(t *testing.T) idgen.Generator {
			g, err := idgen.NewSnowflake(t.Context(), zkids.New(server.Client(), "/ids", everybody))
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
	})
}

// ZooKeeper freezes: ids go on until the lease's own end, then calls fail, and afterwards they are served again.
func TestLeases_FrozenServer(t *testing.T) {
	server := zktest.Start(t)
	conn := server.Client()
	g, err := idgen.NewSnowflake(t.Context(), zkids.New(conn, "/ids", everybody),
		idgen.WithLease(3*time.Second, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var ids idgentest.Set
	next := func() error {
		id, err := g.Next(t.Context())
		if err == nil {
			ids.Add(t, id)
		}
		return err
	}
	server.Pause()
	frozen := time.Now()
	for err = next(); err == nil; err = next() {
		time.Sleep(time.Millisecond)
	}
	lasted := time.Since(frozen)
	if !errors.Is(err, idgen.ErrLeaseLost) || lasted < time.Second || lasted > 4*time.Second {
		t.Errorf("after %s: %v, want ErrLeaseLost in less than the 3 s of the lease", lasted, err)
	}
	server.Resume()
	deadline := time.Now().Add(30 * time.Second)
	for err = next(); errors.Is(err, idgen.ErrLeaseLost) && time.Now().Before(deadline); err = next() {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("after the server is back: %v", err)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
