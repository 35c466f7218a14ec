package board

import (
	"context"
	"time"
)

// shopView is what the database said last about the whole shop. Its lists are replaced, never changed.
type shopView struct {
	vouchers     []voucherView // the one in focus comes first
	instances    []instanceView
	databaseAway bool // the last poll failed
}

// addFigures adds the figures that the database knows. -1 means unknown.
func (v *shopView) addFigures(f figures) {
	f["stock"], f["total"], f["database_away"] = -1, -1, flag(v.databaseAway)
	if len(v.vouchers) > 0 {
		f["stock"], f["total"] = v.vouchers[0].Stock, v.vouchers[0].Total
	}
}

// poller reads what only the database knows, on one goroutine that may be slow or fail without holding up the board.
type poller struct {
	board     *Board
	view      shopView
	vouchers  vouchers
	instances instances
	reportDue time.Time
}

const (
	watchedPace  = 250 * time.Millisecond // between two polls while somebody watches
	reportPace   = 2 * time.Second        // between two reports to the other instances, and two polls while nobody watches
	pollTimeout  = 5 * time.Second        // a database that is only busy answers within this time
	leaveTimeout = time.Second            // of deregistering; the shop closes after it
)

// run polls until ctx ends, and then deregisters this instance.
func (p *poller) run(ctx context.Context) {
	for {
		p.view.databaseAway = p.poll(ctx) != nil
		if ctx.Err() == nil {
			p.board.setView(p.view)
		}
		pace := reportPace
		if p.board.watched() {
			pace = watchedPace
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			p.leave(ctx)
			return
		}
	}
}

// poll reads what is due.
func (p *poller) poll(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if p.view.vouchers, err = p.vouchers.read(ctx, p.view.vouchers); err != nil {
		return err
	}
	if now := time.Now(); !now.Before(p.reportDue) {
		p.reportDue = now.Add(reportPace)
		p.view.instances, err = p.instances.exchange(ctx, p.board.report(), p.view.instances)
	}
	return err
}

// leave deregisters this instance, so that the others do not report it as lost.
func (p *poller) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := p.board.cfg.Registry.Leave(ctx, p.board.cfg.Instance); err != nil {
		p.board.cfg.Log.Warn("board: this instance could not be deregistered; the others will report it as lost", "error", err)
	}
}
