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

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// buyers arrive at a steady rate for as long as a drill lasts, whatever the shop does, and afterwards buy what is left as
// fast as possible. All their answers go to the claims and to a journal.
type buyers struct {
	buyersOptions
	client   *loadtest.Client
	recorder *loadtest.Recorder
	claims   *verdict.Claims
	log      *loadtest.Journal
	file     *os.File
	timeline *timeline
	voucher  loadtest.Voucher
	senders  *loadtest.Buyers

	arrivals      atomic.Int64 // of the steady load
	repeated      atomic.Int64 // requests that were sent once more
	repeatsFailed atomic.Int64 // of them, those that failed again
	cancel        context.CancelFunc
	running       sync.WaitGroup
}

// buyersOptions say how much is sold, and how fast.
type buyersOptions struct {
	settings
	url     string
	journal string             // path
	token   func(int64) string // of a user
	repeat  bool               // buyers whose request failed send it once more
	meter   *meter
}

const (
	maxClients     = 2000 // that wait for an answer at the same time
	duplicateShare = 0.1  // of the buyers, who send their request twice at once
	payShare       = 0.1  // of those who got an order; each payment has its own transaction, orders share theirs
	cancelShare    = 0.02
	maxRate        = 250              // buyers a second, unless --rate is given: what two cores do beside everything else
	sendTimeout    = 18 * time.Second // longer than shop and gateway take
	paySeconds     = 3600
	firstBuyer     = 1_000
	maxUsers       = 1_000_000 // more than there are arrivals, so that nobody comes twice
	userRanges     = 1_000     // the seed chooses one of them
)

// newBuyers puts a voucher on sale. Close it.
func newBuyers(o buyersOptions) (*buyers, error) {
	b := &buyers{buyersOptions: o, claims: verdict.NewClaims()}
	var err error
	if b.client, err = loadtest.NewClient(o.url, loadtest.ClientOptions{Timeout: sendTimeout, Token: o.token}); err != nil {
		return nil, err
	}
	if b.file, err = os.Create(o.journal); err != nil {
		return nil, err
	}
	b.log = loadtest.NewJournal(b.file)
	if b.voucher, err = b.createVoucher("Drill", o.units); err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.recorder = loadtest.NewRecorder(b.record)
	b.senders = &loadtest.Buyers{
		Client: b.client, Recorder: b.recorder, Voucher: b.voucher.ID, Users: maxUsers,
		FirstUser: firstBuyer + maxUsers*(((o.seed%userRanges)+userRanges)%userRanges),
		Copies:    2, CopyShare: duplicateShare, Name: loadtest.NewName(),
	}
	return b, nil
}

// createVoucher puts a voucher on sale. If the answer is lost and it tries again, nobody buys the first voucher.
func (b *buyers) createVoucher(title string, units int64) (v loadtest.Voucher, err error) {
	now := time.Now()
	for range 5 {
		if v, err = b.client.CreateVoucher(cli.Admin, loadtest.NewVoucher{
			Title: title, PriceCents: 4900, Stock: units, UserLimit: 1, PaySeconds: paySeconds,
			StartsAt: now.Add(-time.Hour), EndsAt: now.Add(24 * time.Hour),
		}); err == nil {
			break
		}
	}
	return v, err
}

func (b *buyers) record(e *loadtest.Entry) {
	b.meter.add(e)
	b.log.Write(e)
	b.claims.Add(e)
}

// start lets buyers arrive until stop.
func (b *buyers) start(ctx context.Context, t *timeline) {
	b.timeline = t
	ctx, b.cancel = context.WithCancel(ctx)
	load := loadtest.Load{Clients: maxClients, Rate: b.rate, Duration: 24 * time.Hour}
	b.running.Go(func() {
		_ = load.Run(ctx, b.arrive, func(a loadtest.Arrival) { b.recorder.Drop(a.Due) }) // fails only if load is invalid
	})
	b.running.Go(func() { b.restock(ctx) })
}

