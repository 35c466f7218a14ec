package repository

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"
)

// roomForTime is what an argument that is no string takes at most.
const roomForTime = 30

// errNotAsPlanned is a message whose transaction was rolled back: an index refused an order, or there were no units.
var errNotAsPlanned = errors.New("not all of the orders could be placed as they are")

// commitMessage places all of the orders, or none: everything up to COMMIT goes to the server in one message. Each
// statement by itself is a round trip, in which a busy machine gets little else done; a batch of a hundred orders would
// wait longer for five of them than the server works. Errors are those of inTx, and errNotAsPlanned.
func (r *round) commitMessage(ctx context.Context, orders []candidate, now time.Time) error {
	begin(orders, now)
	text, args, err := r.message(orders, now)
	if err != nil {
		return err
	}
	conn, err := r.db.connect(ctx)
	if err != nil {
		return err
	}
	open := true
	defer func() {
		if open {
			rollBack(conn)
		}
		_ = conn.Close() // gives it back
	}()
	placed, taken, after, err := send(ctx, conn, text, args)
	switch {
	case err != nil:
		return err
	case placed != len(orders), taken != 1:
		return errNotAsPlanned
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	open = false // a COMMIT that fails takes its connection along
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		discard(conn)
		return &commitError{err}
	}
	r.recent.learn(r.voucherID, after)
	return nil
}

// errTooLarge is a batch that does not fit into a message. The driver would take it apart into a prepared statement and
// its arguments, which a message of several statements cannot be.
var errTooLarge = errors.New("the batch is larger than the server's max_allowed_packet")

// message is the text of the transaction: orders, events, and last the hot row, so that its lock is held for the
// shortest time. What came of it, and the terms as they are then, are read with it.
func (r *round) message(orders []candidate, now time.Time) (text string, args []any, err error) {
	insert := ordersStatement(r.db.dialect, orders)
	events, err := insertEvents(r.db.dialect, createdEvents(orders, now), now)
	if err != nil {
		return "", nil, err
	}
	units, unitsArgs := unitsStatement(r.db.dialect, r.voucherID, len(orders), now)
	read := "SELECT @placed, ROW_COUNT(), total, stock, placed, user_limit, starts_at, ends_at, " + r.db.dialect.nowLate +
		" FROM voucher_stock WHERE voucher_id = ?"
	var b strings.Builder
	b.Grow(len(insert.sql) + len(events.sql) + len(units) + len(read) + 80)
	b.WriteString("START TRANSACTION; ")
	b.Write(insert.sql)
	b.WriteString("; SET @placed = ROW_COUNT(); ")
	b.Write(events.sql)
	b.WriteString("; " + units + "; " + read)
	args = append(append(append(insert.args, events.args...), unitsArgs...), int64(r.voucherID))
	if r.db.packet > 0 && b.Len()+len(args)*roomForTime+insert.room()+events.room() > r.db.packet {
		return "", nil, errTooLarge
	}
	return b.String(), args, nil
}

// send returns how many orders were inserted, how many hot rows were changed, and the terms after that.
func send(ctx context.Context, conn session, text string, args []any) (placed, taken int, after terms, err error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return 0, 0, terms{}, err
	}
	var row stockRow
	if rows.Next() {
		err = rows.Scan(&placed, &taken, &row.Total, &row.Stock, &row.Placed, &row.UserLimit, &row.StartsAt, &row.EndsAt, &row.ReadAt)
	}
	err = errors.Join(err, rows.Err(), rows.Close())
	return placed, taken, terms{row.terms(), row.ReadAt.Time, time.Now()}, err
}

// session is a connection that one goroutine has to itself; Close gives it back to the pool.
type session interface {
	gorm.ConnPool
	Raw(func(driverConn any) error) error
	Close() error
}

var _ session = (*sql.Conn)(nil)

// rollBack leaves no transaction open on a connection that is given back.
func rollBack(conn session) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		discard(conn)
	}
}

// discard keeps a connection from being used again.
func discard(conn session) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
