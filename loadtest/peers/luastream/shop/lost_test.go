package shop_test

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/service/idgen"
)

// These tests are a contrast. They show what becomes of orders that were answered 201 and were not in the database yet,
// when the Redis that had them is gone. They assert the loss: it is how the pattern is, and no defect of this peer.
// What the same faults do to our shop, whose 201 is a commit, is asserted in its own tests.

// acknowledged is how many orders are answered while the database is slow, behind the one that the writer has in hand.
const acknowledged = 20

// sellWhileTheDatabaseIsSlow returns the order that the writer is committing, and those that are in the stream only.
func sellWhileTheDatabaseIsSlow(t *testing.T, server *redistest.Server, db dbtest.Database) (voucher, inHand idgen.ID, waiting []idgen.ID, release func()) {
	t.Helper()
	s := open(t, server.Addr, db)
	voucher = create(t, s, 2*acknowledged)
	release = holdStock(t, db, voucher)
	inHand = buy(t, s, voucher, 1, 1)[0]
	client := server.Client()
	await(t, "the writer has taken the first order", func(ctx context.Context) bool {
		pending, err := client.XPending(ctx, "luastream:orders", "writers").Result()
		return err == nil && pending.Count == 1
	})
	return voucher, inHand, buy(t, s, voucher, 2, 1+acknowledged), release
}

func TestRedisWithoutPersistenceCrashes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		server := redistest.Start(t)
		_, inHand, waiting, release := sellWhileTheDatabaseIsSlow(t, server, db)
		crash(t, server)
		server.Restart()
		release()
		assertOnly(t, server, db, inHand)
		t.Logf("%d acknowledged orders exist nowhere", len(waiting))
	})
}

// The replica that takes over has not seen the last orders. That the master had synced each of them to its disk before
// it answered is no help.
func TestRedisFailsOver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		master := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		replica := redistest.StartReplica(t, master)
		cutLink(t, replica)
		_, inHand, waiting, release := sellWhileTheDatabaseIsSlow(t, master, db)
		crash(t, master)
		promote(t, replica)
		release()
		open(t, replica.Addr, db) // what would be in the replica's stream is written now
		assertOnly(t, replica, db, inHand)
		t.Logf("%d acknowledged orders exist nowhere", len(waiting))
	})
}

// A control: these tests can tell a loss from none. A crash of the process loses nothing that the operating system has.
func TestRedisWithAppendOnlyFileCrashes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec")
		_, inHand, waiting, release := sellWhileTheDatabaseIsSlow(t, server, db)
		client := server.Client()
		await(t, "Redis has handed over what it has to write", func(ctx context.Context) bool {
			return strings.Contains(client.Info(ctx, "persistence").Val(), "\naof_buffer_length:0\r")
		})
		crash(t, server)
		server.Restart()
		release()
		assertOnly(t, server, db, append([]idgen.ID{inHand}, waiting...)...)
	})
}

// The second counter goes back in time with the failover, and sells again what the database has sold.
func TestCountersDrift(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		const units = 5
		master := redistest.Start(t)
		replica := redistest.StartReplica(t, master)
		s := open(t, master.Addr, db)
		voucher := create(t, s, units)
		if n := master.Client().Wait(t.Context(), 1, 20*time.Second).Val(); n != 1 {
			t.Fatal("the replica has not got the voucher")
		}
		cutLink(t, replica)
		buy(t, s, voucher, 1, units)
		drain(t, s) // all of them are durable: no order is lost here
		crash(t, master)
		promote(t, replica)
		s = open(t, replica.Addr, db)
		buy(t, s, voucher, units+1, 2*units)
		drain(t, s)
		if got := stats(t, s, voucher); got.Acknowledged != units || got.Refused != units || got.Durable != 0 {
			t.Errorf("of %d units sold twice: %+v", units, got)
		}
		if verdict, err := s.Audit(t.Context()); err != nil || verdict.OK {
			t.Errorf("the audit finds nothing: %+v %v", verdict, err)
		}
		if stock, orders := counted(t, db, voucher); stock != 0 || orders != units {
			t.Errorf("the database has %d units and %d orders, want 0 and %d: it must not oversell", stock, orders, units)
		}
	})
}

// assertOnly waits until the stream is empty, and checks that the database has these orders and no other.
func assertOnly(t *testing.T, server *redistest.Server, db dbtest.Database, want ...idgen.ID) {
	t.Helper()
	pool := pool(t, db)
	client := server.Client()
	orders := func(ctx context.Context) (n int) {
		if err := pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM luastream_order").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	await(t, "the writer is done", func(ctx context.Context) bool {
		groups, err := client.XInfoGroups(ctx, "luastream:orders").Result()
		return err == nil && len(groups) == 1 && client.XLen(ctx, "luastream:orders").Val() == 0 && orders(ctx) >= len(want)
	})
	if n := orders(t.Context()); n != len(want) {
		t.Errorf("the database has %d orders, want %d", n, len(want))
	}
	for _, id := range want {
		var found int
		if err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM luastream_order WHERE id = ?", id).Scan(&found); err != nil || found != 1 {
			t.Errorf("order %s: %d rows, %v", id, found, err)
		}
	}
}

// crash ends the server as kill -9 does.
func crash(t *testing.T, server *redistest.Server) {
	t.Helper()
	server.Kill()
	if conn, err := net.DialTimeout("tcp", server.Addr, time.Second); err == nil {
		_ = conn.Close()
		t.Fatal("the killed Redis still answers")
	}
}

// cutLink parts a replica from its master: it keeps what it has and hears no more.
func cutLink(t *testing.T, replica *redistest.Server) {
	t.Helper()
	if err := replica.Client().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
}

// promote makes a replica the master.
func promote(t *testing.T, replica *redistest.Server) {
	t.Helper()
	if err := replica.Client().ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "the replica is a master", func(ctx context.Context) bool {
		return strings.Contains(replica.Client().Info(ctx, "replication").Val(), "role:master")
	})
}

// holdStock keeps the stock row locked, as a database does that is slow, until the returned function is called.
func holdStock(t *testing.T, db dbtest.Database, voucher idgen.ID) (release func()) {
	t.Helper()
	tx, err := pool(t, db).BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // does nothing after the release
	var stock int64
	if err := tx.QueryRowContext(t.Context(), "SELECT stock FROM luastream_voucher WHERE id = ? FOR UPDATE", voucher).Scan(&stock); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// counted returns what the database says of a voucher.
func counted(t *testing.T, db dbtest.Database, voucher idgen.ID) (stock, orders int64) {
	t.Helper()
	err := pool(t, db).QueryRowContext(t.Context(), "SELECT stock, (SELECT COUNT(*) FROM luastream_order WHERE voucher_id = v.id) "+
		"FROM luastream_voucher v WHERE id = ?", voucher).Scan(&stock, &orders)
	if err != nil {
		t.Fatal(err)
	}
	return stock, orders
}

func pool(t *testing.T, db dbtest.Database) *sql.DB {
	t.Helper()
	pool, err := sql.Open("mysql", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

func await(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			t.Fatal("not after 30 seconds: " + what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
