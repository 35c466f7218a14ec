package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// run runs a drill, up to again times more if it could not show what it is about, and its negative control.
func (s *session) run(ctx context.Context, t *drillRun, set settings, again int64) (*result, error) {
	r, err := s.runOnce(ctx, t, set)
	for n := int64(1); err == nil && n <= again && r.notShown() && ctx.Err() == nil; n++ {
		r.print(s.out)
		fmt.Fprintf(s.out, "\n  Nothing is wrong with the orders, but the drill could not show what it is about: once more.\n")
		before := append(r.Before, strings.Join(r.Wrong, "; "))
		repeated := set
		repeated.seed += n
		if r, err = s.runOnce(ctx, t, repeated); err == nil {
			r.Before = before
		}
	}
	if err != nil || ctx.Err() != nil {
		return r, err
	}
	r.print(s.out)
	if t.control && r.OK {
		err = s.runControl(ctx, t, set, r)
	}
	return r, err
}

// runOnce runs a drill on a cluster that has what it needs. The error says that there is none.
func (s *session) runOnce(ctx context.Context, t *drillRun, set settings) (*result, error) {
	cl, err := s.clusterFor(ctx, t)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.out, "\n%s --lock %s --seed %d\n  %s\n  Risk: %s\n", t.name, t.lock, set.seed, t.expectation, t.risk)
	begin := time.Now()
	c, err := newCase(ctx, s, cl, *t, set)
	r := newResult(*t, set.seed)
	if err == nil {
		err = c.play()
		r = c.result(begin)
	}
	r.judge(err, int64(minOrders*float64(set.units)))
	cl.dirty = !r.OK
	return r, nil
}

// controlOrders is the number of units that are enough to see a shop oversell.
const controlOrders = 1000

// runControl repeats the drill with a shop that was built without its guard. The verdict must find the damage; otherwise
// it proves nothing about the shop that has the guard.
func (s *session) runControl(ctx context.Context, t *drillRun, set settings, r *result) error {
	begin := time.Now()
	fmt.Fprintf(s.out, "\n%s, negative control: the same with a shop that was built without its guard (-tags %s)\n", t.name, guardOffTag)
	if err := s.withoutGuard(ctx); err != nil {
		return err
	}
	set.units = max(controlOrders, set.units/8)
	c, err := newCase(ctx, s, s.cluster, *t, set)
	if err != nil {
		return err
	}
	c.guardOff = true
	failed := c.play()
	s.cluster.dirty = failed != nil // otherwise nothing is under way, and the tables will be emptied
	if ctx.Err() != nil {
		return nil
	}
	control := c.result(begin)
	control.Expectation, control.Risk = "", ""
	control.judgeControl(failed)
	control.print(s.out)
	r.Control = control
	if !control.OK {
		r.OK, r.Wrong = false, append(r.Wrong, control.Wrong...)
	}
	return nil
}
