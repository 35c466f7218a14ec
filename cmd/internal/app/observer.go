package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"seckill/handler/consumer"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
	"seckill/service/outbox"
)

// observer counts and logs what the parts of the shop report: it is the Observer of each of them.
type observer struct {
	*metrics
	log *slog.Logger

	brokerAway, idsAway atomic.Bool // as reported last
}

var (
	_ service.Observer = (*observer)(nil)
	_ lock.Observer    = (*observer)(nil)
	_ idgen.Observer   = (*observer)(nil)
	_ outbox.Observer  = (*observer)(nil)

	_ consumer.Observer = (*observer)(nil)
)

// Request counts an answered HTTP request.
func (o *observer) Request(method, route string, status int, took time.Duration) {
	if route == "" {
		method, route = "any", "unmatched"
	}
	o.requests(method, route, strconv.Itoa(status)).Inc()
	o.httpDuration.WithLabelValues(method, route).Observe(took.Seconds())
}

// Answered implements service.Observer.
func (o *observer) Answered(code service.Code, took time.Duration) {
	switch {
	case code == "":
		code = service.CodePlaced
	case !slices.Contains(orderOutcomes, code):
		code = service.CodeInternal
	}
	o.orders.WithLabelValues(string(code)).Inc()
	o.orderDuration.WithLabelValues(string(code)).Observe(took.Seconds())
}

// Committed implements service.Observer.
func (o *observer) Committed(orders int, took time.Duration) {
	o.batchOrders.Observe(float64(orders))
	o.commitDuration.Observe(took.Seconds())
}

// Waiting implements service.Observer.
func (o *observer) Waiting(orders int) { o.waiting.Set(float64(orders)) }

// Expired implements service.Observer.
func (o *observer) Expired(orders int) { o.expired.Add(float64(orders)) }

// Locked implements lock.Observer.
func (o *observer) Locked(outcome lock.Outcome, took time.Duration) {
	o.locks.WithLabelValues(outcome.String()).Inc()
	o.lockDuration.WithLabelValues(outcome.String()).Observe(took.Seconds())
}

// BreakerChanged implements lock.Observer.
func (o *observer) BreakerChanged(open bool, cause error) {
	o.setBreaker("lock", open)
	if open {
		o.log.Warn("the lock's servers are unavailable; the shop goes on with the database alone", "error", cause)
	} else {
		o.log.Info("the lock's servers are back")
	}
}

func (o *observer) setBreaker(name string, open bool) {
	if open {
		o.breakerOpen.WithLabelValues(name).Set(1)
		o.breakerOpened.WithLabelValues(name).Inc()
	} else {
		o.breakerOpen.WithLabelValues(name).Set(0)
	}
}

// IDEvent implements idgen.Observer. It logs a failure once, not each retry.
func (o *observer) IDEvent(e idgen.Event) {
	o.idEvents.WithLabelValues(e.Kind.String()).Inc()
	switch e.Kind {
	case idgen.LeaseRenewed, idgen.SegmentLoaded:
		if o.setIDsAway(false) {
			o.log.Info("order ids: their store is back")
		}
	case idgen.LeaseAcquired:
		o.setIDsAway(false)
		o.log.Info("order ids: leased a worker id", "worker", e.Worker)
	case idgen.LeaseFailed, idgen.SegmentFailed:
		if errors.Is(e.Err, context.Canceled) {
			return // the generator is being closed; a timeout is another error
		}
		if o.setIDsAway(true) {
			o.log.Error("order ids: their store is unavailable; loaded ids are used up meanwhile", "error", e.Err)
		}
	case idgen.LeaseLost:
		o.log.Error("order ids: lost the worker id; no orders until another is leased", "error", e.Err)
	case idgen.WorkerSwitched:
		o.log.Warn("order ids: switched to the other worker id of the pair", "worker", e.Worker, "ahead", e.Step)
	case idgen.ClockWait, idgen.ClockAhead:
		o.idsClockStep.Set(e.Step.Seconds())
		o.log.Warn("order ids: the clock went back", "event", e.Kind.String(), "by", e.Step)
	}
}

// setIDsAway reports whether this is a change.
func (o *observer) setIDsAway(away bool) bool {
	changed := o.idsAway.Swap(away) != away
	if changed && away {
		o.idsStoreAway.Set(1)
	} else if changed {
		o.idsStoreAway.Set(0)
	}
	return changed
}

// Published implements outbox.Observer. The labels differ from the fields of outbox.Outcome: refused is GivenUp, unknown is
// Retry, away is Unavailable. The live board shows them as given_up (refused) and unsent (unknown and away).
func (o *observer) Published(outcome outbox.Outcome, took time.Duration) {
	o.outboxHanded.WithLabelValues("sent").Add(float64(outcome.Sent))
	o.outboxHanded.WithLabelValues("refused").Add(float64(outcome.GivenUp))
	o.outboxHanded.WithLabelValues("unknown").Add(float64(outcome.Retry))
	o.outboxHanded.WithLabelValues("away").Add(float64(outcome.Unavailable))
	o.outboxBatch.Observe(float64(outcome.Sent + outcome.GivenUp + outcome.Retry + outcome.Unavailable))
	o.publishDuration.Observe(took.Seconds())
}

// Sent implements outbox.Observer.
func (o *observer) Sent(_ outbox.Event, age time.Duration) { o.outboxAge.Observe(age.Seconds()) }

// GaveUp implements outbox.Observer.
func (o *observer) GaveUp(e outbox.Event, err error) {
	o.log.Error("gave up an event; seckill outbox retry sends it again", "event", e.ID, "type", e.Type, "order", e.Key, "error", err)
}

// Paused implements outbox.Observer. It may come again without a change.
func (o *observer) Paused(d time.Duration) {
	away := d > 0
	if o.brokerAway.Swap(away) == away {
		return
	}
	o.setBreaker("broker", away)
	if away {
		o.log.Warn("the broker is unavailable; events wait in the outbox")
	} else {
		o.log.Info("the broker is back")
	}
}

// StoreFailed implements outbox.Observer.
func (o *observer) StoreFailed(err error) {
	o.outboxFailures.Inc()
	o.log.Warn("the relay cannot reach the database; it tries again", "error", err)
}

// Checked implements outbox.Observer.
func (o *observer) Checked(h outbox.Health) {
	o.outboxEvents.WithLabelValues("stale").Set(float64(h.Stale))
}

// Consumed implements consumer.Observer.
func (o *observer) Consumed(group string, result consumer.Result, took time.Duration) {
	o.consumed.WithLabelValues(group, string(result)).Inc()
	o.consumeDuration.WithLabelValues(group).Observe(took.Seconds())
}
