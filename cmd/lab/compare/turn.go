package compare

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// turn is what one shop came to.
type turn struct {
	combination
	Round int `json:"round"`

	// Of placing at full rate.
	Orders          int64            `json:"orders"`
	OrdersPerSecond float64          `json:"orders_per_second"`
	Accepted        loadtest.Latency `json:"accepted"`
	Transactions    float64          `json:"transactions_per_order"`
	Commands        float64          `json:"redis_commands_per_order"` // those inside of scripts included
	Scripts         float64          `json:"redis_scripts_per_order"`  // requests to Redis that run one
	Timeline        []loadtest.Slot  `json:"timeline"`

	// Of selling out.
	Refused        loadtest.Latency `json:"refused"`
	RefusalsPerSec float64          `json:"refused_per_second"`
	Stock          int64            `json:"stock"`
	Sold           int64            `json:"sold"`
	Undersold      int64            `json:"undersold"`

	// Of both.
	Oversold   int64    `json:"oversold"`
	Duplicates int64    `json:"duplicates"`
	Unknown    int64    `json:"unknown"` // never settled
	Broken     []string `json:"broken,omitempty"`
	Warnings   []string `json:"warnings,omitempty"` // what the shop complained of
	Shop       usage    `json:"shop"`
}

// turn starts a shop, sells, ends it and audits what it leaves.
func (b *bench) turn(ctx context.Context, c combination) (t turn, err error) {
	place, err := newPlace(ctx, &b.cmd.Servers)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, place.remove(ctx)) }()
	shop, err := startShop(ctx, b.program, b.variables(c, place))
	if err != nil {
		return t, err
	}
	t.combination = c
	s := &selling{bench: b, shop: shop, place: place, turn: &t}
	err = s.sell(ctx)
	err = errors.Join(err, shop.close())
	t.Warnings, t.Shop = shop.warnings, shop.usage()
	if err != nil {
		return t, err
	}
	return t, s.audit(ctx)
}

// selling is a turn under way.
type selling struct {
	*bench
	shop   *childShop
	place  *place
	turn   *turn
	client *loadtest.Client

	mu      sync.Mutex
	entries []loadtest.Entry // put into the book afterwards, so that the load does not pay for it
	rush    loadtest.Voucher
	last    loadtest.Voucher
}

// hurry is how long the connections and caches of a new shop are warmed up.
const hurry = 500 * time.Millisecond

// plenty is more than can be sold in a turn; as much as a voucher may have.
const plenty = 10_000_000

func (s *selling) sell(ctx context.Context) (err error) {
	if s.client, err = loadtest.NewClient(s.shop.url, loadtest.ClientOptions{Token: s.tokens.Of}); err != nil {
		return err
	}
	defer s.client.Close()
	warm, err := s.voucher("Warming up", plenty)
	if err != nil {
		return err
	}
	if _, err := s.buy(ctx, warm, loadtest.Load{Clients: s.cmd.Clients, Duration: hurry}, plenty, 1); err != nil {
		return err
	}
	if err := s.fullRate(ctx); err != nil {
		return err
	}
	return s.sellOut(ctx)
}

func (s *selling) voucher(title string, stock int64) (loadtest.Voucher, error) {
	now := time.Now()
	return s.client.CreateVoucher(cli.Admin, loadtest.NewVoucher{
		Title: title, PriceCents: 4900, Stock: stock, UserLimit: 1, PaySeconds: 3600,
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(24 * time.Hour),
	})
}

// buy sends the load and settles what it left open.
func (s *selling) buy(ctx context.Context, v loadtest.Voucher, load loadtest.Load, users int64, copies int) (loadtest.Report, error) {
	r := loadtest.NewRecorder(s.take)
	buyers := &loadtest.Buyers{
		Client: s.client, Recorder: r, Voucher: v.ID, FirstUser: cli.FirstBuyer, Users: users, Copies: copies, CopyShare: 1, Name: loadtest.NewName(),
	}
	err := load.Run(ctx, func(a loadtest.Arrival) { buyers.Buy(a) }, nil)
	report := r.Report()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return report, err
	}
	if unknown := r.TakeUnknown(); len(unknown) > 0 {
		settling, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		loadtest.Settle(settling, s.client, loadtest.NewRecorder(s.take), unknown)
	}
	return report, nil
}

