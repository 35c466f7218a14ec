// Package lesson shows what a lock is worth when its holder loses it and does not know. It plays the same two stories
// with any lock and tells what happened: whether two believed in the lock at once, whether a stale write reached the
// store behind it, and whether a fencing token would have refused that write.
package lesson

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/service/lock"
)

// Subject is a lock to be shown.
type Subject struct {
	Name string
	// New returns a Locker that stands for a process of its own. Run closes it.
	New func() (lock.Locker, error)
	// Break takes the lock from its holder at the backend, as a failover to a server that never saw it would.
	// Nil: the backend can't lose it that way, and the story is left out.
	Break func(ctx context.Context, key string) error
}

// Finding is what came of one story.
type Finding struct {
	Subject string
	Story   string
	// Together is how long both believed to hold the lock: from the second's grant until the first was told. Zero: the
	// first was told before.
	Together time.Duration
	// StaleWrite: the first, which did not look, wrote after the second, to a store without fencing.
	StaleWrite bool
	// HasToken: the backend gives fencing tokens; Refused: by them the store would have refused the stale write.
	HasToken, Refused bool
	// SecondStands: the second's lock was not hurt by the first's late release.
	SecondStands bool
}

// String is the finding in a sentence.
func (f Finding) String() string {
	s := f.Subject + ", " + f.Story + ": "
	if f.Together > 0 {
		s += fmt.Sprintf("two holders for %v", f.Together.Round(time.Millisecond))
	} else {
		s += "the first was told before the second got in"
	}
	switch {
	case f.Refused:
		s += "; the stale write would be refused by its token"
	case f.HasToken:
		s += "; the token would not refuse the stale write"
	default:
		s += "; no token, so only the database's own conditions can refuse the stale write"
	}
	if !f.SecondStands {
		s += "; the late release took the lock from the second"
	}
	return s
}

// The stories.
const (
	TakenAway = "lock taken away under its holder"
	Asleep    = "holder asleep past its lease"
)

// Run plays the stories with s. The explicit lease of the holder that falls asleep is nap. It waits until the holder is told
// of its loss, for as long as ctx allows.
func Run(ctx context.Context, s Subject, nap time.Duration) ([]Finding, error) {
	first, err := s.New()
	if err != nil {
		return nil, err
	}
	defer first.Close()
	second, err := s.New()
	if err != nil {
		return nil, err
	}
	defer second.Close()
	var findings []Finding
	play := func(story string, opts []lock.Option, meanwhile func(ctx context.Context, key string) error) error {
		p := play{first: first, second: second, key: "lesson:" + time.Now().Format("150405.000000000")}
		f, err := p.run(ctx, opts, meanwhile)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", s.Name, story, err)
		}
		f.Subject, f.Story = s.Name, story
		findings = append(findings, f)
		return nil
	}
	if s.Break != nil {
		if err := play(TakenAway, nil, s.Break); err != nil {
			return nil, err
		}
	}
	asleep := func(context.Context, string) error { return nil }
	if err := play(Asleep, []lock.Option{lock.WithLease(nap)}, asleep); err != nil {
		return nil, err
	}
	return findings, nil
}

// play is one story on its way.
type play struct {
	first, second lock.Locker
	key           string
	store         store
}

// run has the first acquire, something happen meanwhile, the second acquire and write, and the first, which looks at
// nothing, write and release.
func (p *play) run(ctx context.Context, opts []lock.Option, meanwhile func(context.Context, string) error) (f Finding, err error) {
	stale, err := p.first.Acquire(ctx, p.key, opts...)
	if err != nil {
		return f, err
	}
	told := make(chan time.Time, 1)
	stop := context.AfterFunc(stale.Context(), func() { told <- time.Now() })
	defer stop()
	if err := meanwhile(ctx, p.key); err != nil {
		return f, err
	}
	fresh, err := p.second.Acquire(ctx, p.key)
	if err != nil {
		return f, err
	}
	granted := time.Now()
	p.store.write(fresh)
	select {
	case at := <-told:
		f.Together = max(0, at.Sub(granted))
	case <-ctx.Done():
		return f, ctx.Err()
	}
	f.StaleWrite, f.Refused = p.store.write(stale)
	_, f.HasToken = stale.Token()
	if err := stale.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
		return f, err
	}
	third, err := p.first.Acquire(ctx, p.key, lock.Try())
	f.SecondStands = errors.Is(err, lock.ErrHeld)
	if err == nil {
		_ = third.Release(ctx)
	}
	if err := fresh.Release(ctx); f.SecondStands && err != nil {
		return f, err
	}
	return f, nil
}

// store is what the lock is to protect. It takes every write, and tells what it would have done with fencing.
type store struct {
	mu      sync.Mutex
	highest uint64
	writes  int
}

func (s *store) write(l lock.Lease) (stale, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale = s.writes > 0
	s.writes++
	token, ok := l.Token()
	refused = ok && token < s.highest
	s.highest = max(s.highest, token)
	return stale, refused
}

// Cost is what an uncontended pair of Acquire and Release takes.
type Cost struct {
	Subject  string
	Pair     time.Duration // on average
	Requests float64       // to servers; zero if the Locker does not count them
}

// Measure acquires and releases a lock n times.
func Measure(ctx context.Context, s Subject, n int) (Cost, error) {
	l, err := s.New()
	if err != nil {
		return Cost{}, err
	}
	defer l.Close()
	pair := func() error {
		return lock.Do(ctx, l, "lesson:cost", func(context.Context) error { return nil })
	}
	if err := pair(); err != nil { // connects, and loads scripts
		return Cost{}, err
	}
	before, start := requests(l), time.Now()
	for range n {
		if err := pair(); err != nil {
			return Cost{}, err
		}
	}
	took := time.Since(start)
	return Cost{
		Subject:  s.Name,
		Pair:     took / time.Duration(n),
		Requests: float64(requests(l)-before) / float64(n),
	}, nil
}

func requests(l lock.Locker) int64 {
	if counter, ok := l.(interface{ Requests() int64 }); ok {
		return counter.Requests()
	}
	return 0
}
