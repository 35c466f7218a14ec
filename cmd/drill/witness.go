package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"seckill/loadtest"
)

// witnesses are buyers of a voucher of their own, who show what becomes of a lock while its holder is at work. The drill
// holds the voucher's row in the database, so that their commits are held up and they keep their locks for as long as
// the drill wants. Each of them asks once at one instance and once, with another key, at the other.
type witnesses struct {
	r       *run
	n       int
	voucher loadtest.Voucher
	clients map[string]*loadtest.Client
	row     *sql.Tx // that holds the row; nil while nobody does
	asking  sync.WaitGroup
	left    atomic.Int64 // requests without an answer
	placed  atomic.Int64
}

// firstWitness is the first of their users; the load's begin above.
const firstWitness = 100

// newWitnesses puts their voucher on sale. Close them.
func (r *run) newWitnesses(ctx context.Context, n int) (*witnesses, error) {
	w := &witnesses{r: r, n: n, clients: map[string]*loadtest.Client{}}
	var err error
	if w.voucher, err = r.load.putOnSale("Witnesses", int64(2*n)); err != nil {
		return nil, err
	}
	for _, instance := range []string{shop1, shop2} {
		base := "http://" + r.ports[instance]
		if w.clients[instance], err = loadtest.NewClient(base, loadtest.ClientOptions{Timeout: patience, Token: r.load.token}); err != nil {
			return nil, err
		}
		// The instance knows the voucher from here on, so that asking for a unit begins with the lock.
		if _, err := w.clients[instance].Voucher(w.voucher.ID); err != nil {
			return nil, err
		}
	}
	return w, ctx.Err()
}

// hold takes the voucher's row, as a transaction that does not end would.
func (w *witnesses) hold(ctx context.Context) (err error) {
	if w.row, err = w.r.root.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		return err
	}
	var stock int64
	return w.row.QueryRowContext(ctx, "SELECT stock FROM voucher_stock WHERE voucher_id = ? FOR UPDATE", w.voucher.ID).Scan(&stock)
}

// release lets go of the row.
func (w *witnesses) release() error {
	if w.row == nil {
		return nil
	}
	err := w.row.Rollback()
	w.row = nil
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// ask has each of them ask for a unit at an instance. It does not wait for the answers.
func (w *witnesses) ask(instance, round string) {
	w.left.Add(int64(w.n))
	for i := range w.n {
		user, key := int64(firstWitness+i), w.voucher.ID+"-"+round+"-"+strconv.Itoa(i)
		w.asking.Go(func() {
			a := w.clients[instance].Place(user, w.voucher.ID, key)
			w.left.Add(-1)
			if a.Outcome == loadtest.Placed {
				w.placed.Add(1)
			}
			w.r.load.recorder.Record(loadtest.OpPlace, user, w.voucher.ID, key, &a, a.Start)
		})
	}
}

// waiting is how many of their requests have no answer yet.
func (w *witnesses) waiting() int { return int(w.left.Load()) }

// lockKey is the name of a witness's lock.
func (w *witnesses) lockKey(i int) string {
	return fmt.Sprintf("lock:voucher:%s:user:%d", w.voucher.ID, firstWitness+i)
}

// settled waits until each request has an answer, and returns how many orders there are.
func (w *witnesses) settled(ctx context.Context) (orders int64, err error) {
	answered := make(chan struct{})
	go func() { w.asking.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	return w.r.number(ctx, "SELECT COUNT(*) FROM voucher_order WHERE voucher_id = ? AND slot IS NOT NULL", w.voucher.ID)
}

// judge asserts that each has one order. Without the guard it only tells how many there are.
func (w *witnesses) judge(ctx context.Context) error {
	orders, err := w.settled(ctx)
	switch {
	case err != nil:
		return err
	case w.r.guardOff:
		w.r.note("the %d buyers have %d orders", w.n, orders)
		return nil
	}
	return w.r.assert(orders <= int64(w.n), "the %d buyers have %d orders, none more than one", w.n, orders)
}

func (w *witnesses) close() {
	_ = w.release() // whoever needs to know has asked before
	w.asking.Wait()
	for _, c := range w.clients {
		c.Close()
	}
}

// errAnswered says that witnesses were answered before it could be seen that they hold their locks.
var errAnswered = errors.New("the witnesses' requests are not under way any more")

// owners waits until each of the witnesses has its lock on the master of Redis, and returns whose it is, by the lock's
// name. Which server is the master is asked again each time: on a busy machine Sentinel changes its mind. It is
// errAnswered if fewer than so many requests of witnesses are under way.
func (r *run) owners(ctx context.Context, w *witnesses, underWay int) (owners map[string]string, master string, err error) {
	answered := false
	err = r.until(ctx, "every witness holds its lock", func(ctx context.Context) (bool, error) {
		if answered = w.waiting() < underWay; answered {
			return true, nil
		}
		if master, _, err = r.redisRoles(ctx); err != nil {
			return false, err
		}
		owners, err = r.readOwners(ctx, w, master, "redis.call('HKEYS', k)[1]")
		if err == nil && len(owners) < w.n {
			err = fmt.Errorf("%d of %d do, on %s", len(owners), w.n, master)
		}
		return err == nil, err
	})
	if err == nil && (answered || w.waiting() < underWay) {
		err = errAnswered
	}
	return owners, master, err
}

// readOwners reads from a Redis server whose the witnesses' locks are, all in one look. owner is what finds that out there
// of a key k, in Lua; nil stands for nobody.
func (r *run) readOwners(ctx context.Context, w *witnesses, server, owner string) (map[string]string, error) {
	script := "local o = {} for i, k in ipairs(KEYS) do o[i] = " + owner + " or '-' end return o"
	command := []string{"redis-cli", "--raw", "eval", script, strconv.Itoa(w.n)}
	for i := range w.n {
		command = append(command, w.lockKey(i))
	}
	text, err := r.exec(ctx, server, command...)
	if err != nil {
		return nil, err
	}
	return parseOwners(text, w)
}

// parseOwners pairs the answer's lines with the locks; a dash stands for a lock that nobody holds.
func parseOwners(text string, w *witnesses) (map[string]string, error) {
	lines := strings.Fields(text)
	if len(lines) != w.n {
		return nil, fmt.Errorf("asked for the holders of %d locks, and got %q", w.n, text)
	}
	owners := map[string]string{}
	for i, owner := range lines {
		if owner != "-" {
			owners[w.lockKey(i)] = owner
		}
	}
	return owners, nil
}
