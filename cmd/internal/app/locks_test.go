package app

import (
	"testing"
	"time"

	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
	"seckill/repository/repotest/zktest"
)

// A sale behind Redlock, of whose five servers two are killed in the middle, and then a third.
func TestLock_RedlockOutages(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		opts := optionsFor(t, target, "")
		opts.Lock.Lock = "redlock"
		opts.Lock.LockTimeout = 4 * time.Second // a busy machine is not a fault
		var servers []*redistest.Server
		for range 5 {
			server := redistest.Start(t)
			servers = append(servers, server)
			opts.Lock.RedlockAddrs = append(opts.Lock.RedlockAddrs, server.Addr)
		}
		shop := open(t, opts)
		voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(150, 1, time.Hour))
		sell := func(first int64) {
			t.Helper()
			counts := runBuyers(50, 16, func(i int) []answer {
				b := newBuyer(t, fast, shop.URL(), first+int64(i), token.User)
				return atOnce(2, func(int) answer { return b.place(voucher) })
			})
			if counts["201"] != 50 || counts["201"]+counts["in-progress"]+counts["already-ordered"]+counts["sold-out"] != 100 {
				t.Errorf("got %v", counts)
			}
		}
		wait.Within(t, 20*time.Second, "a lock of a majority", func() bool { // servers that have just started are not counted at first
			newBuyer(t, fast, shop.URL(), 2, token.User).place(newBuyer(t, fast, shop.URL(), 1, token.Admin).createVoucher(sale(1, 1, time.Hour)))
			return granted(t, shop, "granted") > 0
		})
		sell(100)
		servers[0].Kill()
		servers[1].Kill()
		bypassed, before := granted(t, shop, "bypassed"), granted(t, shop, "granted")
		sell(200)
		if granted(t, shop, "bypassed") != bypassed || granted(t, shop, "granted") == before {
			t.Error("three of five servers are a majority")
		}
		servers[2].Kill()
		sell(300)
		if granted(t, shop, "bypassed") == bypassed {
			t.Error("two of five servers are none")
		}
		mustAudit(t, shop.DB)
	})
}

// A sale behind ZooKeeper, which leases the worker ids too; its server is killed in the middle.
func TestLock_ZooKeeperOutage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		server := zktest.Start(t)
		opts := optionsFor(t, target, "")
		opts.Lock.Lock, opts.IDs.WorkerLeases = "zookeeper", "zookeeper"
		opts.Servers.ZooKeeperAddrs = []string{server.Addr}
		opts.Lock.LockTimeout = 4 * time.Second // a busy machine is not a fault
		shops := []*App{open(t, opts), open(t, opts)}
		voucher := newBuyer(t, checked(t), shops[0].URL(), 1, token.Admin).createVoucher(sale(100, 1, time.Hour))
		sell := func(first int64) {
			t.Helper()
			counts := runBuyers(50, 16, func(i int) []answer {
				b := newBuyer(t, fast, shops[i%2].URL(), first+int64(i), token.User)
				return atOnce(2, func(int) answer { return b.place(voucher) })
			})
			if counts["201"] != 50 || counts["201"]+counts["in-progress"]+counts["already-ordered"]+counts["sold-out"] != 100 {
				t.Errorf("got %v", counts)
			}
		}
		sell(100)
		if granted(t, shops[0], "granted") == 0 || granted(t, shops[0], "bypassed") != 0 {
			t.Error("with a ZooKeeper, locks are granted")
		}
		server.Kill()
		sell(200)
		if granted(t, shops[0], "bypassed") == 0 {
			t.Error("without one, they are bypassed")
		}
		mustAudit(t, shops[0].DB)
		for _, shop := range shops {
			if err := shop.Close(t.Context()); err == nil {
				t.Error("a worker id cannot be given back to a server that is gone, and Close says so")
			}
		}
	})
}
