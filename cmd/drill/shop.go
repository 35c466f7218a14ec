package main

import (
	"fmt"
	"net/http"
	"time"

	"seckill/cmd/internal/cli"
)

// shop observes the shop during a drill: what its instances report, and whether it sells.
type shop struct {
	*steps
	*cluster
	meter *meter
}

// Metrics of an instance.
const (
	locksGranted = `seckill_locks_total{outcome="granted"}`
	ordersPlaced = `seckill_orders_total{outcome="placed"}`
)

// counts reads a metric of several instances.
func (s *shop) counts(metric string, instances ...string) map[string]float64 {
	n := map[string]float64{}
	for _, instance := range instances {
		n[instance] = must(s.metric(s.ctx, instance, metric))
	}
	return n
}

// granted counts the locks that each instance has been granted so far.
func (s *shop) granted() map[string]float64 { return s.counts(locksGranted, instances...) }

// placedBy counts the orders that each of the instances has placed since its start.
func (s *shop) placedBy(instances ...string) map[string]float64 {
	return s.counts(ordersPlaced, instances...)
}

// breaker returns an error unless a breaker of an instance is open (1) or closed (0), as wanted.
func (s *shop) breaker(instance, name string, want float64) error {
	value, err := s.metric(s.ctx, instance, fmt.Sprintf("seckill_breaker_open{breaker=%q}", name))
	if err != nil {
		return err
	}
	return expect(value == want, "%s: the breaker of the %s is %v", instance, name, value)
}

func (s *shop) lockBreakers(want float64) error {
	for _, instance := range instances {
		if err := s.breaker(instance, "lock", want); err != nil {
			return err
		}
	}
	return nil
}

// withoutLocks waits until both instances have opened the breaker of their lock.
func (s *shop) withoutLocks() {
	begin := time.Now()
	s.until("both instances go without their lock", func() error { return s.lockBreakers(1) })
	s.note("both instances have noticed and go on with the database alone, %s later", cli.Short(time.Since(begin)))
}

// withLocks waits until both instances are granted more locks than before.
func (s *shop) withLocks(before map[string]float64) {
	s.until("both instances are granted locks again", func() error {
		now := s.granted()
		for instance, n := range before {
			if now[instance] <= n {
				return fmt.Errorf("%s was granted none", instance)
			}
		}
		return s.lockBreakers(0)
	})
}

// readiness returns an error unless /readyz of an instance answers with the status.
func (s *shop) readiness(instance string, want int) error {
	status, _, err := s.get(s.ctx, instance, "/readyz")
	if err != nil {
		return err
	}
	return expect(status == want, "/readyz answers %d", status)
}

// ready waits until instances can serve.
func (s *shop) ready(instances ...string) {
	for _, instance := range instances {
		s.until(instance+" is ready", func() error { return s.readiness(instance, http.StatusOK) })
	}
}

// places waits until an instance has placed more than n orders since its start.
func (s *shop) places(instance string, n float64) {
	s.until(instance+" places orders", func() error {
		now := s.placedBy(instance)[instance]
		return expect(now > n, "%.0f so far", now)
	})
}

// placesMore waits until an instance has placed some more orders.
func (s *shop) placesMore(instance string) {
	const some = 20
	s.places(instance, s.placedBy(instance)[instance]+some)
	s.note("%s has placed some more orders", instance)
}

// sells waits until an order is accepted after a moment, and returns when that was.
func (s *shop) sells(since time.Time) (first time.Time) {
	s.until("orders are accepted", func() error {
		var ok bool
		first, ok = s.meter.acceptedAfter(since)
		return expect(ok, "none was accepted")
	})
	return first
}

// soldSince counts the orders since a moment. It waits for the first one.
func (s *shop) soldSince(from time.Time) int {
	s.sells(from)
	return s.meter.acceptedIn(from, time.Now())
}

// sellsNothing lets a fault last, and asserts that no request got an order that was sent a second after its beginning or
// later.
func (s *shop) sellsNothing(d time.Duration) {
	from := time.Now().Add(time.Second)
	s.sleep(d)
	now := time.Now()
	sold := s.meter.askedIn(from, now)
	s.assert(sold == 0, "no order was accepted in the last %s", cli.Short(now.Sub(from)))
}