// arrive is one buyer, a little late by the seed, since people do not come at fixed intervals.
func (b *buyers) arrive(a loadtest.Arrival) {
	b.arrivals.Add(1)
	chance := rand.New(rand.NewPCG(uint64(b.seed), uint64(a.N))) //nolint:gosec // it has to be repeatable
	late := time.Duration(chance.Float64() * 2 / b.rate * float64(time.Second))
	time.Sleep(late)
	a.Due = a.Due.Add(late)
	answer := b.buy(a)
	if b.repeat && failed(answer.Outcome) {
		b.repeated.Add(1)
		answer = b.senders.Buy(loadtest.Arrival{N: a.N})
		if failed(answer.Outcome) && !(b.short && turnedAway(answer.Outcome)) { // a busy machine may be busy twice
			b.repeatsFailed.Add(1)
		}
	}
	if answer.Outcome != loadtest.Placed {
		return
	}
	switch share := chance.Float64(); {
	case share < payShare:
		b.senders.Pay(b.senders.Buyer(a.N), answer.Order)
	case share < payShare+cancelShare:
		b.senders.Cancel(b.senders.Buyer(a.N), answer.Order)
	}
}

// buy asks for a unit, and again while the shop says that another copy of the request is in progress: the gateway may have
// sent that copy to an instance that has died since, and its order may exist.
func (b *buyers) buy(a loadtest.Arrival) loadtest.Answer {
	const pause, tries = 250 * time.Millisecond, 80 // longer than the lock of a dead instance lasts
	answer := b.senders.Buy(a)
	for n := 0; answer.Outcome == "in-progress" && n < tries; n++ {
		time.Sleep(pause)
		answer = b.senders.Buy(loadtest.Arrival{N: a.N})
	}
	return answer
}

// failed reports whether a buyer got neither an order nor a refusal.
func failed(o loadtest.Outcome) bool {
	return o.Class() == loadtest.Unknown || o.Class() == loadtest.Failed || turnedAway(o)
}

// restock adds units when few are left: a shop that is sold out cannot show that it has recovered.
func (b *buyers) restock(ctx context.Context) {
	for n := 1; wait(ctx, time.Second); {
		v, err := b.client.Voucher(b.voucher.ID)
		if err != nil || v.Stock > b.units/5 {
			continue // an error is expected during faults
		}
		if _, err := b.client.AddStock(cli.Admin, v.ID, b.units/2, fmt.Sprintf("restock-%d", n)); err != nil {
			continue // repeating the request adds nothing twice
		}
		n++
		b.timeline.note("%d more units on sale, since the drill takes longer than planned", b.units/2)
	}
}

// stop ends the steady load and waits for requests under way.
func (b *buyers) stop() {
	b.cancel()
	b.running.Wait()
}

// settle repeats requests of unknown outcome until it is known.
func (b *buyers) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	loadtest.Settle(ctx, b.client, loadtest.NewRecorder(b.record), b.recorder.TakeUnknown()) // the claims have the result
}

// sellOut sells what is left to more buyers than there are units, until no unit is left. If units remain after several
// rounds, the verdict will say so.
func (b *buyers) sellOut(ctx context.Context) error {
	const clients, rounds = 128, 5
	for round := 0; ; round++ {
		if err := b.readVoucher(ctx); err != nil {
			return err
		}
		if b.voucher.Stock == 0 || round == rounds {
			return nil
		}
		n := b.voucher.Stock + b.voucher.Stock/20 + 20
		first := b.arrivals.Add(n) - n
		load := loadtest.Load{Clients: clients, Arrivals: n}
		_ = load.Run(ctx, func(a loadtest.Arrival) { // fails only if load is invalid
			a.N += first + maxUsers/2
			b.buy(a)
		}, nil)
		b.settle(ctx)
	}
}

// readVoucher reads the voucher, and tries again on errors.
func (b *buyers) readVoucher(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		v, err := b.client.Voucher(b.voucher.ID)
		if err == nil {
			b.voucher = v
			return nil
		}
		if !wait(ctx, pollInterval) {
			return err
		}
	}
}

func (b *buyers) close() error {
	b.client.Close()
	return errors.Join(b.log.Flush(), b.file.Close())
}
