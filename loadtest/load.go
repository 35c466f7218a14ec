package loadtest

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Load says how many arrivals there are, and how fast they come.
//
// In the closed model (Rate is zero) each client starts its next arrival when the last one has ended, so a slow shop gets
// fewer requests. In the open model arrivals come at a fixed rate, as real buyers do. An arrival that finds no free client
// is dropped and counted. It never waits, because waiting would hide latency (coordinated omission).
type Load struct {
	Clients  int           // most arrivals at the same time
	Rate     float64       // arrivals per second; 0: the closed model
	Arrivals int64         // total; 0: limited by Duration
	Duration time.Duration // 0: limited by Arrivals
}

// Arrival is one buyer who comes to the shop.
type Arrival struct {
	N   int64     // from 0
	Due time.Time // when it should begin; latencies count from here. Zero in the closed model
}

func (l *Load) validate() error {
	switch {
	case l.Clients < 1:
		return errors.New("load: at least one client is required")
	case l.Rate < 0 || l.Arrivals < 0 || l.Duration < 0:
		return errors.New("load: rate, arrivals and duration must not be negative")
	case l.Arrivals == 0 && l.Duration == 0:
		return errors.New("load: a limit on arrivals or time is required")
	}
	return nil
}

// Run calls do for every arrival until a limit is reached or ctx ends, and waits for the calls to return. do is called by
// many goroutines. dropped is called for every arrival of the open model that found no free client. Run fails only if the
// load is invalid.
func (l *Load) Run(ctx context.Context, do func(Arrival), dropped func(Arrival)) error {
	if err := l.validate(); err != nil {
		return err
	}
	if l.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Duration)
		defer cancel()
	}
	arrivals := make(chan Arrival) // unbuffered: only a free client takes an arrival
	var clients sync.WaitGroup
	for range l.Clients {
		clients.Go(func() {
			for a := range arrivals {
				do(a)
			}
		})
	}
	if l.Rate > 0 {
		l.open(ctx, arrivals, dropped)
	} else {
		l.closed(ctx, arrivals)
	}
	close(arrivals)
	clients.Wait()
	return nil
}

// closed starts an arrival whenever a client is free.
func (l *Load) closed(ctx context.Context, arrivals chan<- Arrival) {
	for n := int64(0); (l.Arrivals == 0 || n < l.Arrivals) && ctx.Err() == nil; n++ {
		select {
		case arrivals <- Arrival{N: n}:
		case <-ctx.Done():
			return
		}
	}
}

// open starts arrivals at their times. Due is the exact time even if this goroutine was late.
func (l *Load) open(ctx context.Context, arrivals chan<- Arrival, dropped func(Arrival)) {
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := int64(0); l.Arrivals == 0 || n < l.Arrivals; n++ {
		a := Arrival{N: n, Due: begin.Add(time.Duration(math.Round(float64(n) / l.Rate * 1e9)))}
		if wait := time.Until(a.Due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		} else if ctx.Err() != nil {
			return
		}
		select {
		case arrivals <- a:
		default:
			dropped(a)
		}
	}
}
