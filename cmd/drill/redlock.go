package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var redlockServers = []string{"redlock-1", "redlock-2", "redlock-3", "redlock-4", "redlock-5"}

// longCommit lets orders be held up for longer than usual, so that what takes docker some seconds fits in.
const longCommit = "15s"

// redlockNeeds are the same for all of them. Locks get more time than usual, so that a machine that does much else at the
// same time does not take servers for gone that are only late.
var redlockNeeds = needs{env: map[string]string{"SECKILL_COMMIT_TIMEOUT": longCommit, "SECKILL_LOCK_TIMEOUT": "500ms"}}

func redlockDrills() []drill {
	redlock := func(d drill) drill {
		d.own, d.locks, d.needs = "redlock", []string{"redlock"}, redlockNeeds
		d.span, d.shortSpan = 30*time.Second, 25*time.Second
		return d
	}
	return []drill{
		redlock(drill{
			name:  "redlock-minority",
			shows: "Two of the five Redis of a Redlock are killed: the other three go on granting locks, and no order goes without one.",
			fears: "Five servers fail more often than one, and each request waits for the slowest of them.",
			do:    redlockMinority,
		}),
		redlock(drill{
			name:  "redlock-majority",
			shows: "Three of the five are killed: no lock can be had, and the shop sells with its database alone until they are back.",
			fears: "Without a majority the shop stands still, or takes two votes for enough.",
			do:    redlockMajority,
		}),
		redlock(drill{
			name:  "redlock-restart",
			shows: "A lock has three votes of five; one of the three restarts and has forgotten; the two that had not been asked are free: still nobody else gets the lock, because a server is not counted until it is up for as long as a lease.",
			fears: "A server that comes back empty votes a second time: two majorities, two holders (redis.io on Redlock: \"delayed restarts\").",
			do:    redlockRestart,
		}),
		redlock(drill{
			name:  "redlock-clock",
			shows: "A lock has three votes of five; one of the three servers loses its vote early, as one does whose clock jumps ahead; another buyer's request gets three votes: two holders of one lock, one order.",
			fears: "Redlock believes in clocks: one that jumps lets a second majority come about (martin.kleppmann.com, 2016).",
			do:    redlockClockJumps,
		}),
	}
}

func redlockMinority(ctx context.Context, r *run) error {
	gone, left := r.draw(redlockServers, 2)
	before, err := r.granted(ctx)
	if err != nil {
		return err
	}
	if err := r.kill(ctx, gone...); err != nil {
		return err
	}
	if err := r.gone(ctx, gone...); err != nil {
		return err
	}
	if err := r.locksAreBack(ctx, before); err != nil {
		return err
	}
	if before, err = r.granted(ctx); err != nil {
		return err
	}
	if err := r.let(ctx, r.between(3*time.Second, 6*time.Second)); err != nil {
		return err
	}
	after, err := r.granted(ctx)
	if err != nil {
		return err
	}
	n := after[shop1] + after[shop2] - before[shop1] - before[shop2]
	if err := r.assert(after[shop1] > before[shop1] && after[shop2] > before[shop2], "%.0f locks were granted by %s alone", n, strings.Join(left, ", ")); err != nil {
		return err
	}
	begin := time.Now()
	if err := r.start(ctx, gone...); err != nil {
		return err
	}
	if err := r.asked(ctx, gone...); err != nil {
		return err
	}
	r.measure("all five counted again after their start, which takes a lease at least", time.Since(begin), 0)
	return nil
}

func redlockMajority(ctx context.Context, r *run) error {
	gone, _ := r.draw(redlockServers, 3)
	return r.lockAway(ctx, gone)
}

// lockAway kills so many of the lock's servers that it cannot be had, and brings them back.
func (r *run) lockAway(ctx context.Context, gone []string) error {
	at := time.Now()
	if err := r.kill(ctx, gone...); err != nil {
		return err
	}
	if err := r.until(ctx, "both instances go without their lock", r.breakers(1)); err != nil {
		return err
	}
	r.note("both instances have found out and go on with the database alone, %s later", short(time.Since(at)))
	out := time.Now()
	if err := r.let(ctx, r.between(3*time.Second, 6*time.Second)); err != nil {
		return err
	}
	n, err := r.placedSince(ctx, out)
	if err != nil {
		return err
	}
	r.note("%d orders were placed without a lock", n)
	granted, err := r.granted(ctx)
	if err != nil {
		return err
	}
	back := time.Now()
	if err := r.start(ctx, gone...); err != nil {
		return err
	}
	if err := r.locksAreBack(ctx, granted); err != nil {
		return err
	}
	r.measure("locks again after the servers were started", time.Since(back), 0)
	return nil
}

