package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"seckill/cmd/internal/cli"
)

// steps are what a drill's script is written in: waiting, asserting, measuring. As in a test, a step that fails ends the
// script; see check.
type steps struct {
	*timeline
	ctx     context.Context
	rand    *rand.Rand // chooses moments and targets, by the seed
	short   bool       // short faults; limits only inform
	figures []figure
	skipped string // why this machine cannot run the drill
}

// figure is a measured time.
type figure struct {
	Name   string        `json:"name"` // from which moment to which
	Took   time.Duration `json:"took_ns"`
	Limit  time.Duration `json:"limit_ns,omitempty"` // 0: none
	Judged bool          `json:"judged"`             // whether the drill fails beyond the limit
}

func (f *figure) over() bool { return f.Limit > 0 && f.Took > f.Limit }

// failure carries the error of a failed step to attempt.
type failure struct{ err error }

// check ends the script if err is not nil, as t.Fatal ends a test.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the value, or ends the script.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// attempt runs a script and returns the error that ended it.
func attempt(script func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			panic(r)
		}
	}()
	script()
	return nil
}

// stepTimeout bounds how long a step waits for what must happen. It limits no measurement: the machine may be slow.
const stepTimeout = 3 * time.Minute

// pollInterval is the pause between two tries of a condition, or longer if the try itself takes longer.
const pollInterval = 50 * time.Millisecond

// until waits until a condition holds. The condition returns why it does not hold yet.
func (s *steps) until(what string, condition func() error) {
	deadline := time.Now().Add(stepTimeout)
	for {
		begin := time.Now()
		var err error
		if failed := attempt(func() { err = condition() }); failed != nil {
			err = failed
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) || !wait(s.ctx, max(pollInterval, time.Since(begin))) {
			check(fmt.Errorf("waited until %s: %w", what, errors.Join(err, context.Cause(s.ctx))))
		}
	}
}

// expect returns an error for until unless ok.
func expect(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// assert ends the script unless ok; otherwise the timeline says what holds.
func (s *steps) assert(ok bool, format string, args ...any) {
	if !ok {
		check(fmt.Errorf("it does not hold: "+format, args...))
	}
	s.note("found: "+format, args...)
}

// measure notes how long something took. Short drills run on busy machines, so a limit only informs there.
func (s *steps) measure(name string, took, limit time.Duration) {
	s.figures = append(s.figures, figure{Name: name, Took: took, Limit: limit, Judged: limit > 0 && !s.short})
	text := fmt.Sprintf("%s: %s", name, cli.Short(took))
	if limit > 0 {
		text += fmt.Sprintf(" (at most %s)", cli.Short(limit))
	}
	s.note("%s", text)
}

// skip says why this machine cannot run the drill. The load goes on, and its verdict must be good all the same.
func (s *steps) skip(format string, args ...any) {
	s.skipped = fmt.Sprintf(format, args...)
	s.note("skipped: %s", s.skipped)
}

// sleep lets the load go on for a while.
func (s *steps) sleep(d time.Duration) {
	if !wait(s.ctx, d) {
		check(context.Cause(s.ctx))
	}
}

// between chooses a time by the seed.
func (s *steps) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rand.Int64N(int64(most-least)+1))
}

// pickInstance chooses an instance of the shop by the seed, and returns the other one too.
func (s *steps) pickInstance() (target, other string) {
	if s.rand.IntN(2) == 0 {
		return shop1, shop2
	}
	return shop2, shop1
}

// pickServers chooses n servers by the seed.
func (s *steps) pickServers(servers []string, n int) (picked, others []string) {
	shuffled := append([]string(nil), servers...)
	s.rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled[:n:n], shuffled[n:]
}

// wait waits for d. It returns false if ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
