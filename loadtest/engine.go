package loadtest

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Load says how much is sent, and how fast.
//
// In the closed model (Rate is zero) each client does its next arrival when the last one is over: a slow shop is asked
// less often. In the open model arrivals come at their rate whatever the shop does, as buyers do; one that finds no
// client free is dropped and counted. It never waits for one: that would turn the model into a closed one and hide the
// time that buyers wait.
type Load struct {
	Clients  int           // arrivals that are under way at the same time, at most
	Rate     float64       // arrivals per second; 0: the closed model
	Arrivals int64         // in all; 0: as many as fit into Duration
	Duration time.Duration // 0: until all Arrivals are over
}

// Arrival is one turn of a client.
type Arrival struct {
	N   int64     // from 0
	Due time.Time // when it was to begin: latencies count from here
}

func (l *Load) validate() error {
	switch {
	case l.Clients < 1:
		return errors.New("load: needs at least one client")
	case l.Rate < 0 || l.Arrivals < 0 || l.Duration < 0:
		return errors.New("load: rate, arrivals and duration must not be negative")
	case l.Arrivals == 0 && l.Duration == 0:
		return errors.New("load: needs a bound in number or in time")
	}
	return nil
}

// Run does arrivals until a bound is reached or ctx ends, and waits for those that are under way. do is called by many
// goroutines; dropped is told of every arrival of the open model that found nobody free. An error means that the load
// cannot be, and nothing was done.
func (l *Load) Run(ctx context.Context, do func(Arrival), dropped func(Arrival)) error {
	if err := l.validate(); err != nil {
		return err
	}
	if l.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Duration)
		defer cancel()
	}
	arrivals := make(chan Arrival) // without a buffer: an arrival is taken by somebody who is free, or not at all
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

// closed hands out an arrival whenever somebody is free.
func (l *Load) closed(ctx context.Context, arrivals chan<- Arrival) {
	for n := int64(0); (l.Arrivals == 0 || n < l.Arrivals) && ctx.Err() == nil; n++ {
		select {
		case arrivals <- Arrival{N: n}: // due when it is taken
		case <-ctx.Done():
			return
		}
	}
}

// open hands out arrivals at their times. One that is late, because this goroutine was, still counts from its time.
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
