package repository

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gorm.io/gorm"

	"seckill/service/idgen"
)

// IDRanges is the idgen.RangeStore in the database: Leaf's, one row for each kind of id.
type IDRanges struct {
	db  *DB
	tag string
}

// OrderIDs is the tag of order ids in leaf_alloc.
const OrderIDs = "order"

// ErrNoTag is returned for a tag without a row. The row is not created automatically: if it was lost, a new one would
// allocate the same numbers again.
var ErrNoTag = errors.New("no such tag in leaf_alloc")

// IDRanges returns the store of ids of one kind. Its row must exist.
func (db *DB) IDRanges(tag string) *IDRanges { return &IDRanges{db: db, tag: tag} }

// Create inserts a row for the tag, which allocates ids from 1, at least step at a time. An existing row stays unchanged.
func (r *IDRanges) Create(ctx context.Context, step int64, description string) error {
	insert := "INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time) VALUES (?, 0, ?, ?, " +
		r.db.dialect.nowAtRow + ")" + r.db.dialect.onConflictDoNothing("leaf_alloc", "biz_tag")
	if err := r.db.session(ctx).Exec(insert, r.tag, step, description).Error; err != nil {
		return fmt.Errorf("create id tag %q: %w", r.tag, err)
	}
	return nil
}

// Allocate implements idgen.RangeStore.
func (r *IDRanges) Allocate(ctx context.Context, n int64) (got idgen.Range, err error) {
	err = r.db.inTx(ctx, func(tx *gorm.DB) error {
		got, err = r.allocate(tx, n)
		return err
	})
	if err != nil {
		return idgen.Range{}, fmt.Errorf("allocate ids of %q: %w", r.tag, err)
	}
	return got, nil
}

// allocate adds n or the row's own step to max_id, whichever is more. The update locks the row, so the read after it sees
// its result.
func (r *IDRanges) allocate(tx *gorm.DB, n int64) (idgen.Range, error) {
	const count = "CASE WHEN step < ? THEN ? ELSE step END"
	res := tx.Exec("UPDATE leaf_alloc SET max_id = max_id + "+count+", update_time = "+r.db.dialect.nowAtRow+
		" WHERE biz_tag = ? AND max_id <= ? - "+count, n, n, r.tag, int64(math.MaxInt64), n, n)
	if res.Error != nil {
		return idgen.Range{}, res.Error
	}
	row, err := r.row(tx)
	if err == nil && res.RowsAffected == 0 {
		err = fmt.Errorf("%w: max_id is %d", idgen.ErrExhausted, row.MaxID)
	}
	if err != nil {
		return idgen.Range{}, err
	}
	n = max(n, row.Step)
	return idgen.Range{First: idgen.ID(row.MaxID - n + 1), Count: n, Least: row.Step}, nil
}

type rangeRow struct {
	MaxID int64
	Step  int64
}

func (r *IDRanges) row(tx *gorm.DB) (row rangeRow, err error) {
	res := tx.Raw("SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?", r.tag).Scan(&row)
	if res.Error == nil && res.RowsAffected == 0 {
		return row, fmt.Errorf("%w: %q", ErrNoTag, r.tag)
	}
	return row, res.Error
}

// Floor returns the highest number that is known to be allocated, and the minimum size of a range. A counter outside the
// database must not be lower.
func (r *IDRanges) Floor(ctx context.Context) (floor, least int64, err error) {
	row, err := r.row(r.db.session(ctx))
	if err != nil {
		return 0, 0, fmt.Errorf("floor of ids of %q: %w", r.tag, err)
	}
	return row.MaxID, row.Step, nil
}

// Claim records that the numbers from first to last are allocated. It returns false, and changes nothing, when the floor
// has already reached first. It is one conditional update, so no number can be claimed twice. After an error it is
// unknown whether the numbers are claimed; they must not be used.
func (r *IDRanges) Claim(ctx context.Context, first, last int64) (bool, error) {
	res := r.db.session(ctx).Exec("UPDATE leaf_alloc SET max_id = ?, update_time = "+r.db.dialect.nowAtRow+
		" WHERE biz_tag = ? AND max_id < ?", last, r.tag, first)
	if res.Error != nil {
		return false, fmt.Errorf("claim ids of %q: %w", r.tag, res.Error)
	}
	return res.RowsAffected == 1, nil
}
