package shop

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"seckill/service/idgen"
)

// entry is an order in the stream.
type entry struct {
	stream               string // id of the stream's entry
	voucher, user, order int64
	at                   time.Time // when Redis took it
}

// errNoUnits: the stock row has fewer units than the orders need.
var errNoUnits = errors.New("the database has fewer units than Redis has sold")

// commit makes orders of one voucher durable in one transaction. Those that are there already count as durable again:
// somebody delivered them twice. It reports how many were new, and how many of all can never be there, because a unit
// or the buyer's right to one is missing; an error means that nothing is known to have changed.
func commit(ctx context.Context, db *sql.DB, orders []entry) (added, refused int64, err error) {
	added, err = commitAll(ctx, db, orders)
	switch {
	case errors.Is(err, errNoUnits) && len(orders) == 1:
		return 0, 1, nil
	case errors.Is(err, errNoUnits): // one by one: the first of them get what is left
		for i := range orders {
			a, r, err := commit(ctx, db, orders[i:i+1])
			if err != nil {
				return added, refused, err
			}
			added, refused = added+a, refused+r
		}
		return added, refused, nil
	case err != nil || added == int64(len(orders)):
		return added, 0, err
	}
	existing, err := existingOrders(ctx, db, orders)
	return added, int64(len(orders)) - existing, err
}

// commitAll inserts what is not there yet and takes as many units, or does nothing.
func commitAll(ctx context.Context, db *sql.DB, orders []entry) (added int64, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	args := make([]any, 0, 4*len(orders))
	for i := range orders {
		args = append(args, orders[i].order, orders[i].voucher, orders[i].user, orders[i].at)
	}
	inserted, err := tx.ExecContext(ctx, "INSERT INTO luastream_order (id, voucher_id, user_id, created_at) VALUES "+
		groups("(?,?,?,?)", len(orders))+" ON DUPLICATE KEY UPDATE id = id", args...)
	if err != nil {
		return 0, err
	}
	if added, err = inserted.RowsAffected(); err != nil || added == 0 {
		return 0, err
	}
	taken, err := tx.ExecContext(ctx, "UPDATE luastream_voucher SET stock = stock - ? WHERE id = ? AND stock >= ?",
		added, orders[0].voucher, added)
	if err != nil {
		return 0, err
	}
	if rows, err := taken.RowsAffected(); err != nil {
		return 0, err
	} else if rows == 0 {
		return 0, errNoUnits
	}
	return added, tx.Commit()
}

// existingOrders counts the orders that the database has.
func existingOrders(ctx context.Context, db *sql.DB, orders []entry) (n int64, err error) {
	args := make([]any, len(orders))
	for i := range orders {
		args[i] = idgen.ID(orders[i].order)
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM luastream_order WHERE id IN ("+groups("?", len(orders))+")", args...).Scan(&n)
	return n, err
}

// groups repeats a group of placeholders.
func groups(group string, n int) string { return strings.Repeat(group+",", n-1) + group }