func redlockRestart(ctx context.Context, r *run) error {
	return r.attempts(ctx, func(ctx context.Context, w *witnesses) (shown bool, err error) {
		three, _, err := r.threeVotes(ctx, w)
		if err != nil || three == nil {
			return false, err
		}
		forgetful := three[2]
		if err := r.kill(ctx, forgetful); err != nil {
			return false, err
		}
		if err := r.start(ctx, forgetful); err != nil {
			return false, err
		}
		if err := r.forgotten(ctx, w, forgetful); err != nil {
			return false, err
		}
		if shown, err = r.stillHeld(ctx, w, "of the five, two know of these locks, one has forgotten them, two never knew; each of the %d requests was refused"); err != nil {
			return false, err
		}
		return shown, w.finish(ctx)
	})
}

func redlockClockJumps(ctx context.Context, r *run) error {
	return r.attempts(ctx, func(ctx context.Context, w *witnesses) (shown bool, err error) {
		three, two, err := r.threeVotes(ctx, w)
		if err != nil || three == nil {
			return false, err
		}
		fast := three[2]
		before, err := r.redlockOwners(ctx, w, three[0])
		if err != nil {
			return false, err
		}
		if err := r.clockJumps(ctx, fast); err != nil {
			return false, err
		}
		if err := r.forgotten(ctx, w, fast); err != nil {
			return false, err
		}
		w.ask(shop2, "second")
		if voted, err := r.voted(ctx, w, 2*w.n, append(two, fast)); err != nil || !voted {
			return false, errors.Join(err, w.finish(ctx))
		}
		after, err := r.redlockOwners(ctx, w, fast)
		if err != nil {
			return false, err
		}
		if shown = w.waiting() == 2*w.n; shown {
			if err := r.twoHolders(w, before, after, three[0], fast); err != nil {
				return false, err
			}
		}
		return shown, w.finish(ctx)
	})
}