func (s *selling) take(e *loadtest.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, *e)
}

// fullRate lets buyers, each a user of their own, place orders as fast as they are answered.
func (s *selling) fullRate(ctx context.Context) (err error) {
	if s.rush, err = s.voucher("Full rate", plenty); err != nil {
		return err
	}
	counters := s.counters(ctx)
	before, err := readWork(ctx, counters)
	if err != nil {
		return err
	}
	load := loadtest.Load{Clients: s.cmd.Clients, Duration: s.cmd.Duration}
	if s.cmd.Orders > 0 {
		load.Duration, load.Arrivals = 0, s.cmd.Orders
	}
	report, err := s.buy(ctx, s.rush, load, plenty, 1)
	if err != nil {
		return err
	}
	after, err := readWork(ctx, counters)
	if err != nil {
		return err
	}
	t, done := s.turn, after.minus(before)
	t.Orders = report.Count(loadtest.OpPlace, loadtest.Placed)
	if t.Orders == 0 {
		return fmt.Errorf("no order was placed; the first kind of answer was %v", report.Outcomes)
	}
	t.OrdersPerSecond, t.Accepted, t.Timeline = float64(t.Orders)/report.Elapsed.Seconds(), report.Accepted, report.Timeline
	orders := float64(t.Orders)
	t.Transactions, t.Commands, t.Scripts = float64(done.Transactions)/orders, float64(done.Commands)/orders, float64(done.Scripts)/orders
	return nil
}

// counters returns those that the turn's servers have, and says in the machine what they count.
func (s *selling) counters(ctx context.Context) []counter {
	var commits counter
	if s.place.admin == nil {
		commits, s.machine.Counted = countBatches(s.shop.url)
	} else {
		commits, s.machine.Counted = countCommits(ctx, s.place.admin, s.place.database)
		if text, err := describeDatabase(ctx, s.place.admin); err == nil {
			s.machine.Database = text
		}
	}
	counters := []counter{commits}
	for _, client := range s.redis[s.turn.Lock] {
		counters = append(counters, countCommands(client))
	}
	return counters
}

// crowd is how many buyers come for each unit of the last sale.
const crowd = 5

// sellOut sells a small voucher out to a crowd that sends every request twice.
func (s *selling) sellOut(ctx context.Context) (err error) {
	if s.last, err = s.voucher("Sold out", s.cmd.SellOut); err != nil {
		return err
	}
	users := crowd * s.cmd.SellOut
	report, err := s.buy(ctx, s.last, loadtest.Load{Clients: s.cmd.Clients, Arrivals: users}, users, 2)
	if err != nil {
		return err
	}
	t := s.turn
	t.Stock, t.Refused = s.cmd.SellOut, report.Refused
	t.RefusalsPerSec = float64(report.Refused.Count) / report.Elapsed.Seconds()
	return nil
}

// audit compares what the clients were told with the database, and audits the database.
func (s *selling) audit(ctx context.Context) error {
	db, err := s.place.open(ctx, s.log)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it was only read
	claims := verdict.NewClaims()
	for i := range s.entries {
		claims.Add(&s.entries[i])
	}
	s.entries = nil
	v, err := verdict.Check(ctx, db, claims, verdict.Options{Complete: true})
	if err != nil {
		return err
	}
	t := s.turn
	t.Sold = v.Sale(s.last.ID).Live
	v.RequireSold(max(0, t.Stock-t.Sold))
	t.Oversold, t.Undersold, t.Duplicates, t.Unknown = v.Oversold, v.Undersold, v.Duplicates, v.Unresolved
	t.Broken = v.Broken()
	return nil
}
