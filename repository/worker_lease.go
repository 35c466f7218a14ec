package repository

import (
	"context"
	"fmt"
	"time"

	"seckill/service/idgen"
)

// WorkerLeases is the idgen.LeaseStore in the database. Leases expire by the database's clock.
type WorkerLeases struct{ db *DB }

// WorkerLeases returns the store of worker leases.
func (db *DB) WorkerLeases() *WorkerLeases { return &WorkerLeases{db: db} }

// leaseRow is a row of worker_lease. The database compares expires_at with its own clock.
type leaseRow struct {
	Pair        int
	Owner       string
	Fence       int64
	Live        bool
	EvenCeiling int64
	OddCeiling  int64
}

func (r leaseRow) pair() idgen.Pair {
	return idgen.Pair{Live: r.Live, Grant: idgen.Grant{
		Pair: r.Pair, Owner: r.Owner, Fence: uint64(r.Fence),
		Ceilings: idgen.Ceilings{r.EvenCeiling, r.OddCeiling},
	}}
}

// Acquire implements idgen.LeaseStore. Each attempt reads the pairs and takes one with a conditional statement. That
// statement decides: it changes nothing if another instance took the pair first.
func (s *WorkerLeases) Acquire(ctx context.Context, want idgen.LeaseRequest) (idgen.Grant, error) {
	if err := s.checkLayout(ctx, want.Layout); err != nil {
		return idgen.Grant{}, err
	}
	for attempt := 0; ; attempt++ {
		pairs, err := s.read(ctx, want.First, want.Count)
		if err != nil {
			return idgen.Grant{}, err
		}
		pair, known, err := want.Choose(pairs)
		if err != nil {
			return idgen.Grant{}, err
		}
		taken, err := s.take(ctx, pair, known, want)
		if err != nil {
			return idgen.Grant{}, err
		}
		if taken {
			return s.granted(ctx, pair.Pair, want.Owner)
		}
		if !backOff(ctx, attempt) {
			return idgen.Grant{}, context.Cause(ctx)
		}
	}
}

// checkLayout stores the layout if there is none, and compares it with the stored one.
func (s *WorkerLeases) checkLayout(ctx context.Context, layout string) error {
	put := "INSERT INTO worker_layout (id, layout) VALUES (1, ?)" + s.db.dialect.onConflictDoNothing("worker_layout", "id")
	if _, err := s.exec(ctx, put, layout); err != nil {
		return err
	}
	var stored string
	if err := s.query(ctx, &stored, "SELECT layout FROM worker_layout WHERE id = 1"); err != nil {
		return err
	}
	if stored != layout {
		return fmt.Errorf("%w: ids of this database are made with %s, not with %s", idgen.ErrLayout, stored, layout)
	}
	return nil
}

func (s *WorkerLeases) read(ctx context.Context, first, count int) (pairs []idgen.Pair, err error) {
	var rows []leaseRow
	err = s.query(ctx, &rows, "SELECT pair, owner, fence, owner <> '' AND expires_at > "+s.db.dialect.nowAtRow+
		" AS live, even_ceiling, odd_ceiling FROM worker_lease WHERE pair >= ? AND pair < ?", first, first+count)
	for _, r := range rows {
		pairs = append(pairs, r.pair())
	}
	return pairs, err
}

// take takes the pair, unless it changed hands or was renewed since it was read.
func (s *WorkerLeases) take(ctx context.Context, pair idgen.Pair, known bool, want idgen.LeaseRequest) (bool, error) {
	if !known {
		n, err := s.exec(ctx, "INSERT INTO worker_lease (pair, owner, fence, expires_at, even_ceiling, odd_ceiling)"+
			" VALUES (?, ?, 1, "+s.db.dialect.nowAtRowPlusMillis()+", 0, 0)"+s.db.dialect.onConflictDoNothing("worker_lease", "pair"),
			pair.Pair, want.Owner, want.TTL.Milliseconds())
		return n == 1, err
	}
	n, err := s.exec(ctx, "UPDATE worker_lease SET owner = ?, fence = fence + 1, expires_at = "+s.db.dialect.nowAtRowPlusMillis()+
		" WHERE pair = ? AND fence = ? AND (owner = ? OR owner = '' OR expires_at <= "+s.db.dialect.nowAtRow+")",
		want.Owner, want.TTL.Milliseconds(), pair.Pair, pair.Fence, want.Owner)
	return n == 1, err
}

// granted reads the pair that was taken. No other instance changes its row now.
func (s *WorkerLeases) granted(ctx context.Context, pair int, owner string) (idgen.Grant, error) {
	pairs, err := s.read(ctx, pair, 1)
	if err != nil {
		return idgen.Grant{}, err
	}
	if len(pairs) != 1 || pairs[0].Owner != owner {
		return idgen.Grant{}, fmt.Errorf("%w: pair %d was taken again at once", idgen.ErrLeaseLost, pair)
	}
	return pairs[0].Grant, nil
}

// Renew implements idgen.LeaseStore.
func (s *WorkerLeases) Renew(ctx context.Context, held idgen.Grant, ttl time.Duration, c idgen.Ceilings) error {
	n, err := s.exec(ctx, "UPDATE worker_lease SET expires_at = "+s.db.dialect.nowAtRowPlusMillis()+
		", even_ceiling = CASE WHEN even_ceiling < ? THEN ? ELSE even_ceiling END"+
		", odd_ceiling = CASE WHEN odd_ceiling < ? THEN ? ELSE odd_ceiling END"+
		" WHERE pair = ? AND owner = ? AND fence = ?",
		ttl.Milliseconds(), c[0], c[0], c[1], c[1], held.Pair, held.Owner, held.Fence)
	if err != nil || n == 1 {
		return err
	}
	// MySQL counts rows that changed: a second renewal within the same millisecond is none.
	var holds int64
	err = s.query(ctx, &holds, "SELECT COUNT(*) FROM worker_lease WHERE pair = ? AND owner = ? AND fence = ?",
		held.Pair, held.Owner, held.Fence)
	if err == nil && holds == 0 {
		err = idgen.ErrLeaseLost
	}
	return err
}

// Release implements idgen.LeaseStore.
func (s *WorkerLeases) Release(ctx context.Context, held idgen.Grant, c idgen.Ceilings) error {
	_, err := s.exec(ctx, "UPDATE worker_lease SET owner = '', expires_at = "+s.db.dialect.nowAtRow+
		", even_ceiling = ?, odd_ceiling = ? WHERE pair = ? AND owner = ? AND fence = ?",
		c[0], c[1], held.Pair, held.Owner, held.Fence)
	return err
}

// leaseTries is how often a statement is sent before its error is returned. The generator reports the error and tries
// again.
const leaseTries = 3

func (s *WorkerLeases) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	err = retry(ctx, leaseTries, func() error {
		res := s.db.session(ctx).Exec(query, args...)
		changed = res.RowsAffected
		return res.Error
	})
	if err != nil {
		return 0, fmt.Errorf("worker leases: %w", err)
	}
	return changed, nil
}

func (s *WorkerLeases) query(ctx context.Context, dst any, query string, args ...any) error {
	err := retry(ctx, leaseTries, func() error { return s.db.session(ctx).Raw(query, args...).Scan(dst).Error })
	if err != nil {
		return fmt.Errorf("worker leases: %w", err)
	}
	return nil
}
