package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"seckill/cmd/internal/cli"
)

// settings are common to all drills of a session.
type settings struct {
	seed  int64
	units int64
	rate  float64 // 0: by the drill's duration
	short bool
}

// drillCase is one run of a drill. The script of a drill is a function of it.
type drillCase struct {
	*steps
	*cluster
	*faults
	*shop
	drillRun
	seed     int64
	buyers   *buyers
	guardOff bool // the shop was built without its guard
}

// newCase prepares a drill on a cluster that is healthy and empty.
func newCase(ctx context.Context, s *session, cl *cluster, run drillRun, set settings) (*drillCase, error) {
	duration := run.duration
	if set.short && run.shortDuration > 0 {
		duration = run.shortDuration
	}
	if set.rate == 0 {
		set.rate = min(maxRate, float64(set.units)/2/duration.Seconds())
	}
	m := newMeter()
	b, err := newBuyers(buyersOptions{
		url: "http://" + cl.Addr(gateway), journal: filepath.Join(s.dir, fmt.Sprintf("%s-%s.jsonl", run.name, run.lock)), token: s.tokens.Of,
		settings: set, repeat: run.repeat, meter: m,
	})
	if err != nil {
		return nil, err
	}
	name := fnv.New64a()
	_, _ = io.WriteString(name, run.name) // never fails
	st := &steps{
		ctx: ctx, timeline: newTimeline(s.out, m), short: set.short,
		rand: rand.New(rand.NewPCG(uint64(set.seed), name.Sum64())), //nolint:gosec // it has to be repeatable
	}
	st.note("%d units on sale; buyers come at %.0f a second", set.units, set.rate)
	return &drillCase{
		steps: st, cluster: cl, drillRun: run, seed: set.seed, buyers: b,
		faults: &faults{steps: st, cluster: cl, repairs: map[string]func(){}}, shop: &shop{steps: st, cluster: cl, meter: m},
	}, nil
}

// play runs the script while buyers come, repairs what it left broken, and finishes the sale. Its error says why the drill
// failed.
func (c *drillCase) play() (err error) {
	defer func() { err = errors.Join(err, c.buyers.close()) }()
	ctx := c.ctx
	ticking, stopTicking := context.WithCancel(ctx)
	var ticker sync.WaitGroup
	defer ticker.Wait()
	defer stopTicking()
	ticker.Go(func() {
		for wait(ticking, quiet/8) {
			c.tick()
		}
	})
	c.buyers.start(ctx, c.timeline)
	calm := c.between(2*time.Second, 3*time.Second) // before and after, for the charts
	err = attempt(func() {
		c.sleep(calm)
		c.script(c)
	})
	repairErr := c.repairAll()
	c.steps.ctx = ctx
	if err = errors.Join(err, repairErr); err == nil {
		err = attempt(func() { c.sleep(calm) })
	}
	c.buyers.stop()
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return errors.Join(err, attempt(c.finish)) // the verdict of a failed drill is worth knowing too
}

// finish resolves unknown outcomes, sells the rest, and waits for the effects of all events.
func (c *drillCase) finish() {
	c.note("the steady load is over; requests with an unknown outcome are repeated")
	c.buyers.settle(c.ctx)
	c.note("the rest of the units is sold as fast as possible")
	check(c.buyers.sellOut(c.ctx))
	c.note("sold out")
	begin := time.Now()
	c.until("every event was sent and took effect", c.drained)
	c.note("every event has been sent and taken effect, %s later", cli.Short(time.Since(begin)))
}

// drained returns an error while an event or an effect is on its way.
func (c *drillCase) drained() error {
	if unsent := must(c.db.Unsent(c.ctx)); unsent > 0 {
		return fmt.Errorf("%d events are unsent", unsent)
	}
	missing := must(c.number(c.ctx, `SELECT COUNT(*) FROM voucher_order o LEFT JOIN points_entry p ON p.order_id = o.id
		WHERE o.status = 2 AND p.id IS NULL`))
	return expect(missing == 0, "%d effects are missing", missing)
}

// result checks the orders, if the database can be reached.
func (c *drillCase) result(begin time.Time) *result {
	r := newResult(c.drillRun, c.seed)
	r.guardOff, r.Figures, r.Skipped, r.Pause = c.guardOff, c.figures, c.skipped, c.meter.longestPause()
	r.Events, r.Slots = c.list(), c.buyers.recorder.Report().Timeline
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	var err error
	if r.Verdict, r.Answers, err = c.buyers.judge(ctx, c.db); err != nil {
		r.Wrong = append(r.Wrong, err.Error())
	}
	r.Took = time.Since(begin)
	return r
}
