package ids

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/service/idgen"
)

// RefillConfig says what Refill measures. The zero value of a field stands for its default.
type RefillConfig struct {
	// Incr takes a single id off the store: the way without buffers.
	Incr func(ctx context.Context) error
	// Ranges is the store that buffers are filled from.
	Ranges idgen.RangeStore

	Rate    int           // ids a second, default 20,000
	Step    int64         // ids a load, default half a second's
	Workers int           // callers at once, default 8
	Time    time.Duration // of each run, default 5 s
	Stretch time.Duration // of a point of the series, default 25 ms
}

func (c RefillConfig) withDefaults() RefillConfig {
	defaultTo(&c.Rate, 20_000)
	defaultTo(&c.Step, int64(c.Rate/2))
	defaultTo(&c.Workers, 8)
	defaultTo(&c.Time, 5*time.Second)
	defaultTo(&c.Stretch, 25*time.Millisecond)
	return c
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// RefillResult compares the ways to get ids out of a store.
type RefillResult struct {
	Rate int         `json:"rate"`
	Step int64       `json:"step"`
	Runs []RefillRun `json:"runs"` // "incr per id", "single buffer", "double buffer"
}

// RefillRun is one way.
type RefillRun struct {
	Way        string  `json:"way"`
	Throughput float64 `json:"throughput"` // ids a second when nobody holds back
	Waits      int64   `json:"waits"`      // calls that found no id and waited for a load, at the rate
	Overall    Latency `json:"overall"`    // of all calls at the rate
	Series     []Point `json:"series"`     // of the same calls over time: here the saw-tooth shows
}

// Refill takes ids at the same rate from a store in three ways, and then as fast as it can. It blocks for about seven
// times Time, or until ctx ends.
func Refill(ctx context.Context, c RefillConfig) (*RefillResult, error) {
	c = c.withDefaults()
	result := &RefillResult{Rate: c.Rate, Step: c.Step}
	ways := []struct {
		name   string
		loadAt float64 // negative: no buffer
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
		run.Throughput, err = c.flatOut(ctx, c.Incr)
		if err == nil {
			run.Overall, run.Series, err = c.paced(ctx, c.Incr)
		}
		return run, err
	}
	// Flat out, a step of half a second's ids at the rate would be gone at once: it may grow there.
	fast, err := c.buffer(ctx, loadAt, 1000*c.Step)
	if err != nil {
		return run, err
	}
	run.Throughput, err = c.flatOut(ctx, nextOf(fast))
	if err = errors.Join(err, fast.Close(ctx)); err != nil {
		return run, err
	}
	steady, err := c.buffer(ctx, loadAt, c.Step)
	if err != nil {
		return run, err
	}
	run.Overall, run.Series, err = c.paced(ctx, nextOf(steady))
	run.Waits = steady.Stats().Waited - 1 // the first load is waited for in any case
	return run, errors.Join(err, steady.Close(ctx))
}

func (c RefillConfig) buffer(ctx context.Context, loadAt float64, most int64) (*idgen.Segment, error) {
	return idgen.NewSegment(ctx, c.Ranges, idgen.WithLoadAt(loadAt), idgen.WithStep(c.Step, most))
}

func nextOf(g idgen.Generator) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := g.Next(ctx)
		return err
	}
}

// flatOut lets all workers take ids without a pause and returns how many a second they got.
func (c RefillConfig) flatOut(ctx context.Context, next func(context.Context) error) (float64, error) {
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

// paced takes ids at the rate and returns how long the calls took.
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
	return summarise(took), overTime(all, c.Stretch), err
}

// workers runs work on as many goroutines as there are workers.
func (c RefillConfig) workers(work func(worker int) error) error {
	errs := make([]error, c.Workers)
	var wg sync.WaitGroup
	for i := range c.Workers {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
