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

// trial is the result of one shop.
type trial struct {
	combination
	Round int `json:"round"`

	// Orders at full rate.
	Orders          int64            `json:"orders"`
	OrdersPerSecond float64          `json:"orders_per_second"`
	Accepted        loadtest.Latency `json:"accepted"`
	Transactions    float64          `json:"transactions_per_order"`
	Commands        float64          `json:"redis_commands_per_order"` // including those inside of scripts
	Scripts         float64          `json:"redis_scripts_per_order"`  // requests to Redis that run a script
	Timeline        []loadtest.Slot  `json:"timeline"`

	// The sale that sells out.
	Refused   loadtest.Latency `json:"refused"`
	Stock     int64            `json:"stock"`
	Sold      int64            `json:"sold"`
	Undersold int64            `json:"undersold"`

	// Both.
	Oversold   int64    `json:"oversold"`
	Duplicates int64    `json:"duplicates"`
	Unknown    int64    `json:"unknown"` // outcomes that were never resolved
	Broken     []string `json:"broken,omitempty"`
	Warnings   []string `json:"warnings,omitempty"` // from the shop's log
	Shop       usage    `json:"shop"`
}

// run starts a shop on an empty database, sells, ends the shop and checks everything.
func (b *bench) run(ctx context.Context, c combination) (t trial, err error) {
	db, err := newTempDatabase(ctx, &b.cmd.Servers)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, db.drop(ctx)) }()
	if db.admin != nil {
		if b.measuredOn.Database, err = describeDatabase(ctx, db.admin); err != nil {
			return t, err
		}
	}
	shop, err := startShop(ctx, b.program, b.environment(c, db))
	if err != nil {
		return t, err
	}
	t.combination = c
	s := &runningTrial{bench: b, shop: shop, db: db, trial: &t}
	err = s.sell(ctx)
	err = errors.Join(err, shop.close())
	t.Warnings, t.Shop = shop.warnings, shop.usage()
	if err != nil {
		return t, err
	}
	return t, s.check(ctx)
}

// runningTrial is a trial whose shop is up.
type runningTrial struct {
	*bench
	shop   *childShop
	db     *tempDatabase
	trial  *trial
	client *loadtest.Client
	small  loadtest.Voucher // the voucher that sells out

	mu      sync.Mutex
	entries []loadtest.Entry // checked after the load, so that the check does not slow it down
}

const (
	warmUp         = 500 * time.Millisecond // of the connections and caches of a new shop
	unlimitedStock = 10_000_000             // more than a trial can sell; the most that a voucher may have
	buyersPerUnit  = 5                      // of the sale that sells out
)

// sell warms the shop up, places orders at full rate, and sells a small voucher out.
func (s *runningTrial) sell(ctx context.Context) (err error) {
	if s.client, err = loadtest.NewClient(s.shop.url, loadtest.ClientOptions{Token: s.tokens.Of}); err != nil {
		return err
	}
	defer s.client.Close()
	warm, err := s.createVoucher("Warm-up", unlimitedStock)
	if err != nil {
		return err
	}
	if _, err := s.buy(ctx, warm, loadtest.Load{Clients: s.cmd.Clients, Duration: warmUp}, unlimitedStock, 1); err != nil {
		return err
	}
	if err := s.fullRate(ctx); err != nil {
		return err
	}
	return s.sellOut(ctx)
}

func (s *runningTrial) createVoucher(title string, stock int64) (loadtest.Voucher, error) {
	now := time.Now()
	return s.client.CreateVoucher(cli.Admin, loadtest.NewVoucher{
		Title: title, PriceCents: 4900, Stock: stock, UserLimit: 1, PaySeconds: 3600,
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(24 * time.Hour),
	})
}

// buy sends the load, and resolves unknown outcomes.
func (s *runningTrial) buy(ctx context.Context, v loadtest.Voucher, load loadtest.Load, users int64, copies int) (loadtest.Report, error) {
	recorder := loadtest.NewRecorder(s.record)
	buyers := &loadtest.Buyers{
		Client: s.client, Recorder: recorder, Voucher: v.ID, FirstUser: cli.FirstBuyer, Users: users, Copies: copies, CopyShare: 1,
		Name: loadtest.NewName(),
	}
	err := buyers.Run(ctx, load, func(a loadtest.Arrival) { buyers.Buy(a) })
	report := recorder.Report()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return report, err
	}
	buyers.Settle(ctx, time.Minute)
	return report, nil
}

func (s *runningTrial) record(e *loadtest.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, *e)
}

// fullRate places orders as fast as the shop answers. Each order has another user.
func (s *runningTrial) fullRate(ctx context.Context) error {
	voucher, err := s.createVoucher("Full rate", unlimitedStock)
	if err != nil {
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
	report, err := s.buy(ctx, voucher, load, unlimitedStock, 1)
	if err != nil {
		return err
	}
	after, err := readWork(ctx, counters)
	if err != nil {
		return err
	}
	t := s.trial
	t.Orders = report.Count(loadtest.OpPlace, loadtest.Placed)
	if t.Orders == 0 {
		return fmt.Errorf("no order was placed; the answers were %v", report.Outcomes)
	}
	orders := float64(t.Orders)
	t.OrdersPerSecond, t.Accepted, t.Timeline = orders/report.Elapsed.Seconds(), report.Accepted, report.Timeline
	t.Transactions = float64(after.Transactions-before.Transactions) / orders
	t.Commands = float64(after.Commands-before.Commands) / orders
	t.Scripts = float64(after.Scripts-before.Scripts) / orders
	return nil
}

// counters returns the counters of the servers that the trial uses.
func (s *runningTrial) counters(ctx context.Context) []counter {
	var commits counter
	if s.db.admin == nil {
		commits, s.measuredOn.Counted = countBatches(s.shop.url)
	} else {
		commits, s.measuredOn.Counted = countCommits(ctx, s.db.admin, s.db.name)
	}
	counters := []counter{commits}
	for _, client := range s.redis[s.trial.Lock] {
		counters = append(counters, countCommands(client))
	}
	return counters
}

// sellOut sells a small voucher out. There are more buyers than units, and each sends its request twice at once.
func (s *runningTrial) sellOut(ctx context.Context) (err error) {
	if s.small, err = s.createVoucher("Sold out", s.cmd.SellOut); err != nil {
		return err
	}
	users := buyersPerUnit * s.cmd.SellOut
	report, err := s.buy(ctx, s.small, loadtest.Load{Clients: s.cmd.Clients, Arrivals: users}, users, 2)
	s.trial.Stock, s.trial.Refused = s.cmd.SellOut, report.Refused
	return err
}

// check compares the clients' answers with the database, and audits the database.
func (s *runningTrial) check(ctx context.Context) error {
	db, err := s.db.open(ctx, s.log)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it was only read
	claims := verdict.NewClaims()
	for i := range s.entries {
		claims.Add(&s.entries[i])
	}
	v, err := verdict.Check(ctx, db, claims, verdict.Options{Complete: true})
	if err != nil {
		return err
	}
	t := s.trial
	t.Sold = v.Sale(s.small.ID).Live
	v.RequireSold(max(0, t.Stock-t.Sold))
	t.Oversold, t.Undersold, t.Duplicates, t.Unknown = v.Oversold, v.Undersold, v.Duplicates, v.Unresolved
	t.Broken = v.Broken()
	return nil
}
