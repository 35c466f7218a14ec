package outbox

import (
	"context"
	"errors"
	"time"
)

// send publishes a claimed batch and marks the result of each event.
func (r *Relay) send(ctx context.Context, batch Batch) Outcome {
	start := time.Now()
	results := r.publish(ctx, batch.Events)
	took := time.Since(start)
	m, outcome := sortResults(batch, results)
	r.breaker.record(outcome)
	r.mark(ctx, batch.Token, m)
	r.cfg.Observer.Published(outcome, took)
	for i, e := range batch.Events {
		switch err := results[i]; {
		case err == nil:
			r.cfg.Observer.Sent(e, time.Since(e.CreatedAt))
		case isFinal(err, batch.Attempts[i]+1):
			r.cfg.Observer.GaveUp(e, err)
		}
	}
	return outcome
}

// publish continues for up to stopTimeout after ctx ends: events on their way to the broker should get their
// confirmation and their mark, because they would be sent twice otherwise.
func (r *Relay) publish(ctx context.Context, events []Event) []error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/3)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		sleep(call, stopTimeout)
		cancel()
	})
	defer stop()
	return r.cfg.Broker.Publish(call, events)
}

// marks groups the events of a batch by the update that their rows get.
type marks struct {
	sent     []int64
	failures []Failure
	released []int64
}

func sortResults(batch Batch, results []error) (m marks, o Outcome) {
	for i, e := range batch.Events {
		attempt := batch.Attempts[i] + 1
		switch err := results[i]; {
		case err == nil:
			m.sent = append(m.sent, e.ID)
			o.Sent++
		case isUnavailable(err):
			m.released = append(m.released, e.ID)
			o.Unavailable++
		case isFinal(err, attempt):
			m.failures = append(m.failures, Failure{ID: e.ID, GiveUp: true})
			o.GivenUp++
		default:
			m.failures = append(m.failures, Failure{ID: e.ID, Delay: retryDelay(attempt)})
			o.Retry++
		}
	}
	return m, o
}

// mark writes the results, also after ctx has ended. Events whose mark fails are due again when their lease ends.
func (r *Relay) mark(ctx context.Context, token string, m marks) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/6)
	defer cancel()
	var sent, failed, released error
	if len(m.sent) > 0 {
		sent = r.cfg.Store.MarkSent(ctx, m.sent)
	}
	if len(m.failures) > 0 {
		failed = r.cfg.Store.MarkFailed(ctx, token, m.failures)
	}
	if len(m.released) > 0 {
		released = r.cfg.Store.Release(ctx, token, m.released)
	}
	if err := errors.Join(sent, failed, released); err != nil {
		r.cfg.Observer.StoreFailed(err)
	}
}

// isUnavailable reports whether a failure is the broker's and not the event's.
func isUnavailable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrClosed)
}

// isFinal reports whether an event is given up after this failed attempt.
func isFinal(err error, attempt int) bool {
	return !isUnavailable(err) && (errors.Is(err, ErrRefused) || attempt >= maxAttempts)
}
