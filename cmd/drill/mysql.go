package main

import (
	"context"
	"time"
)

// databaseBack is how long it may take from the moment at which MySQL answers again to the first order.
const databaseBack = 10 * time.Second

func mysqlDrills() []drill {
	return []drill{
		{
			name:  "mysql-kill",
			shows: "MySQL is killed while it commits, and recovers from its logs: what was acknowledged is there, what was not is settled by asking again.",
			fears: "An answer that was lost: the order stands and its buyer was told that it failed, or the other way round.",
			locks: everyLock, span: 20 * time.Second, shortSpan: 15 * time.Second,
			do: mysqlKill,
		},
		{
			name:  "mysql-freeze",
			shows: "MySQL stops in the middle of everything and comes back 20 s later, with every connection still open.",
			fears: "No error, no answer: requests pile up until the shop dies of them, and what ran into a time-out was committed all the same.",
			locks: everyLock, span: 40 * time.Second, shortSpan: 20 * time.Second,
			do: mysqlFreeze,
		},
		{
			name:  "mysql-full",
			shows: "Reads go on and every write is refused, as by a full disk or a server that was demoted to a replica.",
			fears: "A shop that looks well and sells nothing, or takes orders that it cannot write down.",
			locks: everyLock, span: 20 * time.Second, shortSpan: 15 * time.Second,
			do: mysqlFull,
		},
	}
}

func mysqlKill(ctx context.Context, r *run) error {
	if err := r.kill(ctx, mysqlServer); err != nil {
		return err
	}
	if err := r.nothingSoldFor(ctx, r.between(2*time.Second, 4*time.Second)); err != nil {
		return err
	}
	if err := r.start(ctx, mysqlServer); err != nil {
		return err
	}
	return r.databaseAgain(ctx)
}

func mysqlFreeze(ctx context.Context, r *run) error {
	if err := r.pause(ctx, mysqlServer); err != nil {
		return err
	}
	frozen := 20 * time.Second
	if r.short {
		frozen = 6 * time.Second
	}
	if err := r.nothingSoldFor(ctx, frozen); err != nil {
		return err
	}
	if err := r.unpause(ctx, mysqlServer); err != nil {
		return err
	}
	return r.databaseAgain(ctx)
}

func mysqlFull(ctx context.Context, r *run) error {
	if err := r.readOnly(ctx, true); err != nil {
		return err
	}
	if err := r.nothingSoldFor(ctx, r.between(4*time.Second, 6*time.Second)); err != nil {
		return err
	}
	if err := r.readOnly(ctx, false); err != nil {
		return err
	}
	return r.databaseAgain(ctx)
}

// readOnly has MySQL refuse writes, or take them again.
func (r *run) readOnly(ctx context.Context, on bool) error {
	const what = "mysql takes writes"
	value := "OFF"
	if on {
		value = "ON"
		r.heals[what] = func(ctx context.Context) error { return r.readOnly(ctx, false) }
	}
	if _, err := r.root.ExecContext(ctx, "SET GLOBAL super_read_only = "+value); err != nil {
		return err
	}
	if on {
		r.event(fault, "mysql refuses every write")
		return nil
	}
	if _, err := r.root.ExecContext(ctx, "SET GLOBAL read_only = OFF"); err != nil { // the first has set it too
		return err
	}
	delete(r.heals, what)
	r.event(healed, "mysql takes writes again")
	return nil
}

// nothingSoldFor lets a fault last, and asserts that it took effect: of the requests that came a moment after it, none
// got an order.
func (r *run) nothingSoldFor(ctx context.Context, d time.Duration) error {
	from := time.Now().Add(time.Second)
	if err := r.let(ctx, d); err != nil {
		return err
	}
	now := time.Now()
	sold := r.load.meter.askedIn(from, now)
	return r.assert(sold == 0, "no order was accepted of the last %s", short(now.Sub(from)))
}

// databaseAgain waits until MySQL answers, and measures from there to the first order.
func (r *run) databaseAgain(ctx context.Context) error {
	begin := time.Now()
	if err := r.until(ctx, "MySQL answers", func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := r.number(ctx, "SELECT 1")
		return err == nil, err
	}); err != nil {
		return err
	}
	back := time.Now()
	r.note("MySQL answers, %s later", short(back.Sub(begin)))
	if err := r.soldAgain(ctx, back); err != nil {
		return err
	}
	first, _ := r.load.meter.acceptedAfter(back)
	r.measure("an order after MySQL was back", first.Sub(back), databaseBack)
	return nil
}

// placedSince counts the orders since a moment, of which there is at least one: on a busy machine it is waited for.
func (r *run) placedSince(ctx context.Context, from time.Time) (int, error) {
	err := r.soldAgain(ctx, from)
	return r.load.meter.acceptedIn(from, time.Now()), err
}

// soldAgain waits until an order is accepted.
func (r *run) soldAgain(ctx context.Context, since time.Time) error {
	return r.until(ctx, "orders are accepted", func(context.Context) (bool, error) {
		_, ok := r.load.meter.acceptedAfter(since)
		return ok, nil
	})
}