// threeVotes has the witnesses take their locks at an instance while two of the servers cannot be reached, and lets
// these come back. It returns the three that have the locks and the two that know nothing; none if the witnesses did not
// get them all.
func (r *run) threeVotes(ctx context.Context, w *witnesses) (three, two []string, err error) {
	two, three = r.draw(redlockServers, 2)
	granted, err := r.granted(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range two {
		if err := r.disconnect(ctx, s, "redis"); err != nil {
			return nil, nil, err
		}
		// Or what is being sent to it in vain would arrive by a connection that has outlived the cut.
		if _, err := r.exec(ctx, s, "redis-cli", "client", "kill", "type", "normal"); err != nil {
			return nil, nil, err
		}
	}
	if err := r.locksAreBack(ctx, granted); err != nil { // where they were away for a moment
		return nil, nil, err
	}
	if err := w.hold(ctx); err != nil {
		return nil, nil, err
	}
	w.ask(shop1, "first")
	voted, err := r.voted(ctx, w, w.n, three)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range two {
		if err := r.connect(ctx, s, "redis"); err != nil {
			return nil, nil, err
		}
	}
	if !voted {
		return nil, nil, w.finish(ctx)
	}
	r.note("%d buyers hold their locks by the votes of %s alone; their commit is held up", w.n, strings.Join(three, ", "))
	return three, two, r.asked(ctx, two...)
}

// voted waits until each of the servers has given each witness's lock to somebody. It is false if that does not come
// about while that many of the witnesses' requests are being served.
func (r *run) voted(ctx context.Context, w *witnesses, served int, servers []string) (voted bool, err error) {
	err = r.until(ctx, "the witnesses have their locks, or their answers", func(ctx context.Context) (bool, error) {
		if w.waiting() < served {
			return true, nil
		}
		for _, s := range servers {
			owners, err := r.redlockOwners(ctx, w, s)
			if err != nil || len(owners) < w.n {
				return false, errors.Join(err, fmt.Errorf("%s: %d of %d", s, len(owners), w.n))
			}
		}
		voted = true
		return true, nil
	})
	return voted, err
}

// forgotten waits until a server knows nothing of the witnesses' locks.
func (r *run) forgotten(ctx context.Context, w *witnesses, server string) error {
	err := r.until(ctx, server+" has forgotten the witnesses' locks", func(ctx context.Context) (bool, error) {
		owners, err := r.redlockOwners(ctx, w, server)
		if err == nil && len(owners) > 0 {
			err = fmt.Errorf("it knows %d", len(owners))
		}
		return err == nil, err
	})
	if err == nil {
		r.note("found: %s knows nothing of these locks any more", server)
	}
	return err
}

// redlockOwners reads whom a server has given the witnesses' locks to.
func (r *run) redlockOwners(ctx context.Context, w *witnesses, server string) (map[string]string, error) {
	return r.readOwners(ctx, w, server, "redis.call('GET', k)")
}

// asked waits until the shop asks each of the servers for locks from now on.
func (r *run) asked(ctx context.Context, servers ...string) error {
	for _, s := range servers {
		if err := r.until(ctx, "the shop asks "+s+" for locks", func(ctx context.Context) (bool, error) {
			text, err := r.exec(ctx, s, "redis-cli", "dbsize")
			return text != "" && text != "0", err
		}); err != nil {
			return err
		}
	}
	return nil
}

// clockJumps does to a server's keys what a clock that jumps forward does to them, and that is all that Redlock has to do
// with clocks: those with a time to live expire. (The clock itself is the machine's; and libfaketime, which could give a
// process another one, does not get along with Redis's allocator.)
func (r *run) clockJumps(ctx context.Context, server string) error {
	n, err := r.exec(ctx, server, "redis-cli", "--raw", "eval",
		"local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', k) >= 0 then redis.call('PEXPIRE', k, 0) n = n + 1 end end return n", "0")
	if err != nil {
		return err
	}
	r.event(fault, "what a clock does that jumps by more than a lease is done to %s: its %s keys with a time to live expire", server, n)
	return nil
}

// attempts lets witnesses show something while their orders are held up. Orders give up after a while: where it takes
// longer to show, as it may on a machine that is much too busy, it is done again.
func (r *run) attempts(ctx context.Context, show func(context.Context, *witnesses) (shown bool, err error)) error {
	const most = 3
	for range most {
		w, err := r.newWitnesses(ctx, 20)
		if err != nil {
			return err
		}
		shown, err := show(ctx, w)
		w.close()
		if err != nil || shown {
			return err
		}
		r.note("it took longer than an order waits for its commit, so the first holders had given up: once more")
	}
	return fmt.Errorf("%d times it took longer than an order waits: nothing could be shown", most)
}

// stillHeld has the witnesses ask a second time, at the other instance, and asserts that each is refused while the first
// request is at work. shown is false if the first ones have given up by then.
func (r *run) stillHeld(ctx context.Context, w *witnesses, found string) (shown bool, err error) {
	if w.waiting() < w.n {
		return false, nil
	}
	w.ask(shop2, "second")
	if err := r.until(ctx, "the second requests are answered", func(context.Context) (bool, error) { return w.waiting() <= w.n, nil }); err != nil {
		return false, err
	}
	if w.waiting() < w.n {
		return false, nil
	}
	return true, r.assert(w.placed.Load() == 0, found, w.n)
}

// finish lets the witnesses' orders through and judges what has become of them.
func (w *witnesses) finish(ctx context.Context) error {
	if err := w.release(); err != nil {
		return err
	}
	return w.judge(ctx)
}

// draw chooses n of the servers by the seed.
func (r *run) draw(servers []string, n int) (chosen, others []string) {
	shuffled := append([]string(nil), servers...)
	r.rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled[:n:n], shuffled[n:]
}

// gone asserts that none of the services runs.
func (r *run) gone(ctx context.Context, services ...string) error {
	for _, s := range services {
		running, err := r.running(ctx, s)
		if err != nil {
			return err
		}
		if err := r.assert(!running, "%s does not run", s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) running(ctx context.Context, service string) (bool, error) {
	id, err := r.container(service)
	if err != nil {
		return false, err
	}
	text, err := r.run(ctx, "inspect", "--format", "{{.State.Running}}", id)
	return text == "true", err
}

// copyTo puts a file into a service's container, running or not.
func (r *run) copyTo(ctx context.Context, service, path, text string) error {
	id, err := r.container(service)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "seckill-drill-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nobody needs it any more
	file := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // the user in the container has to read it
		return err
	}
	_, err = r.run(ctx, "cp", file, id+":"+path)
	return err
}
