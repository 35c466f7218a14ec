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
	"time"

	"seckill/loadtest"
)

// lockHolders are buyers who keep their locks for as long as a drill wants: it locks the row of their voucher in the
// database, so that their commits wait. Each of them asks at one instance and then, with another key, at the other one.
// They show what happens to a lock while its holder is at work.
type lockHolders struct {
	c       *drillCase
	voucher loadtest.Voucher
	clients map[string]*loadtest.Client // by instance
	row     *sql.Tx                     // holds the voucher's row; nil: it is free
	asking  sync.WaitGroup
	open    atomic.Int64 // requests without an answer
	placed  atomic.Int64
}

// holders is the number of lockHolders. Their users have numbers from firstHolder, below those of the other buyers.
const (
	holders     = 20
	firstHolder = 100
)

// newLockHolders puts a voucher on sale for them. Close it.
func newLockHolders(c *drillCase) *lockHolders {
	h := &lockHolders{c: c, clients: map[string]*loadtest.Client{}, voucher: must(c.buyers.createVoucher("Locks", 2*holders))}
	for _, instance := range instances {
		options := loadtest.ClientOptions{Timeout: stepTimeout, Token: c.buyers.token}
		h.clients[instance] = must(loadtest.NewClient("http://"+c.Addr(instance), options))
		must(h.clients[instance].Voucher(h.voucher.ID)) // now the instance has cached it, and an order begins with the lock
	}
	return h
}

// block locks the voucher's row, as a transaction that does not end would.
func (h *lockHolders) block() {
	h.row = must(h.c.root.BeginTx(context.WithoutCancel(h.c.ctx), nil))
	var stock int64
	check(h.row.QueryRowContext(h.c.ctx, "SELECT stock FROM voucher_stock WHERE voucher_id = ? FOR UPDATE", h.voucher.ID).Scan(&stock))
}

// unblock frees the row.
func (h *lockHolders) unblock() {
	if h.row == nil {
		return
	}
	err := h.row.Rollback()
	h.row = nil
	if !errors.Is(err, sql.ErrTxDone) {
		check(err)
	}
}

// ask sends each holder's request for a unit to an instance, without waiting for the answers.
func (h *lockHolders) ask(instance, round string) {
	h.open.Add(holders)
	for i := range holders {
		user, key := int64(firstHolder+i), h.voucher.ID+"-"+round+"-"+strconv.Itoa(i)
		h.asking.Go(func() {
			a := h.clients[instance].Place(user, h.voucher.ID, key)
			h.open.Add(-1)
			if a.Outcome == loadtest.Placed {
				h.placed.Add(1)
			}
			h.c.buyers.recorder.Record(loadtest.OpPlace, user, h.voucher.ID, key, &a, a.Start)
		})
	}
}

// atWork reports whether at least n requests have no answer yet.
func (h *lockHolders) atWork(n int64) bool { return h.open.Load() >= n }

// judge waits for all answers and asserts that nobody has two orders. Without the guard it only counts.
func (h *lockHolders) judge() {
	answered := make(chan struct{})
	go func() { h.asking.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-h.c.ctx.Done():
		check(context.Cause(h.c.ctx))
	}
	orders := must(h.c.number(h.c.ctx, "SELECT COUNT(*) FROM voucher_order WHERE voucher_id = ? AND slot IS NOT NULL", h.voucher.ID))
	if h.c.guardOff {
		h.c.note("the %d buyers have %d orders", holders, orders)
		return
	}
	h.c.assert(orders <= holders, "the %d buyers have %d orders, none more than one", holders, orders)
}

// finish lets the orders through and judges them.
func (h *lockHolders) finish() {
	h.unblock()
	h.judge()
}

func (h *lockHolders) close() {
	_ = attempt(h.unblock) // a failure was reported where the drill needed it
	h.asking.Wait()
	for _, c := range h.clients {
		c.Close()
	}
}

