package ids

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"seckill/service/idgen"
)

// RefillConfig configures Refill. Zero values stand for the defaults.
type RefillConfig struct {
	// Incr takes a single id from the store, without a buffer.
	Incr func(ctx context.Context) error
	// Ranges is the store that fills the buffers.
	Ranges idgen.RangeStore

	Rate     int           // ids a second, default 20,000
	Step     int64         // ids of a load, default half a second of ids
	Workers  int           // concurrent callers, default 8
	Time     time.Duration // of each run, default 5 s
	Interval time.Duration // between points of the series, default 25 ms
}

func (c RefillConfig) withDefaults() RefillConfig {
	c.Rate = cmp.Or(c.Rate, 20_000)
	c.Step = cmp.Or(c.Step, int64(c.Rate/2))
	c.Workers = cmp.Or(c.Workers, 8)
	c.Time = cmp.Or(c.Time, 5*time.Second)
	c.Interval = cmp.Or(c.Interval, 25*time.Millisecond)
	return c
}

// RefillResult compares the ways to take ids from a store.
type RefillResult struct {
	Rate int         `json:"rate"`
	Step int64       `json:"step"`
	Runs []RefillRun `json:"runs"` // "incr per id", "single buffer", "double buffer"
}

// RefillRun is the result of one way.
type RefillRun struct {
	Way        string  `json:"way"`
	Throughput float64 `json:"throughput"` // ids a second at full speed
	Waits      int64   `json:"waits"`      // calls at the rate that found no id and waited for a load
	Overall    Latency `json:"overall"`    // of all calls at the rate
	Series     []Point `json:"series"`     // of the same calls over time
}

// Refill takes ids from a store in three ways, each at full speed and at a fixed rate. It blocks for about four times Time,
// or until ctx ends.
func Refill(ctx context.Context, c RefillConfig) (*RefillResult, error) {
	c = c.withDefaults()
	result := &RefillResult{Rate: c.Rate, Step: c.Step}
	ways := []struct {
		name   string
		loadAt float64 // used share of a segment at which the next one is loaded; negative: no segments, one INCR for each id
	}{{"incr per id", -1}, {"single buffer", 1}, {"double buffer", 0.1}}
	for _, way := range ways {
		run, err := c.run(ctx, way.loadAt)
		if err != nil {
			return result, err
		}
		run.Way = way.name
		result.Runs = append(result.Runs, run)
	}
	return result, nil
}

func (c RefillConfig) run(ctx context.Context, loadAt float64) (run RefillRun, err error) {
	if loadAt < 0 {
		run.Throughput, err = c.fullSpeed(ctx, c.Incr)
		if err == nil {
			run.Overall, run.Series, err = c.paced(ctx, c.Incr)
		}
		return run, err
	}
	// At full speed a fixed step would be used up at once, so it may grow.
	fast, err := c.buffer(ctx, loadAt, 1000*c.Step)
	if err != nil {
		return run, err
	}
	run.Throughput, err = c.fullSpeed(ctx, nextOf(fast))
	if err = errors.Join(err, fast.Close(ctx)); err != nil {
		return run, err
	}
	steady, err := c.buffer(ctx, loadAt, c.Step)
	if err != nil {
		return run, err
	}
	run.Overall, run.Series, err = c.paced(ctx, nextOf(steady))
	run.Waits = steady.Stats().Waited - 1 // every run waits for the first load
	return run, errors.Join(err, steady.Close(ctx))
}

func (c RefillConfig) buffer(ctx context.Context, loadAt float64, maxStep int64) (*idgen.Segment, error) {
	return idgen.NewSegment(ctx, c.Ranges, idgen.WithLoadAt(loadAt), idgen.WithStep(c.Step, maxStep))
}

func nextOf(g idgen.Generator) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := g.Next(ctx)
		return err
	}
}

// fullSpeed lets all workers take ids without a pause. It returns ids a second.
func (c RefillConfig) fullSpeed(ctx context.Context, next func(context.Context) error) (float64, error) {
	start := time.Now()
	counts := make([]int, c.Workers)
	err := c.workers(func(worker int) error {
		for ; ; counts[worker]++ {
			if counts[worker]%64 == 0 && time.Since(start) > c.Time/4 {
				return nil
			}
			if err := next(ctx); err != nil {
				return err
			}
		}
	})
	took, total := time.Since(start), 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / took.Seconds(), err
}

// paced takes ids at the rate. It returns the latencies of the calls.
func (c RefillConfig) paced(ctx context.Context, next func(context.Context) error) (Latency, []Point, error) {
	start := time.Now()
	samples := make([][]sample, c.Workers)
	every := time.Duration(float64(c.Workers) / float64(c.Rate) * float64(time.Second))
	err := c.workers(func(worker int) error {
		for due := time.Duration(0); due < c.Time; due += every {
			if ahead := due - time.Since(start); ahead > 0 {
				time.Sleep(ahead)
			}
			before := time.Now()
			if err := next(ctx); err != nil {
				return err
			}
			samples[worker] = append(samples[worker], sample{before.Sub(start), time.Since(before)})
		}
		return nil
	})
	var all []sample
	var took []time.Duration
	for _, s := range samples {
		all = append(all, s...)
	}
	for _, s := range all {
		took = append(took, s.took)
	}
	return summarize(took), overTime(all, c.Interval), err
}

// workers runs work on c.Workers goroutines.
func (c RefillConfig) workers(work func(worker int) error) error {
	errs := make([]error, c.Workers)
	var wg sync.WaitGroup
	for i := range c.Workers {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
