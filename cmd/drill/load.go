package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// load sends buyers at a steady rate through the gateway for as long as a drill lasts, whatever the shop does, and
// afterwards sells what is left as fast as it goes. All that the buyers are told is written down.
type load struct {
	client     *loadtest.Client
	recorder   *loadtest.Recorder
	claims     *verdict.Claims
	journal    *loadtest.Journal
	file       *os.File
	meter      *meter
	timeline   *timeline
	voucher    loadtest.Voucher
	buyers     *loadtest.Buyers
	rate       float64
	units      int64
	seed       int64
	repeat     bool
	busyIsFine bool // a shop that says twice that it can't serve now has not failed its buyer: the machine is busy
	token      func(int64) string

	arrivals atomic.Int64 // of the steady load
	repeated atomic.Int64 // requests that were sent once more, because they had failed or their outcome was unknown
	again    atomic.Int64 // of them, those that failed again
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

const (
	clients     = 2000 // that wait for an answer at the same time, at most
	impatient   = 0.1  // the share of those who send their request twice at once
	payShare    = 0.1  // of those who got an order; each payment costs the database a transaction, where orders share theirs
	cancelShare = 0.02
	mostRate    = 250              // buyers a second, unless told otherwise: what two cores do beside everything else
	sendTimeout = 18 * time.Second // more than the shop and the gateway take
	paySeconds  = 3600
	firstUser   = 1_000
	manyUsers   = 1_000_000 // more than there are arrivals: nobody comes twice
	userRanges  = 1_000     // the seed chooses who buys
)

// loadOptions say how much is sold, and how fast.
type loadOptions struct {
	url        string
	journal    string // path
	token      func(int64) string
	units      int64
	rate       float64
	seed       int64
	repeat     bool
	busyIsFine bool
	meter      *meter
}

// newLoad puts a voucher on sale. Close it.
func newLoad(o loadOptions) (*load, error) {
	l := &load{claims: verdict.NewClaims(), meter: o.meter, rate: o.rate, units: o.units, seed: o.seed, repeat: o.repeat, busyIsFine: o.busyIsFine, token: o.token}
	var err error
	if l.client, err = loadtest.NewClient(o.url, loadtest.ClientOptions{Timeout: sendTimeout, Token: o.token}); err != nil {
		return nil, err
	}
	if l.file, err = os.Create(o.journal); err != nil {
		return nil, err
	}
	l.journal = loadtest.NewJournal(l.file)
	if l.voucher, err = l.putOnSale("Drill", o.units); err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.recorder = loadtest.NewRecorder(l.record)
	l.buyers = &loadtest.Buyers{
		Client: l.client, Recorder: l.recorder, Voucher: l.voucher.ID, Users: manyUsers,
		FirstUser: firstUser + manyUsers*(((o.seed%userRanges)+userRanges)%userRanges),
		Copies:    2, CopyShare: impatient, Name: loadtest.NewName(),
	}
	return l, nil
}

// putOnSale creates a voucher. One whose answer gets lost does no harm: nobody will buy it.
func (l *load) putOnSale(title string, units int64) (v loadtest.Voucher, err error) {
	now := time.Now()
	for range 5 {
		if v, err = l.client.CreateVoucher(adminUser, loadtest.NewVoucher{
			Title: title, PriceCents: 4900, Stock: units, UserLimit: 1, PaySeconds: paySeconds,
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour),
		}); err == nil {
			break
		}
	}
	return v, err
}

// record takes down a request and its answer.
func (l *load) record(e *loadtest.Entry) {
	l.meter.add(e)
	l.journal.Write(e)
	l.claims.Add(e)
}

// start lets the buyers come until stop. What they find is told to the timeline.
func (l *load) start(ctx context.Context, t *timeline) {
	l.timeline = t
	ctx, l.cancel = context.WithCancel(ctx)
	send := loadtest.Load{Clients: clients, Rate: l.rate, Duration: 24 * time.Hour}
	l.running.Go(func() {
		_ = send.Run(ctx, l.arrive, func(a loadtest.Arrival) { l.recorder.Drop(a.Due) }) // its numbers are ours, and valid
	})
	l.running.Go(func() { l.restock(ctx) })
}

