package outbox

import (
	"context"
	"errors"
	"time"
)

// send publishes a claimed batch and marks each event by its verdict.
func (r *Relay) send(ctx context.Context, batch Batch) Outcome {
	start := time.Now()
	results := r.publish(ctx, batch.Events)
	took := time.Since(start)
	v := r.judge(batch, results)
	r.breaker.learn(v.outcome)
	r.settle(ctx, batch, v)
	r.report(batch, results, v, took)
	return v.outcome
}

// publish outlives ctx by StopTimeout: what is on its way to the broker should get its confirmation and its mark, since
// otherwise it would be sent twice.
func (r *Relay) publish(ctx context.Context, events []Event) []error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.PublishTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(r.cfg.StopTimeout):
			cancel()
		case <-call.Done():
		}
	})
	defer stop()
	return r.cfg.Broker.Publish(call, events)
}

// verdicts are the events of a batch by what has to be written about them.
type verdicts struct {
	outcome  Outcome
	sent     []int64
	away     []int64
	failures []Failure
	gaveUp   int
}

func (r *Relay) judge(batch Batch, results []error) verdicts {
	var v verdicts
	for i, e := range batch.Events {
		err := results[i]
		switch {
		case err == nil:
			v.sent = append(v.sent, e.ID)
		case away(err):
			v.away = append(v.away, e.ID)
		default:
			attempt := batch.Attempts[i] + 1
			f := Failure{ID: e.ID, GiveUp: r.last(attempt, err)}
			if f.GiveUp {
				v.gaveUp++
			} else {
				f.Delay = r.cfg.Retry.delay(attempt)
			}
			v.failures = append(v.failures, f)
		}
	}
	v.outcome = Outcome{
		Sent: len(v.sent), Away: len(v.away), Refused: v.gaveUp, Unknown: len(v.failures) - v.gaveUp,
	}
	return v
}

// settle writes the verdicts, also when ctx has ended. What cannot be written is due again when the lease ends.
func (r *Relay) settle(ctx context.Context, batch Batch, v verdicts) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.SettleTimeout)
	defer cancel()
	var sent, failed, released error
	if len(v.sent) > 0 {
		sent = r.cfg.Store.Sent(ctx, v.sent)
	}
	if len(v.failures) > 0 {
		failed = r.cfg.Store.Failed(ctx, batch.Token, v.failures)
	}
	if len(v.away) > 0 {
		released = r.cfg.Store.Release(ctx, batch.Token, v.away, 0)
	}
	if err := errors.Join(sent, failed, released); err != nil {
		r.cfg.Observer.Failed(err)
	}
}

func (r *Relay) report(batch Batch, results []error, v verdicts, took time.Duration) {
	r.cfg.Observer.Published(v.outcome, took)
	for i, e := range batch.Events {
		switch {
		case results[i] == nil:
			r.cfg.Observer.Sent(e, time.Since(e.CreatedAt))
		case r.last(batch.Attempts[i]+1, results[i]):
			r.cfg.Observer.GaveUp(e, results[i])
		}
	}
}

// last tells whether a failed attempt is an event's last one.
func (r *Relay) last(attempt int, err error) bool {
	return !away(err) && (errors.Is(err, ErrRefused) || attempt >= r.cfg.Retry.MaxAttempts)
}

// away tells whether a failure is the broker's and not the event's.
func away(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrClosed) }
