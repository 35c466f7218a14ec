package ids

import (
	"cmp"
	"context"
	"errors"
	"time"

	"seckill/service/idgen"
)

// StepConfig configures Step. Zero values stand for the defaults.
type StepConfig struct {
	Ranges idgen.RangeStore

	Low    int           // ids a second in the low phases, default 2,000; the peak has a hundred times as many
	Phase  time.Duration // of each phase: low, peak, low; default 4 s
	Target time.Duration // how long a segment should last, default 500 ms
	Every  time.Duration // between samples, default 100 ms
}

func (c StepConfig) withDefaults() StepConfig {
	c.Low = cmp.Or(c.Low, 2000)
	c.Phase = cmp.Or(c.Phase, 4*time.Second)
	c.Target = cmp.Or(c.Target, 500*time.Millisecond)
	c.Every = cmp.Or(c.Every, 100*time.Millisecond)
	return c
}

// peakFactor is the rate of the peak, divided by the low rate.
const peakFactor = 100

// StepResult compares a step that follows demand with fixed ones.
type StepResult struct {
	Low    int       `json:"low_rate"`
	High   int       `json:"high_rate"`
	Target float64   `json:"target_ms"`
	Runs   []StepRun `json:"runs"` // "dynamic", "fixed, for the low rate", "fixed, for the peak"
}

// StepRun is the result of one way to choose the step.
type StepRun struct {
	Way    string       `json:"way"`
	Loads  int64        `json:"loads"`
	Waits  int64        `json:"waits"`         // calls that found no id
	Quiet  int64        `json:"wasted_quiet"`  // ids that a restart at the end of the first phase would lose
	Most   int64        `json:"wasted_most"`   // ids that a restart at the worst moment would lose
	AtEnd  int64        `json:"wasted_at_end"` // ids that a restart at the end would lose
	Series []StepSample `json:"series"`
}

// StepSample is the state at one moment.
type StepSample struct {
	At     float64 `json:"at_ms"`
	Rate   float64 `json:"ids_per_s"`
	Step   int64   `json:"step"`
	Loads  float64 `json:"loads_per_s"`
	Unused int64   `json:"unused"` // ids that a restart now would lose
}

// Step takes ids under a load that rises a hundredfold and falls again. It blocks for about nine phases, or until ctx ends.
func Step(ctx context.Context, c StepConfig) (*StepResult, error) {
	c = c.withDefaults()
	result := &StepResult{Low: c.Low, High: peakFactor * c.Low, Target: float64(c.Target.Milliseconds())}
	small := max(1, int64(float64(c.Low)*c.Target.Seconds()))
	for _, way := range []struct {
		name        string
		least, most int64
	}{
		{"dynamic", small, 4 * peakFactor * small}, {"fixed, for the low rate", small, small},
		{"fixed, for the peak", peakFactor * small, peakFactor * small},
	} {
		run, err := c.run(ctx, way.least, way.most)
		if err != nil {
			return result, err
		}
		run.Way = way.name
		result.Runs = append(result.Runs, run)
	}
	return result, nil
}

func (c StepConfig) run(ctx context.Context, least, most int64) (run StepRun, err error) {
	g, err := idgen.NewSegment(ctx, c.Ranges, idgen.WithStep(least, most), idgen.WithTarget(c.Target))
	if err != nil {
		return run, err
	}
	start := time.Now()
	before := g.Stats()
	for at := time.Duration(0); at < 3*c.Phase && err == nil; at += c.Every {
		rate := c.Low
		if at >= c.Phase && at < 2*c.Phase {
			rate *= peakFactor
		}
		n, begun := 0, time.Now()
		n, err = take(ctx, g, rate, start.Add(at+c.Every))
		took, now := time.Since(begun).Seconds(), g.Stats()
		run.Series = append(run.Series, StepSample{
			At: float64(at.Milliseconds()), Rate: float64(n) / took, Step: now.Step,
			Loads: float64(now.Loads-before.Loads) / took, Unused: now.Remaining,
		})
		run.Most = max(run.Most, now.Remaining)
		if at < c.Phase {
			run.Quiet = now.Remaining
		}
		before = now
	}
	run.Loads, run.Waits, run.AtEnd = before.Loads, before.Waited-1, before.Remaining
	return run, errors.Join(err, g.Close(ctx))
}

// take takes ids at the rate until a time, once a millisecond.
func take(ctx context.Context, g idgen.Generator, rate int, until time.Time) (taken int, err error) {
	begun := time.Now()
	for now := begun; now.Before(until); now = time.Now() {
		due := int(now.Sub(begun).Seconds()*float64(rate)) - taken
		for range due {
			if _, err := g.Next(ctx); err != nil {
				return taken, err
			}
			taken++
		}
		time.Sleep(time.Millisecond)
	}
	return taken, nil
}
