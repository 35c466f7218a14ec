package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// settings are what a drill is played with.
type settings struct {
	seed  int64
	units int64
	rate  float64 // 0: as the drill's span says
	short bool
}

// play plays a drill on a stage that is well and empty, and judges it.
func (s *session) play(ctx context.Context, st *stage, t *turn, set settings) *result {
	fmt.Fprintf(s.out, "\n%s --lock %s --seed %d\n  %s\n  The textbook fears: %s\n", t.name, t.lock, set.seed, t.shows, t.fears)
	begin := time.Now()
	p, err := s.newPlay(st, t, set)
	if err != nil {
		r := &result{Name: t.name, Lock: t.lock, Seed: set.seed, Shows: t.shows, Fears: t.fears}
		r.judge(err, 0)
		return r
	}
	failed := p.perform(ctx, t.do)
	r := p.result(t, set, begin)
	r.judge(failed, int64(minOrders*float64(set.units)))
	st.dirty = !r.OK
	return r
}

// playAgain plays a drill once more, with another seed, whose fault could not be shown.
func (s *session) playAgain(ctx context.Context, t *turn, set settings, n int64, before *result) (*stage, *result, error) {
	before.print(s.out)
	fmt.Fprintf(s.out, "\n  The books are sound, but the drill could not show what it is about. Once more.\n")
	st, err := s.stageFor(ctx, t)
	if err != nil {
		return nil, before, err
	}
	set.seed += n
	r := s.play(ctx, st, t, set)
	r.Before = append(before.Before, strings.Join(before.Wrong, "; "))
	return st, r, nil
}

// newPlay makes everything ready for the drill's function.
func (s *session) newPlay(st *stage, t *turn, set settings) (*run, error) {
	span := t.span
	if set.short && t.shortSpan > 0 {
		span = t.shortSpan
	}
	rate := set.rate
	if rate == 0 {
		rate = min(mostRate, float64(set.units)/2/span.Seconds())
	}
	m := newMeter()
	l, err := newLoad(loadOptions{
		url: "http://" + st.ports[gateway], journal: filepath.Join(s.dir, fmt.Sprintf("%s-%s.jsonl", t.name, t.lock)), token: s.token,
		units: set.units, rate: rate, seed: set.seed, repeat: t.repeat, busyIsFine: set.short, meter: m,
	})
	if err != nil {
		return nil, err
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.name)) // never fails
	r := &run{
		drill: t.drill, project: st.project, timeline: newTimeline(s.out, m), load: l, lock: t.lock, short: set.short, db: st.db, root: st.root,
		rand:  rand.New(rand.NewPCG(uint64(set.seed), name.Sum64())), //nolint:gosec // chance that can be repeated
		heals: map[string]func(context.Context) error{},
	}
	r.note("%d units on sale; buyers come at %.0f a second", set.units, rate)
	return r, nil
}

// perform has the load on while the drill does its work, and then finds out what all of it came to.
func (r *run) perform(ctx context.Context, do func(context.Context, *run) error) (err error) {
	defer func() { err = errors.Join(err, r.load.close()) }()
	ticking, done := context.WithCancel(ctx)
	var ticker sync.WaitGroup
	defer ticker.Wait()
	defer done()
	ticker.Go(func() {
		for wait(ticking, quiet/8) {
			r.tick()
		}
	})
	r.load.start(ctx, r.timeline)
	calm := r.between(2*time.Second, 3*time.Second)
	err = r.let(ctx, calm)
	if err == nil {
		err = do(ctx, r)
	}
	if healing := r.heal(context.WithoutCancel(ctx)); healing != nil {
		err = errors.Join(err, healing)
	}
	if err == nil {
		err = r.let(ctx, calm) // to be seen in the plots
	}
	r.load.stop()
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return errors.Join(err, r.finish(ctx)) // also of a drill that failed it is worth knowing what became of the orders
}

// finish settles what was left open, sells the rest, and waits for the events' effects.
func (r *run) finish(ctx context.Context) error {
	r.note("the steady load is over; what was left open is repeated")
	r.load.settle(ctx)
	r.note("the rest of the units is sold as fast as it goes")
	if err := r.load.rush(ctx); err != nil {
		return err
	}
	r.note("sold out")
	begin := time.Now()
	err := r.until(ctx, "every event was sent and took effect", r.drained)
	if err == nil {
		r.note("every event has been sent and taken effect, %s later", short(time.Since(begin)))
	}
	return err
}

// drained tells whether no event and no effect is on its way.
func (r *run) drained(ctx context.Context) (bool, error) {
	unsent, err := r.db.Unsent(ctx)
	if err != nil || unsent > 0 {
		return false, errors.Join(err, fmt.Errorf("%d events wait in the outbox", unsent))
	}
	missing, err := r.number(ctx, `SELECT COUNT(*) FROM voucher_order o LEFT JOIN points_entry p ON p.order_id = o.id
		WHERE o.status = 2 AND p.id IS NULL`)
	if err != nil || missing > 0 {
		return false, errors.Join(err, fmt.Errorf("%d effects are missing", missing))
	}
	return true, nil
}

// number asks the database for a number, as its administrator.
func (r *run) number(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = r.root.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

// result checks the orders, if the database can be reached.
func (r *run) result(t *turn, set settings, begin time.Time) *result {
	out := &result{
		Name: t.name, Lock: t.lock, Seed: set.seed, Shows: t.shows, Fears: t.fears, Figures: r.figures, Skipped: r.skipped,
		Pause: r.load.meter.longestPause(), Events: r.list(), Slots: r.load.recorder.Report().Timeline,
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if out.Verdict, out.Answers, err = r.load.judge(ctx, r.db); err != nil {
		out.Wrong = append(out.Wrong, err.Error())
	}
	out.Took = time.Since(begin)
	return out
}