// arrive is one buyer, a little late as the seed says: people do not come in step.
func (l *load) arrive(a loadtest.Arrival) {
	l.arrivals.Add(1)
	chance := rand.New(rand.NewPCG(uint64(l.seed), uint64(a.N))) //nolint:gosec // chance that can be repeated
	late := time.Duration(chance.Float64() * 2 / l.rate * float64(time.Second))
	time.Sleep(late)
	a.Due = a.Due.Add(late)
	answer := l.buy(a)
	if l.repeat && failed(answer.Outcome) {
		l.repeated.Add(1)
		answer = l.buyers.Buy(loadtest.Arrival{N: a.N})
		if failed(answer.Outcome) && !(l.busyIsFine && turnedAway(answer.Outcome)) {
			l.again.Add(1)
		}
	}
	if answer.Outcome != loadtest.Placed {
		return
	}
	switch mind := chance.Float64(); {
	case mind < payShare:
		l.buyers.Pay(l.buyers.Buyer(a.N), answer.Order)
	case mind < payShare+cancelShare:
		l.buyers.Cancel(l.buyers.Buyer(a.N), answer.Order)
	}
}

// buy asks for a unit, and again for as long as the shop says that an earlier copy of the request is being served: that
// copy may be one that the gateway sent to an instance that has died since, and its order may stand.
func (l *load) buy(a loadtest.Arrival) loadtest.Answer {
	const pause, tries = 250 * time.Millisecond, 80 // more than the lock of the dead one lasts
	answer := l.buyers.Buy(a)
	for n := 0; answer.Outcome == "in-progress" && n < tries; n++ {
		time.Sleep(pause)
		answer = l.buyers.Buy(loadtest.Arrival{N: a.N})
	}
	return answer
}

// failed tells whether a buyer has got nothing for a request, no order and no refusal either.
func failed(o loadtest.Outcome) bool {
	return o.Class() == loadtest.Unknown || o.Class() == loadtest.Failed || turnedAway(o)
}

// restock puts more on sale when little is left: a shop that is sold out would not show that it has recovered.
func (l *load) restock(ctx context.Context) {
	for n := 1; wait(ctx, time.Second); {
		v, err := l.client.Voucher(l.voucher.ID)
		if err != nil || v.Stock > l.units/5 {
			continue // it is away at times, that is what this is about
		}
		if _, err := l.client.AddStock(adminUser, v.ID, l.units/2, fmt.Sprintf("restock-%d", n)); err != nil {
			continue // the same request again adds nothing twice
		}
		n++
		l.timeline.note("%d more units on sale: the drill takes longer than was thought", l.units/2)
	}
}

// stop ends the steady load, and waits for the requests that are under way.
func (l *load) stop() {
	if l.cancel != nil {
		l.cancel()
	}
	l.running.Wait()
}

// settle repeats what was left open until it is known.
func (l *load) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	loadtest.Settle(ctx, l.client, loadtest.NewRecorder(l.record), l.recorder.TakeUnknown()) // the book knows what came of it
}

// rush sells what is left, to more buyers than there are units. In the end there must be none, and each of those who
// were too late must have been told so.
func (l *load) rush(ctx context.Context) error {
	const many, rounds = 128, 5
	for round := 0; ; round++ {
		if err := l.look(ctx); err != nil {
			return err
		}
		if l.voucher.Stock == 0 || round == rounds { // in the latter case the ledger will say that units are left
			return nil
		}
		buyers := l.voucher.Stock + l.voucher.Stock/20 + 20
		first := l.arrivals.Add(buyers) - buyers
		send := loadtest.Load{Clients: many, Arrivals: buyers}
		_ = send.Run(ctx, func(a loadtest.Arrival) {
			a.N += first + manyUsers/2
			l.buy(a)
		}, nil)
		l.settle(ctx)
	}
}

// look reads the voucher. It is patient: what matters has been decided.
func (l *load) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		v, err := l.client.Voucher(l.voucher.ID)
		if err == nil {
			l.voucher = v
			return nil
		}
		if !wait(ctx, poll) {
			return err
		}
	}
}

// close gives back what the load holds.
func (l *load) close() error {
	l.client.Close()
	return errors.Join(l.journal.Flush(), l.file.Close())
}
