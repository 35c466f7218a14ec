package repository

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/wait"
	"seckill/service"
	"seckill/service/idgen"
)

// Faults of a whole server need a server for this test alone.
func TestPlace_ServerFaults(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"mariadb", "mysql"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			server := dbtest.StartServer(t, engine)
			t.Run("a batch larger than a packet", func(t *testing.T) { tryLargeBatch(t, server) })
			t.Run("paused in the middle of a commit", func(t *testing.T) { tryPause(t, server) })
			t.Run("killed under load", func(t *testing.T) { tryKill(t, server) })
		})
	}
}

// tryLargeBatch makes packets so small that a batch does not fit into one.
func tryLargeBatch(t *testing.T, server *dbtest.Server) {
	target := server.Create()
	admin := openDB(t, target)
	const packet = 16 << 10
	var usual int64
	if err := admin.gorm.Raw("SELECT @@global.max_allowed_packet").Row().Scan(&usual); err != nil {
		t.Fatal(err)
	}
	set := func(size int64) {
		if err := admin.gorm.Exec("SET GLOBAL max_allowed_packet = ?", size).Error; err != nil {
			t.Error(err)
		}
	}
	set(packet)
	defer set(usual)
	db := openRaw(t, target, PoolOptions{}) // its sessions have the new setting
	w := tap(t, db)
	const size = 400
	voucher := onSale(t, db, size-1, 1)
	batch := aBatch(voucher, size)
	place(t, db, batch...)
	for i, verdict := range verdicts(batch) {
		if want := map[bool]string{true: "placed", false: "sold-out"}[i < size-1]; verdict != want {
			t.Fatalf("order %d: %s (%v), want %s", i, verdict, batch[i].Err, want)
		}
	}
	if w.transactions() < size*190/packet {
		t.Errorf("%d transactions: the batch was not too large", w.transactions())
	}
	if n := live(t, db, voucher); n != size-1 {
		t.Errorf("%d orders stand", n)
	}
}

// tryPause freezes the server before the COMMIT. The answer comes in time and is "unknown"; after the server resumes,
// repeating the requests resolves it.
func tryPause(t *testing.T, server *dbtest.Server) {
	db := openDB(t, server.Create())
	voucher := onSale(t, db, 9, 1)
	w := tap(t, db)
	paused := false
	w.set(func(w *wire) {
		w.after = func(query string, err error) error {
			if strings.Contains(query, "UPDATE voucher_stock") && !paused {
				paused = true
				server.Pause() // on the test's goroutine, as the whole batch up to its COMMIT
			}
			return err
		}
	})
	const limit, grace = time.Second, 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	batch := aBatch(voucher, 3)
	start := time.Now()
	NewOrders(db).Place(ctx, voucher, batch)
	if took := time.Since(start); !paused || took < limit/2 || took > limit+grace {
		t.Errorf("paused %v: answered after %s, the time was %s", paused, took, limit)
	}
	if got := verdicts(batch); !slices.Equal(got, []string{"outcome-unknown", "outcome-unknown", "outcome-unknown"}) {
		t.Errorf("got %v (%v)", got, batch[0].Err)
	}
	late := placement(voucher, 9, "")
	brief, cancelBrief := context.WithTimeout(t.Context(), limit/4)
	defer cancelBrief()
	NewOrders(db).Place(brief, voucher, []*service.Placement{late})
	if service.CodeOf(late.Err) != service.CodeUnavailable {
		t.Errorf("of a paused server: %v", late.Err)
	}
	server.Resume()
	again := aBatch(voucher, 3)
	place(t, db, again...)
	for i, verdict := range verdicts(again) {
		if verdict != "replayed" && verdict != "placed" || verdict != verdicts(again)[0] {
			t.Errorf("order %d: %s (%v)", i, verdict, again[i].Err)
		}
	}
	t.Logf("settled as %s", verdicts(again)[0])
	if n, left := live(t, db, voucher), stockOf(t, db, voucher); n != 3 || left != 6 {
		t.Errorf("%d orders stand, %d left", n, left)
	}
}

// load collects the answers to buyers while the server is killed.
type load struct {
	voucher idgen.ID
	mu      sync.Mutex
	batches [][]*service.Placement
	placed  atomic.Int64
	failed  atomic.Int64
}

// buy places batches until done is closed, each with the timeout limit.
func (l *load) buy(db *DB, user *atomic.Int64, limit time.Duration, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		var batch []*service.Placement
		for range 256 {
			batch = append(batch, placement(l.voucher, service.UserID(user.Add(1)), "key"))
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		NewOrders(db).Place(ctx, l.voucher, batch)
		cancel()
		l.mu.Lock()
		l.batches = append(l.batches, batch)
		l.mu.Unlock()
		for _, p := range batch {
			if p.Err == nil {
				l.placed.Add(1)
			} else {
				l.failed.Add(1)
			}
		}
	}
}

// tryKill kills the server while batches are being committed. Some buyers wait until it is back, others time out before.
// Then every answer is compared with the database, and every request is repeated.
func tryKill(t *testing.T, server *dbtest.Server) {
	db := openDB(t, server.Create())
	l := &load{voucher: onSale(t, db, 1_000_000, 1)}
	var user atomic.Int64
	done := make(chan struct{})
	var buyers sync.WaitGroup
	for i := range 6 {
		limit := []time.Duration{time.Second, time.Minute}[i%2]
		buyers.Go(func() { l.buy(db, &user, limit, done) })
	}
	wait.Within(t, time.Minute, "orders are placed", func() bool { return l.placed.Load() > 2000 })
	server.Kill()
	before := l.placed.Load()
	wait.Within(t, time.Minute, "the short timeouts are over", func() bool { return l.failed.Load() > 0 })
	server.Restart()
	wait.Within(t, time.Minute, "orders are placed again", func() bool { return l.placed.Load() > before+1000 })
	close(done)
	buyers.Wait()
	l.check(t, db)
}

// check compares every answer with the database, then repeats every request.
func (l *load) check(t *testing.T, db *DB) {
	t.Helper()
	got := map[string]int{}
	for _, batch := range l.batches {
		said := verdicts(batch)
		stands := map[idgen.ID]bool{}
		var ids []idgen.ID
		if err := db.gorm.Raw("SELECT id FROM voucher_order WHERE id IN ?", orderIDs(batch)).Scan(&ids).Error; err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			stands[id] = true
		}
		again := make([]*service.Placement, len(batch))
		for i, p := range batch {
			got[said[i]]++
			if stands[p.Order.ID] != (said[i] == "placed") && said[i] != "outcome-unknown" {
				t.Fatalf("user %d was told %s (%v), and the order stands: %v", p.Order.UserID, said[i], p.Err, stands[p.Order.ID])
			}
			again[i] = placement(l.voucher, p.Order.UserID, p.Order.RequestID)
		}
		place(t, db, again...)
		for i, verdict := range verdicts(again) {
			if want := map[bool]string{true: "replayed", false: "placed"}[stands[batch[i].Order.ID]]; verdict != want {
				t.Fatalf("user %d, told %s before, is told %s (%v), want %s", batch[i].Order.UserID, said[i], verdict, again[i].Err, want)
			}
		}
	}
	t.Logf("%v", got)
	if got["outcome-unknown"]+got["unavailable"] == 0 {
		t.Error("no answer shows that the server was killed")
	}
}
