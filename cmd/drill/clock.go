package main

import (
	"fmt"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/service/idgen"
)

// The clock from which an instance makes its ids is set by a file in a separate volume: the shop is built with a clock
// that reads the file, since libfaketime has no effect on a static program.
const (
	clockTag     = "seckill_clock" // build tag
	clockFile    = "/clock/set"
	clockOverlay = `services:
  shop-1: {environment: {SECKILL_CLOCK_FILE: ` + clockFile + `}, volumes: [/clock]}
  shop-2: {environment: {SECKILL_CLOCK_FILE: ` + clockFile + `}, volumes: [/clock]}
`
)

func clockDrills() []drill {
	return []drill{{
		name:        "clock-back",
		expectation: "The clock of an instance goes back by 3 ms again and again, by 2 s and by an hour, and is slow at a restart: the generator waits, counts on from the highest time used, or changes to the other worker id of its pair. No id is used twice.",
		risk:        "Snowflake ids are unique as long as no clock goes back: NTP corrects it, a machine is moved, somebody sets it.",
		locks:       allLocks, duration: 60 * time.Second, shortDuration: 40 * time.Second,
		needs:  needs{tags: clockTag, overlay: clockOverlay},
		script: clockBack,
	}}
}

func clockBack(c *drillCase) {
	target, _ := c.pickInstance()
	for _, s := range []struct {
		set, text string
		event     idgen.EventKind
	}{
		{"-3ms/10ms", "goes back by 3 ms, a hundred times a second", idgen.ClockWait},
		{"-2s", "goes back by 2 s", idgen.ClockAhead},
		{"-1h", "goes back by an hour", idgen.WorkerSwitched},
	} {
		events := fmt.Sprintf("seckill_ids_events_total{event=%q}", s.event)
		before := c.counts(events, target)[target]
		setClock(c, target, s.set, s.text)
		c.until(fmt.Sprintf("the id generator of %s reports %s", target, s.event), func() error {
			return expect(c.counts(events, target)[target] > before, "it has not")
		})
		c.note("found: the id generator of %s has noticed (%s)", target, s.event)
		c.placesMore(target)
		resetClock(c, target)
		c.placesMore(target)
	}
	slow := c.between(2*time.Minute, 50*time.Minute).Round(time.Second)
	restartSlow(c, target, c.stop, slow)
	restartSlow(c, target, c.kill, 2*slow)
	oldIDs(c, slow/2)
	resetClock(c, target)
	c.placesMore(target)
}

// restartSlow ends an instance and starts it with a slow clock.
func restartSlow(c *drillCase, target string, end func(...string), by time.Duration) {
	end(target)
	setClock(c, target, (-by).String(), fmt.Sprintf("is %s slow", by))
	c.start(target)
	c.ready(target)
	c.placesMore(target)
}

func setClock(c *drillCase, instance, set, text string) {
	c.repairs["clock of "+instance] = func() { resetClock(c, instance) }
	check(c.Write(c.ctx, instance, clockFile, set+"\n"))
	c.event(fault, "the clock of %s %s", instance, text)
}

func resetClock(c *drillCase, instance string) {
	check(c.Write(c.ctx, instance, clockFile, "0s\n"))
	delete(c.repairs, "clock of "+instance)
	c.event(healed, "the clock of %s is right again", instance)
}

// oldIDs asserts that orders have the slow clock's time in their ids.
func oldIDs(c *drillCase, by time.Duration) {
	layout := idgen.DefaultLayout()
	n := must(c.number(c.ctx, `SELECT COUNT(*) FROM voucher_order WHERE UNIX_TIMESTAMP(created_at) * 1000 - ((id >> ?) + ?) > ?`,
		layout.DataCenterBits+layout.WorkerBits+layout.SequenceBits, layout.Epoch.UnixMilli(), by.Milliseconds()))
	c.assert(n > 0, "the ids of %d orders were made by a clock that is more than %s slow", n, cli.Short(by))
}
