package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How long what a holder has is good for without a sign of life: its lock (--lock-lease, --lock-session), its session at
// the database, and its worker id.
const (
	lockLease   = 10 * time.Second
	workerLease = 15 * time.Second
)

func holderDrills() []drill {
	return []drill{{
		name:  "holder-paused",
		shows: "An instance is stopped in the middle of placing orders, for longer than its locks are good for; others get the locks; then it runs on as if nothing had been.",
		fears: "A garbage collection, a page fault, a migrated machine: the holder wakes up and writes, and nobody has told it that the lock is another's.",
		locks: everyLock, span: 45 * time.Second, shortSpan: 30 * time.Second,
		do: holderPaused,
	}}
}

func holderPaused(ctx context.Context, r *run) error {
	hit, other := r.instance()
	w, err := r.newWitnesses(ctx, 20)
	if err != nil {
		return err
	}
	defer w.close()
	before, err := r.stopHolder(ctx, w, hit)
	if err != nil {
		return err
	}
	asleep := lockLease + time.Second
	if !r.short {
		asleep = workerLease + r.between(2*time.Second, 5*time.Second)
	}
	if err := r.let(ctx, asleep); err != nil {
		return err
	}
	if err := w.hold(ctx); err != nil { // there only once the server has given up the session of the sleeper
		return err
	}
	if err := r.otherHolder(ctx, w, other, before); err != nil {
		return err
	}
	awake := time.Now()
	if err := r.unpause(ctx, hit); err != nil {
		return err
	}
	r.note("%s goes on with what it had begun, while %s is at work on the same", hit, other)
	if err := w.release(); err != nil {
		return err
	}
	if err := w.judge(ctx); err != nil {
		return err
	}
	if err := r.until(ctx, hit+" is ready", r.ready(hit)); err != nil {
		return err
	}
	r.measure("ready again after the instance ran on", time.Since(awake), 0)
	return nil
}

// stopHolder has the witnesses ask at an instance, stops it while it holds their locks, and lets its transaction have
// the row that it was waiting for. It returns the owners of the locks, where they can be read.
func (r *run) stopHolder(ctx context.Context, w *witnesses, hit string) (owners map[string]string, err error) {
	if err := w.hold(ctx); err != nil {
		return nil, err
	}
	w.ask(hit, "first")
	if owners, err = r.lockOwners(ctx, w, w.n); err != nil {
		return nil, err
	}
	if err := r.assert(w.waiting() == w.n, "%d buyers are being served by %s", w.n, hit); err != nil {
		return nil, err
	}
	if err := r.pause(ctx, hit); err != nil {
		return nil, err
	}
	return owners, w.release()
}

// otherHolder has the witnesses ask at another instance, and asserts that it is granted the locks of the sleeper. On a
// machine that is much too busy a request may give up before that could be seen; then they ask again.
func (r *run) otherHolder(ctx context.Context, w *witnesses, other string, before map[string]string) error {
	var after map[string]string
	err := errAnswered
	for _, round := range []string{"second", "third", "fourth"} {
		w.ask(other, round)
		if after, err = r.lockOwners(ctx, w, 2*w.n); !errors.Is(err, errAnswered) {
			break
		}
	}
	if err != nil {
		return err
	}
	if r.lock != "redis" {
		return r.assert(w.waiting() == 2*w.n, "%d buyers are being served a second time, while the first time is not over", w.n)
	}
	same := 0
	for key, owner := range before {
		if after[key] == owner {
			same++
		}
	}
	return r.assert(same == 0, "each of the %d locks was granted to another, and the first holder does not know", w.n)
}

// lockOwners reads whose the witnesses' locks are, if the shop's lock is the one whose layout is known here. With
// another, it waits for as long as it takes to be granted one. It is errAnswered if fewer than so many requests are under
// way then.
func (r *run) lockOwners(ctx context.Context, w *witnesses, underWay int) (owners map[string]string, err error) {
	if r.lock == "redis" {
		owners, _, err = r.owners(ctx, w, underWay)
		return owners, err
	}
	if err := r.let(ctx, time.Second); err != nil {
		return nil, err
	}
	if w.waiting() < underWay {
		return nil, errAnswered
	}
	return nil, nil
}

// ready is the condition that an instance says that it can serve.
func (r *run) ready(instance string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		status, _, err := get(ctx, "http://"+r.ports[instance]+"/readyz")
		if err == nil && status != 200 {
			err = fmt.Errorf("/readyz answers %d", status)
		}
		return err == nil, err
	}
}
