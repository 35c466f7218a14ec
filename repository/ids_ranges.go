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

// ErrNoTag is returned for a tag that has no row. It is not created on the way: a row that is missing where there was
// one would start from the beginning.
var ErrNoTag = errors.New("no such tag in leaf_alloc")

// IDRanges returns the store of ids of one kind, whose row has to be there.
func (db *DB) IDRanges(tag string) *IDRanges { return &IDRanges{db: db, tag: tag} }

// Create puts a row for the tag down, to give ids from 1 on, at least step at once. It leaves one alone that is there.
func (r *IDRanges) Create(ctx context.Context, step int64, description string) error {
	insert := "INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time) VALUES (?, 0, ?, ?, " +
		r.db.dialect.nowLate + ")" + r.db.dialect.orSkip("leaf_alloc", "biz_tag")
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

// allocate moves max_id on by n or the row's own step, whichever is more. The update locks the row, so that what is
// read after it belongs to it.
func (r *IDRanges) allocate(tx *gorm.DB, n int64) (idgen.Range, error) {
	const count = "CASE WHEN step < ? THEN ? ELSE step END"
	res := tx.Exec("UPDATE leaf_alloc SET max_id = max_id + "+count+", update_time = "+r.db.dialect.nowLate+
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

// Floor returns the highest number that is known to be given away, and the least number of ids to take at once. It is
// what a counter outside the database is measured by.
func (r *IDRanges) Floor(ctx context.Context) (floor, least int64, err error) {
	row, err := r.row(r.db.session(ctx))
	if err != nil {
		return 0, 0, fmt.Errorf("floor of ids of %q: %w", r.tag, err)
	}
	return row.MaxID, row.Step, nil
}

// Claim puts down that the numbers from first to last are given away, and returns false, with nothing changed, when
// the floor has reached first already. It is one conditional update, so no number can be claimed twice. After an error
// the numbers may be claimed or not; they must not be used.
func (r *IDRanges) Claim(ctx context.Context, first, last int64) (bool, error) {
	res := r.db.session(ctx).Exec("UPDATE leaf_alloc SET max_id = ?, update_time = "+r.db.dialect.nowLate+
		" WHERE biz_tag = ? AND max_id < ?", last, r.tag, first)
	if res.Error != nil {
		return false, fmt.Errorf("claim ids of %q: %w", r.tag, res.Error)
	}
	return res.RowsAffected == 1, nil
}
