package main

import (
	"context"
	"fmt"
	"time"
)

// guardOffVariable has to be set for a shop without its guard to serve.
const guardOffVariable = "SECKILL_GUARD_OFF"

// playControl plays the same drill on a shop that was built without its guard. The books have to find it out, or they
// prove nothing about the shop that has it.
func (s *session) playControl(ctx context.Context, st *stage, t *turn, set settings, r *result) error {
	begin := time.Now()
	fmt.Fprintf(s.out, "\n%s, negative control: the same on a shop that was built without its guard (-tags %s)\n", t.name, guardOffTag)
	if err := st.withoutGuard(ctx); err != nil {
		return err
	}
	set.units = max(controlOrders, set.units/8)
	p, err := s.newPlay(st, t, set)
	if err != nil {
		return err
	}
	p.guardOff = true
	failed := p.perform(ctx, t.control)
	st.dirty = failed != nil // else everything has come to rest, and the tables will be emptied
	if ctx.Err() != nil {
		return nil
	}
	c := p.result(t, set, begin)
	c.guardOff, c.Shows, c.Fears = true, "", ""
	c.judgeControl(failed)
	c.print(s.out)
	r.Control = c
	if !c.OK {
		r.OK, r.Wrong = false, append(r.Wrong, c.Wrong...)
	}
	return nil
}

// controlOrders is how many units are enough to see a shop oversell.
const controlOrders = 1000

// withoutGuard replaces the shop's instances, on empty tables.
func (st *stage) withoutGuard(ctx context.Context) error {
	if err := st.up(ctx); err != nil {
		return err
	}
	if err := st.clean(ctx); err != nil {
		return err
	}
	env := map[string]string{guardOffVariable: "oversell"}
	for key, value := range st.env {
		env[key] = value
	}
	st.env = env
	if err := st.writeOverride(st.image(guardOffTag)); err != nil {
		return err
	}
	return st.up(ctx)
}
