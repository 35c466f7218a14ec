package idgen

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keeper holds what the goroutine that keeps a Snowflake's lease needs.
type keeper struct {
	woken  chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
	result chan error // what the first Close returned, for the others
}

// wake asks for the lease to be looked after now rather than at its next turn. It does not block.
func (k *keeper) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// startKeeper gets the first lease and starts to keep it.
func (s *Snowflake) startKeeper(ctx context.Context) error {
	s.keeper = keeper{woken: make(chan struct{}, 1), done: make(chan struct{}), result: make(chan error, 1)}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	if err := s.renew(ctx); err != nil {
		// If ctx is over, that cannot be done, and the lease ends by itself.
		return errors.Join(err, s.leases.Release(ctx, s.grant, s.grant.Ceilings))
	}
	// The lease outlives the call that starts it, so it keeps the context's values and not its end.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.keeper.cancel = cancel
	go s.keep(run)
	return nil
}

// keep renews the lease, or gets another one when it is lost, until ctx ends.
func (s *Snowflake) keep(ctx context.Context) {
	defer close(s.keeper.done)
	every := min(s.ttl, s.reserve) / 3
	pause, woken := every, s.keeper.woken
	for {
		fired, stop := after(s.clock, pause)
		select {
		case <-ctx.Done():
			stop()
			return
		case <-woken:
			stop()
		case <-fired:
		}
		pause, woken = every, s.keeper.woken
		if err := s.maintain(ctx); err != nil {
			// A store in trouble is asked less eagerly than calls would have it, and not by all instances at once.
			pause, woken = s.jitter(every/2), nil
		}
	}
}

// maintain does one turn of keep. Its time is bounded, so that a store that hangs is asked again before the lease ends.
func (s *Snowflake) maintain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.ttl/3)
	defer cancel()
	if s.clock.Mono() < s.leaseDeadline() {
		err := s.renew(ctx)
		if !errors.Is(err, ErrLeaseLost) {
			return err
		}
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	return s.renew(ctx)
}

func (s *Snowflake) leaseDeadline() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

// acquire leases a pair. No id is issued under it until renew has stored a ceiling.
func (s *Snowflake) acquire(ctx context.Context) error {
	s.lose()
	sent := s.clock.Mono()
	grant, err := s.leases.Acquire(ctx, s.request())
	took := s.clock.Mono() - sent
	if err != nil {
		s.observer.IDEvent(Event{Kind: LeaseFailed, Took: took, Err: err})
		return fmt.Errorf("lease a worker id: %w", err)
	}
	s.mu.Lock()
	s.adopt(grant)
	worker := s.streams[s.active].machine
	s.mu.Unlock()
	s.observer.IDEvent(Event{Kind: LeaseAcquired, Took: took, Worker: worker})
	return nil
}

// adopt starts the streams of a pair where its earlier holders stopped at the latest. s.mu is held.
func (s *Snowflake) adopt(grant Grant) {
	now := s.now()
	s.grant, s.active = grant, 0
	for i := range s.streams {
		ceiling := min(max(0, grant.Ceilings[i]-s.layout.Epoch.UnixMilli()), s.pace.maxMS+1)
		s.streams[i] = stream{
			machine: 2*grant.Pair + i, ceiling: ceiling, last: ceiling<<s.pace.seqBits - 1, recovering: ceiling > now,
		}
	}
	if s.streams[1].ceiling < s.streams[0].ceiling && s.streams[0].ceiling > now {
		s.active = 1
	}
}

// lose ends the right to issue ids, if there is one left, and says so.
func (s *Snowflake) lose() {
	s.mu.Lock()
	had := s.deadline != 0
	s.retireWindow()
	s.deadline = 0
	s.mu.Unlock()
	if had {
		s.observer.IDEvent(Event{Kind: LeaseLost, Err: ErrLeaseLost})
	}
}

// raised returns the ceilings to store next, for the stream in use and for the spare one. The spare one's stays where it
// is: a clock that is fast today must not spoil both.
func (s *Snowflake) raised() (grant Grant, active int, ceilings [2]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.streams[s.active].last
	if w := s.win.Load(); w.size > 0 {
		used = w.base + w.taken() - 1
	}
	target := min(max(s.now(), used>>s.pace.seqBits)+s.pace.reserve, s.pace.maxMS+1)
	ceilings = [2]int64{s.streams[0].ceiling, s.streams[1].ceiling}
	ceilings[s.active] = max(ceilings[s.active], target)
	return s.grant, s.active, ceilings
}

// renew prolongs the lease and raises the ceiling of the stream in use.
func (s *Snowflake) renew(ctx context.Context) error {
	grant, active, ceilings := s.raised()
	sent := s.clock.Mono()
	err := s.leases.Renew(ctx, grant, s.ttl, s.unix(ceilings))
	took := s.clock.Mono() - sent
	switch {
	case errors.Is(err, ErrLeaseLost):
		s.lose()
		return err
	case err != nil:
		s.observer.IDEvent(Event{Kind: LeaseFailed, Took: took, Err: err})
		return fmt.Errorf("renew the lease on a worker id: %w", err)
	}
	s.mu.Lock()
	for i := range ceilings {
		s.streams[i].ceiling = max(s.streams[i].ceiling, ceilings[i])
	}
	// The store counts the lease from when it heard of it, which is after sent. A tenth is for clocks of unequal speed.
	s.deadline = sent + s.ttl*9/10
	s.broadcast()
	s.mu.Unlock()
	s.observer.IDEvent(Event{Kind: LeaseRenewed, Took: took, Worker: s.streams[active].machine})
	return nil
}

// unix turns milliseconds of the layout into those of the stored ceilings.
func (s *Snowflake) unix(ms [2]int64) (c Ceilings) {
	for i := range ms {
		c[i] = ms[i] + s.layout.Epoch.UnixMilli()
	}
	return c
}

// Close implements Generator. It lowers the stored ceilings to what was used, so that the next holder of the workers
// need not be ahead of its clock.
func (s *Snowflake) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.retireWindow()
	s.broadcast()
	s.mu.Unlock()
	if !first {
		err := <-s.keeper.result
		s.keeper.result <- err
		return err
	}
	s.keeper.cancel()
	var err error
	select {
	case <-s.keeper.done:
		err = s.release(ctx)
	case <-ctx.Done():
		err = fmt.Errorf("a request to the lease store does not end: %w", context.Cause(ctx))
	}
	s.keeper.result <- err
	return err
}

// release gives the pair back. Nothing else touches the streams any more.
func (s *Snowflake) release(ctx context.Context) error {
	ceilings := s.unix([2]int64{s.streams[0].unused(s.pace), s.streams[1].unused(s.pace)})
	if err := s.leases.Release(ctx, s.grant, ceilings); err != nil {
		return fmt.Errorf("give the worker id back: %w", err)
	}
	return nil
}
