package idgen

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// startRenewing acquires the first lease and starts the loop that renews it.
func (s *Snowflake) startRenewing(ctx context.Context) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	if err := s.renew(ctx); err != nil {
		// If ctx has ended, this release fails too, and the lease ends with its time.
		return errors.Join(err, s.leases.Release(ctx, s.grant, s.grant.Ceilings))
	}
	// The lease outlives this call: the loop keeps the context's values, not its end.
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stopRenew = cancel
	go s.renewLoop(loop)
	return nil
}

// wakeRenewal makes the loop renew the lease now.
func (s *Snowflake) wakeRenewal() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// renewLoop renews the lease, or acquires another one when it is lost, until ctx ends.
func (s *Snowflake) renewLoop(ctx context.Context) {
	defer close(s.renewEnded)
	interval := min(s.ttl, s.reserve) / 3
	pause, wakeup := interval, s.wakeup
	for {
		select {
		case <-ctx.Done():
			return
		case <-wakeup:
		case <-time.After(pause):
		}
		pause, wakeup = interval, s.wakeup
		if err := s.renewOrAcquire(ctx); err != nil {
			// Do not let calls drive the requests to a store that fails, nor all instances ask at the same time.
			pause, wakeup = s.jitter(interval/2), nil
		}
	}
}

// renewOrAcquire renews the lease, or acquires another one. It is bounded, so that a hung store is asked again before
// the lease ends.
func (s *Snowflake) renewOrAcquire(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.ttl/3)
	defer cancel()
	s.mu.Lock()
	valid := s.mono() < s.deadline
	s.mu.Unlock()
	if valid {
		if err := s.renew(ctx); !errors.Is(err, ErrLeaseLost) {
			return err
		}
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	return s.renew(ctx)
}

// acquire leases a pair. No id is issued under it before renew has stored a ceiling.
func (s *Snowflake) acquire(ctx context.Context) error {
	s.loseLease()
	sent := s.mono()
	grant, err := s.leases.Acquire(ctx, s.leaseRequest())
	took := s.mono() - sent
	if err != nil {
		s.observer.IDEvent(Event{Kind: LeaseFailed, Took: took, Err: err})
		return fmt.Errorf("lease a worker id: %w", err)
	}
	s.mu.Lock()
	s.adopt(grant)
	number := s.workers[s.active].number
	s.mu.Unlock()
	s.observer.IDEvent(Event{Kind: LeaseAcquired, Took: took, Worker: number})
	return nil
}

// adopt makes a leased pair the one in use. Its ids begin above the ceilings of earlier holders. s.mu is locked.
func (s *Snowflake) adopt(grant Grant) {
	now := s.now()
	s.grant, s.active = grant, 0
	for i := range s.workers {
		ceiling := min(max(0, grant.Ceilings[i]-s.layout.Epoch.UnixMilli()), s.layout.maxMillis()+1)
		s.workers[i] = worker{
			number: 2*grant.Pair + i, ceiling: ceiling, last: ceiling<<s.layout.SequenceBits - 1, recovering: ceiling > now,
		}
	}
	if s.workers[1].ceiling < s.workers[0].ceiling && s.workers[0].ceiling > now {
		s.active = 1
	}
}

// loseLease ends the right to issue ids. It reports that if there was one.
func (s *Snowflake) loseLease() {
	s.mu.Lock()
	had := s.deadline != 0
	s.closeWindow()
	s.deadline = 0
	s.mu.Unlock()
	if had {
		s.observer.IDEvent(Event{Kind: LeaseLost, Err: ErrLeaseLost})
	}
}

// renew extends the lease and raises the ceiling of the active worker.
func (s *Snowflake) renew(ctx context.Context) error {
	grant, active, ceilings := s.nextCeilings()
	sent := s.mono()
	err := s.leases.Renew(ctx, grant, s.ttl, s.toUnix(ceilings))
	took := s.mono() - sent
	switch {
	case errors.Is(err, ErrLeaseLost):
		s.loseLease()
		return err
	case err != nil:
		s.observer.IDEvent(Event{Kind: LeaseFailed, Took: took, Err: err})
		return fmt.Errorf("renew the lease on a worker id: %w", err)
	}
	s.mu.Lock()
	for i := range ceilings {
		s.workers[i].ceiling = max(s.workers[i].ceiling, ceilings[i])
	}
	// The store counts the lease from the arrival of the request, which is after sent. A tenth is subtracted because its
	// clock may be faster.
	s.deadline = sent + s.ttl*9/10
	s.wakeWaiters()
	number := s.workers[active].number
	s.mu.Unlock()
	s.observer.IDEvent(Event{Kind: LeaseRenewed, Took: took, Worker: number})
	return nil
}

// nextCeilings returns the ceilings to store, in milliseconds of the layout. The backup worker's stays as it is: a clock
// that is fast today must not spoil both workers.
func (s *Snowflake) nextCeilings() (grant Grant, active int, ceilings [2]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ceilings = [2]int64{s.workers[0].ceiling, s.workers[1].ceiling}
	target := max(s.now(), s.milli(s.lastTick())) + s.reserve.Milliseconds()
	ceilings[s.active] = max(ceilings[s.active], min(target, s.layout.maxMillis()+1))
	return s.grant, s.active, ceilings
}

// toUnix turns milliseconds of the layout into Unix milliseconds.
func (s *Snowflake) toUnix(ms [2]int64) Ceilings {
	epoch := s.layout.Epoch.UnixMilli()
	return Ceilings{ms[0] + epoch, ms[1] + epoch}
}

// Close implements Generator. It lowers the stored ceilings to what was used, so that the next holder of the workers does
// not start ahead of its clock.
func (s *Snowflake) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { s.closeErr = s.close(ctx) })
	return s.closeErr
}

func (s *Snowflake) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.closeWindow()
	s.wakeWaiters()
	s.mu.Unlock()
	s.stopRenew()
	select {
	case <-s.renewEnded: // from here on, nothing else uses the workers
	case <-ctx.Done():
		return fmt.Errorf("a request to the lease store does not end: %w", context.Cause(ctx))
	}
	unused := [2]int64{s.milli(s.workers[0].last) + 1, s.milli(s.workers[1].last) + 1}
	if err := s.leases.Release(ctx, s.grant, s.toUnix(unused)); err != nil {
		return fmt.Errorf("release the worker id: %w", err)
	}
	return nil
}
