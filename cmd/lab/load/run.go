package load

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// run is one run of a scenario.
type run struct {
	cmd      *Command
	scenario loadtest.Scenario
	out      *cli.Output
	users    *users
	client   *loadtest.Client
	claims   *verdict.Claims
	file     *os.File // nil: no journal
	journal  *loadtest.Journal
}

// newRun opens the client and the journal. Close it.
func newRun(cmd *Command, scenario loadtest.Scenario, out *cli.Output) (*run, error) {
	r := &run{cmd: cmd, scenario: scenario, out: out, claims: verdict.NewOrderClaims()}
	var err error
	if r.users, err = cmd.users(); err != nil {
		return nil, err
	}
	if r.client, err = loadtest.NewClient(cmd.URL, loadtest.ClientOptions{Timeout: cmd.Timeout, Token: r.users.token}); err != nil {
		return nil, err
	}
	if cmd.Journal != "" {
		if r.file, err = os.Create(cmd.Journal); err != nil {
			r.client.Close()
			return nil, err
		}
		r.journal = loadtest.NewJournal(r.file)
	}
	return r, nil
}

func (r *run) close() error {
	r.client.Close()
	if r.file == nil {
		return nil
	}
	return errors.Join(r.journal.Flush(), r.file.Close())
}

// record is called with every request and its answer.
func (r *run) record(e *loadtest.Entry) {
	r.claims.Add(e)
	if r.journal != nil {
		r.journal.Write(e)
	}
}

// send sends the load and checks the answers. Ctrl-C ends only the load: the result is that of the requests sent until then.
func (r *run) send(ctx context.Context) (*result, error) {
	voucher, err := r.voucher()
	if err != nil {
		return nil, err
	}
	s := r.scenario
	if r.users.prepare != nil {
		r.users.prepare(r.cmd.FirstUser, min(s.Users, cmp.Or(s.Arrivals, s.Users)))
	}
	recorder := loadtest.NewRecorder(r.record)
	buyers := &loadtest.Buyers{
		Client: r.client, Recorder: recorder, Voucher: voucher.ID, FirstUser: r.cmd.FirstUser, Users: s.Users, IDs: r.users.ids,
		Copies: s.Copies, CopyShare: s.CopyShare, NoKeys: r.cmd.NoKeys, Name: loadtest.NewName(),
	}
	requests := s.Arrivals + int64(float64(s.Arrivals)*s.CopyShare*float64(max(s.Copies-1, 0)))
	stop := cli.ShowProgress(r.out.Stderr, s.Name, cmp.Or(requests, -1), recorder)
	load := loadtest.Load{Clients: r.cmd.Clients, Rate: s.Rate, Arrivals: s.Arrivals, Duration: s.Duration}
	err = buyers.Run(ctx, load, func(a loadtest.Arrival) { s.Act(buyers, a) })
	stop()
	if err != nil {
		return nil, err
	}
	result := &result{Scenario: s.Name, Before: voucher, Load: recorder.Report()}
	result.Settled = buyers.Settle(context.WithoutCancel(ctx), r.cmd.Settle)
	result.Clients = r.claims.Owned(voucher.UserLimit)
	if result.After, err = r.client.Voucher(voucher.ID); err != nil {
		return nil, err
	}
	return result, r.judge(result)
}

// voucher returns the voucher to buy. It puts a new one on sale if the flags name none.
func (r *run) voucher() (loadtest.Voucher, error) {
	if r.cmd.Voucher != "" {
		return r.client.Voucher(r.cmd.Voucher)
	}
	if r.users.admin == 0 {
		return loadtest.Voucher{}, errors.New("--voucher is required without an admin's token")
	}
	now := time.Now()
	return r.client.CreateVoucher(r.users.admin, loadtest.NewVoucher{
		Title: "Load: " + r.scenario.Name, PriceCents: 4900, Stock: r.scenario.Stock, UserLimit: 1, PaySeconds: r.scenario.PaySeconds,
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(r.scenario.Duration + 24*time.Hour),
	})
}

// judge fills the verdict of the result: the shop's audit, if there is an admin's token, and what the clients' answers show.
func (r *run) judge(result *result) (err error) {
	if err := r.claims.Err(); err != nil {
		return err
	}
	result.Verdict = verdict.New()
	if r.cmd.Audit && r.users.admin != 0 {
		answer, err := r.client.Audit(r.users.admin)
		if err != nil {
			return err
		}
		if result.Verdict, err = verdict.ParseAudit(answer); err != nil {
			return err
		}
		result.Audited = true
	}
	result.addAnswers()
	return nil
}