// tryWithHolders runs a script with lockHolders until it could show something. An order gives up after a while, so on a
// busy machine the holders may have given up before; then the script reports false, and runs again.
func tryWithHolders(c *drillCase, script func(h *lockHolders) (shown bool)) {
	const tries = 4
	for range tries {
		h := newLockHolders(c)
		shown := func() bool {
			defer h.close()
			return script(h)
		}()
		if shown {
			return
		}
		c.note("it took longer than an order waits for its commit, so the first holders had given up; once more")
	}
	check(fmt.Errorf("it took longer than an order waits in all of %d tries: nothing could be shown", tries))
}

// stillHeld sends the second requests to the other instance, and asserts that each of them is refused while the first one
// is at work. It returns false if the first ones have given up by then.
func (h *lockHolders) stillHeld(found string) (shown bool) {
	if !h.atWork(holders) {
		return false
	}
	h.ask(shop2, "second")
	h.c.until("the second requests are answered", func() error {
		return expect(!h.atWork(holders+1), "%d requests are open", h.open.Load())
	})
	if !h.atWork(holders) {
		return false
	}
	h.c.assert(h.placed.Load() == 0, found, holders)
	return true
}

// twoHolders asserts that every lock was granted twice while both requests are at work.
func (h *lockHolders) twoHolders(before, after owners, server, other string) {
	both, example := 0, ""
	for key, owner := range before {
		if second := after[key]; second != "" && second != owner {
			both, example = both+1, fmt.Sprintf("%s: %s on %s, %s on %s", key, owner, server, second, other)
		}
	}
	h.c.assert(both == holders, "%d of %d locks have two holders, and both are placing an order", both, holders)
	h.c.note("for example %s", example)
}

// owners are the owners of locks, by the name of the lock.
type owners map[string]string

// Lua expressions for the owner of the lock in key k.
const (
	redisOwner   = "redis.call('HKEYS', k)[1]"
	redlockOwner = "redis.call('GET', k)"
)

// readOwners reads the owners of the holders' locks from a Redis server.
func (h *lockHolders) readOwners(server, owner string) owners {
	script := "local o = {} for i, k in ipairs(KEYS) do o[i] = " + owner + " or '-' end return o"
	command := []string{"redis-cli", "--raw", "eval", script, strconv.Itoa(holders)}
	for i := range holders {
		command = append(command, h.lockKey(i))
	}
	return must(parseOwners(h.c.exec(server, command...), h))
}

func (h *lockHolders) lockKey(i int) string {
	return fmt.Sprintf("lock:voucher:%s:user:%d", h.voucher.ID, firstHolder+i)
}

// parseOwners reads a line for each lock; a dash is a lock without an owner.
func parseOwners(text string, h *lockHolders) (owners, error) {
	lines := strings.Fields(text)
	if len(lines) != holders {
		return nil, fmt.Errorf("asked for the owners of %d locks, got %q", holders, text)
	}
	all := owners{}
	for i, owner := range lines {
		if owner != "-" {
			all[h.lockKey(i)] = owner
		}
	}
	return all, nil
}

// redisOwners waits until every holder has its lock on the master of Redis. It asks for the master each time, since
// Sentinel may change it again on a busy machine. atWork is false if fewer than n requests are at work.
func (h *lockHolders) redisOwners(n int64) (all owners, master string, atWork bool) {
	h.c.until("every holder has its lock", func() error {
		if !h.atWork(n) {
			return nil
		}
		master, _ = redisRoles(h.c)
		all = h.readOwners(master, redisOwner)
		return expect(len(all) == holders, "%d of %d have it, on %s", len(all), holders, master)
	})
	return all, master, h.atWork(n)
}

// owned waits until every holder has its lock, and returns the owners if the lock's layout is known here. For other locks
// it waits as long as it takes to be granted one. atWork is false if fewer than n requests are at work then.
func (h *lockHolders) owned(n int64) (all owners, atWork bool) {
	if h.c.lock == "redis" {
		all, _, atWork = h.redisOwners(n)
		return all, atWork
	}
	h.c.sleep(grantTime)
	return nil, h.atWork(n)
}

// grantTime is more than it takes to be granted a lock.
const grantTime = time.Second
