package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/service/idgen"
)

// The clock of each instance, as far as its ids go, is set by a file in a volume of its own. A scratch image has no
// libfaketime, and a static program would not heed it: the shop is built with a clock that reads the file.
const (
	clockFile    = "/clock/set"
	clockOverlay = `services:
  shop-1: {environment: {SECKILL_CLOCK_FILE: ` + clockFile + `}, volumes: [/clock]}
  shop-2: {environment: {SECKILL_CLOCK_FILE: ` + clockFile + `}, volumes: [/clock]}
`
)

func clockDrills() []drill {
	return []drill{{
		name:  "clock-back",
		shows: "The clock of an instance goes back by 3 ms again and again, by 2 s, by an hour, and is slow at a restart: it waits, counts on from the highest time used, or changes to the other worker of its pair. No id comes twice.",
		fears: "Snowflakes are unique as long as the clock does not go back: NTP corrects it, a machine is moved, somebody sets it.",
		locks: everyLock, span: 60 * time.Second, shortSpan: 40 * time.Second,
		needs: needs{tags: clockTag, overlay: clockOverlay},
		do:    clockBack,
	}}
}

// step is a way to set a clock, and what the generator of ids has to meet.
type step struct {
	set   string
	said  string
	meets idgen.EventKind
}

func clockBack(ctx context.Context, r *run) error {
	hit, _ := r.instance()
	for _, s := range []step{
		{"-3ms/10ms", "goes back by 3 ms, a hundred times a second", idgen.ClockWait},
		{"-2s", "goes back by 2 s", idgen.ClockAhead},
		{"-1h", "goes back by an hour", idgen.WorkerSwitched},
	} {
		if err := r.stepBack(ctx, hit, s); err != nil {
			return err
		}
		if err := r.setClock(ctx, hit, "0s", "is right again"); err != nil {
			return err
		}
		if err := r.placesMore(ctx, hit); err != nil {
			return err
		}
	}
	slow := -r.between(2*time.Minute, 50*time.Minute).Round(time.Second)
	if err := r.restartSlow(ctx, hit, r.stop, slow); err != nil {
		return err
	}
	if err := r.restartSlow(ctx, hit, r.kill, 2*slow); err != nil {
		return err
	}
	if err := r.oldIDs(ctx, -slow/2); err != nil {
		return err
	}
	if err := r.setClock(ctx, hit, "0s", "is right again"); err != nil {
		return err
	}
	return r.placesMore(ctx, hit)
}

// stepBack sets a clock back and waits until the ids' generator has met that and the instance sells on.
func (r *run) stepBack(ctx context.Context, hit string, s step) error {
	name := fmt.Sprintf("seckill_ids_events_total{event=%q}", s.meets)
	before, err := r.metric(ctx, hit, name)
	if err != nil {
		return err
	}
	if err := r.setClock(ctx, hit, s.set, s.said); err != nil {
		return err
	}
	if err := r.until(ctx, fmt.Sprintf("the ids of %s meet %s", hit, s.meets), func(ctx context.Context) (bool, error) {
		now, err := r.metric(ctx, hit, name)
		return now > before, err
	}); err != nil {
		return err
	}
	r.note("found: the generator of ids of %s has met it (%s)", hit, s.meets)
	return r.placesMore(ctx, hit)
}

// restartSlow ends an instance, has its clock slow before it starts again, and waits until it sells.
func (r *run) restartSlow(ctx context.Context, hit string, end func(context.Context, ...string) error, by time.Duration) error {
	if err := end(ctx, hit); err != nil {
		return err
	}
	if err := r.setClock(ctx, hit, by.String(), fmt.Sprintf("is %s slow", -by)); err != nil {
		return err
	}
	if err := r.start(ctx, hit); err != nil {
		return err
	}
	if err := r.until(ctx, hit+" is ready", r.ready(hit)); err != nil {
		return err
	}
	return r.placesMore(ctx, hit)
}

// placesMore waits until an instance has placed some more orders.
func (r *run) placesMore(ctx context.Context, instance string) error {
	const some = 20
	before, err := r.placedBy(ctx, instance)
	if err != nil {
		return err
	}
	if err := r.placesAgain(ctx, instance, before[instance]+some); err != nil {
		return err
	}
	r.note("%s has placed some more orders", instance)
	return nil
}

// setClock writes a clock's setting.
func (r *run) setClock(ctx context.Context, instance, set, said string) error {
	k, what := fault, "clock of "+instance
	if set == "0s" {
		k = healed
	} else {
		r.heals[what] = func(ctx context.Context) error { return r.setClock(ctx, instance, "0s", "is right again") }
	}
	if err := r.copyTo(ctx, instance, clockFile, set+"\n"); err != nil {
		return err
	}
	if k == healed {
		delete(r.heals, what)
	}
	r.event(k, "the clock of %s %s", instance, said)
	return nil
}

// oldIDs asserts that orders carry the slow clock's time in their ids: that it is what ids are made from.
func (r *run) oldIDs(ctx context.Context, by time.Duration) error {
	layout := idgen.DefaultLayout()
	n, err := r.number(ctx, `SELECT COUNT(*) FROM voucher_order WHERE UNIX_TIMESTAMP(created_at) * 1000 - ((id >> ?) + ?) > ?`,
		layout.DataCenterBits+layout.WorkerBits+layout.SequenceBits, layout.Epoch.UnixMilli(), by.Milliseconds())
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("it does not hold: no order's id shows the slow clock's time")
	}
	r.note("found: the ids of %d orders were made more than %s in the past, by a clock that is slow", n, short(by))
	return nil
}
