package load

import (
	"context"
	"errors"
	"os"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// load is one run of a scenario.
type load struct {
	cmd      *Command
	scenario loadtest.Scenario
	out      *cli.Output
	users    *users
	client   *loadtest.Client
	claims   *verdict.Claims
	file     *os.File // nil: no journal
	journal  *loadtest.Journal
}

// newLoad makes everything ready; close it.
func newLoad(cmd *Command, scenario loadtest.Scenario, out *cli.Output) (*load, error) {
	l := &load{cmd: cmd, scenario: scenario, out: out, claims: verdict.NewOrderClaims()}
	var err error
	if l.users, err = cmd.users(); err != nil {
		return nil, err
	}
	if l.client, err = loadtest.NewClient(cmd.URL, loadtest.ClientOptions{Timeout: cmd.Timeout, Token: l.users.token}); err != nil {
		return nil, err
	}
	if cmd.Journal != "" {
		if l.file, err = os.Create(cmd.Journal); err != nil {
			l.client.Close()
			return nil, err
		}
		l.journal = loadtest.NewJournal(l.file)
	}
	return l, nil
}

func (l *load) close() error {
	l.client.Close()
	if l.file == nil {
		return nil
	}
	return errors.Join(l.journal.Flush(), l.file.Close())
}

// record returns where entries go.
func (l *load) record(e *loadtest.Entry) {
	l.claims.Add(e)
	if l.journal != nil {
		l.journal.Write(e)
	}
}

// run plays the scenario and judges what came of it. Ctrl-C ends the load early; what there is then is judged.
func (l *load) run(ctx context.Context) (*loadResult, error) {
	voucher, err := l.voucher()
	if err != nil {
		return nil, err
	}
	result := &loadResult{Scenario: l.scenario.Name, Before: voucher}
	if l.users.prepare != nil {
		users := l.scenario.Users
		if l.scenario.Arrivals > 0 {
			users = min(users, l.scenario.Arrivals)
		}
		l.users.prepare(l.cmd.FirstUser, users)
	}
	r := loadtest.NewRecorder(l.record)
	buyers := &loadtest.Buyers{
		Client: l.client, Recorder: r, Voucher: voucher.ID, FirstUser: l.cmd.FirstUser, Users: l.scenario.Users, IDs: l.users.ids,
		Copies: l.scenario.Copies, CopyShare: l.scenario.CopyShare, NoKeys: l.cmd.NoKeys, Name: loadtest.NewName(),
	}
	if err := l.play(ctx, r, buyers); err != nil {
		return nil, err
	}
	result.Load = r.Report()
	after := context.WithoutCancel(ctx) // an interrupted load is settled and judged like any other
	if unknown := r.TakeUnknown(); len(unknown) > 0 {
		settling, cancel := context.WithTimeout(after, l.cmd.Settle)
		defer cancel()
		result.Settled = loadtest.Settle(settling, l.client, loadtest.NewRecorder(l.record), unknown)
	}
	result.Clients = l.claims.Owned(voucher.UserLimit)
	if result.After, err = l.client.Voucher(voucher.ID); err != nil {
		return nil, err
	}
	if err := l.claims.Err(); err != nil {
		return nil, err
	}
	if result.Verdict, result.Audited, err = l.audit(); err != nil {
		return nil, err
	}
	result.judge()
	return result, nil
}

// play sends the load. When ctx ends, requests under way get a moment to be answered before their connections are cut.
func (l *load) play(ctx context.Context, r *loadtest.Recorder, buyers *loadtest.Buyers) error {
	requests := l.scenario.Arrivals + int64(float64(l.scenario.Arrivals)*l.scenario.CopyShare*float64(max(l.scenario.Copies-1, 0)))
	stop := cli.ShowProgress(l.out.Stderr, l.scenario.Name, max(requests, -1), r)
	defer stop()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		select {
		case <-done:
		case <-time.After(patience):
			l.client.Abort()
		}
	}()
	send := loadtest.Load{Clients: l.cmd.Clients, Rate: l.scenario.Rate, Arrivals: l.scenario.Arrivals, Duration: l.scenario.Duration}
	return send.Run(ctx,
		func(a loadtest.Arrival) { l.scenario.Act(buyers, a) },
		func(a loadtest.Arrival) { r.Drop(a.Due) })
}

// patience is how long requests under way may take after Ctrl-C.
const patience = 3 * time.Second

// voucher returns the one that is bought, put on sale for the purpose if none was named.
func (l *load) voucher() (loadtest.Voucher, error) {
	if l.cmd.Voucher != "" {
		return l.client.Voucher(l.cmd.Voucher)
	}
	if l.users.admin == 0 {
		return loadtest.Voucher{}, errors.New("--voucher is needed, or an admin's token to put one on sale")
	}
	now := time.Now()
	return l.client.CreateVoucher(l.users.admin, loadtest.NewVoucher{
		Title: "Load: " + l.scenario.Name, PriceCents: 4900, Stock: l.scenario.Stock, UserLimit: 1, PaySeconds: l.scenario.PaySeconds,
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(l.scenario.Duration + 24*time.Hour),
	})
}

// audit asks the shop for its audit, if an admin's token is there.
func (l *load) audit() (v *verdict.Verdict, audited bool, err error) {
	if !l.cmd.Audit || l.users.admin == 0 {
		return verdict.New(), false, nil
	}
	text, err := l.client.Audit(l.users.admin)
	if err != nil {
		return nil, false, err
	}
	v, err = verdict.ParseAudit(text)
	return v, true, err
}
