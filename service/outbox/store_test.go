package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"seckill/service/outbox"
)

// memory is a store in memory. It uses the fake time of synctest.
type memory struct {
	mu     sync.Mutex
	rows   []*row
	claims int
	broken bool // every call fails
}

type row struct {
	event    outbox.Event
	attempts int
	due      time.Time
	token    string
	state    string // "", "sent", "failed"
}

var errBroken = errors.New("the store is unavailable")

func (m *memory) add(ids ...int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		now := time.Now()
		m.rows = append(m.rows, &row{event: outbox.Event{ID: id, Key: id, Version: 1, CreatedAt: now}, due: now})
	}
}

func (m *memory) Claim(_ context.Context, c outbox.Claim) (outbox.Batch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return outbox.Batch{}, errBroken
	}
	m.claims++
	b := outbox.Batch{Token: strconv.Itoa(m.claims)}
	narrow := c.Overdue > 0 || c.MinAttempts > 0
	for _, r := range m.rows {
		late := time.Since(r.due)
		if len(b.Events) == c.Limit || r.state != "" || late < 0 || narrow && late < c.Overdue && r.attempts < c.MinAttempts {
			continue
		}
		r.token, r.due = b.Token, time.Now().Add(c.Lease)
		b.Events = append(b.Events, r.event)
		b.Attempts = append(b.Attempts, r.attempts)
	}
	return b, nil
}

// change applies f to the rows with these ids that the token holds; "" means any token.
func (m *memory) change(token string, ids []int64, f func(*row)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return errBroken
	}
	for _, r := range m.rows {
		if slices.Contains(ids, r.event.ID) && (token == "" || r.token == token && r.state == "") {
			f(r)
		}
	}
	return nil
}

func (m *memory) MarkSent(_ context.Context, ids []int64) error {
	return m.change("", ids, func(r *row) { r.state = "sent" })
}

func (m *memory) MarkFailed(_ context.Context, token string, failures []outbox.Failure) (err error) {
	for _, f := range failures {
		err = errors.Join(err, m.change(token, []int64{f.ID}, func(r *row) {
			r.attempts++
			r.due, r.token = time.Now().Add(f.Delay), ""
			if f.GiveUp {
				r.state = "failed"
			}
		}))
	}
	return err
}

func (m *memory) Release(_ context.Context, token string, ids []int64) error {
	return m.change(token, ids, func(r *row) { r.due, r.token = time.Now(), "" })
}

func (m *memory) Backlog(context.Context) (b outbox.Backlog, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		switch r.state {
		case "":
			b.Pending++
		case "failed":
			b.Failed++
		}
	}
	return b, nil
}

func (m *memory) row(id int64) row {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.rows, func(r *row) bool { return r.event.ID == id })
	return *m.rows[i]
}

func (m *memory) setBroken(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = broken
}

// script is a broker that returns what answer returns, and records its calls.
type script struct {
	answer func(ctx context.Context, e outbox.Event) error

	mu    sync.Mutex
	calls [][]int64
	times map[int64][]time.Time
}

func (s *script) Publish(ctx context.Context, events []outbox.Event) []error {
	results := make([]error, len(events))
	var ids []int64
	s.mu.Lock()
	for _, e := range events {
		ids = append(ids, e.ID)
		if s.times == nil {
			s.times = map[int64][]time.Time{}
		}
		s.times[e.ID] = append(s.times[e.ID], time.Now())
	}
	s.calls = append(s.calls, ids)
	s.mu.Unlock()
	for i, e := range events {
		if s.answer != nil {
			results[i] = s.answer(ctx, e)
		}
	}
	return results
}

func (s *script) published(id int64) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times[id])
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}
