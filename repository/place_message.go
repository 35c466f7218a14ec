package repository

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// roomForArg is what an argument takes in the text beside the bytes of a string: its quotes, a number, or a time.
const roomForArg = 30

// errNotAsPlanned is a message whose transaction was rolled back, because an index refused some of the orders.
var errNotAsPlanned = errors.New("not all of the orders could be placed as they are")

// longAgo is more time than passes between the reading of the clock and the hot row, unless the machine slept in between
// or the database's clock was set. Orders would be dated wrongly then, and might be overdue at once.
const longAgo = 2 * lockWait

// messageTimeout is how long a message may take, a wait for the hot row included. A query that is killed between two
// statements ends the message without a word (seen with MySQL 9.7 and MariaDB 10.11): the connection is given up then, and
// the batch done again.
const messageTimeout = lockWait + time.Second

// commitMessage places all of the orders, or none: everything up to COMMIT goes to the server in one message. Each
// statement by itself is a round trip, in which a busy machine gets little else done; a batch of a hundred orders would
// wait longer for five of them than the server works. Errors are those of inTx, errNotAsPlanned and errTooLarge.
func (r *round) commitMessage(ctx context.Context, orders []candidate, now time.Time) error {
	text, args, err := r.message(orders, now)
	if err != nil {
		return err
	}
	return r.db.onConnection(ctx, func(conn connection) error {
		answer, cancel := context.WithTimeout(ctx, messageTimeout)
		defer cancel()
		inserted, taken, after, err := send(answer, conn, text, args)
		switch {
		case err != nil:
			return err
		case inserted == 0:
			return errNothingToPlace
		case inserted != len(orders):
			return errNotAsPlanned
		case taken != 1, now.After(after.at), after.at.Sub(now) > longAgo:
			return errNoUnit // or none that was taken at the right time: the terms have to be read
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
			return &commitError{err}
		}
		r.hints.learn(r.voucherID, after)
		return nil
	})
}

// errTooLarge is a batch that does not fit into a message. The driver would take it apart into a prepared statement and
// its arguments, which a message of several statements cannot be.
var errTooLarge = errors.New("the batch is larger than the server's max_allowed_packet")

// message is the text of the transaction: orders, events, and last the hot row, so that its lock is held for the
// shortest time, and not at all where an order was refused. What came of it, and the terms as they are then, are read
// with it.
func (r *round) message(orders []candidate, now time.Time) (text string, args []any, err error) {
	insert := ordersStatement(r.db.dialect, orders)
	events, err := eventsStatement(r.db.dialect, createdEvents(orders, now), now)
	if err != nil {
		return "", nil, err
	}
	units, unitsArgs := unitsStatement(r.db.dialect, r.voucherID, len(orders), now)
	read := "SELECT @inserted, ROW_COUNT(), total, stock, placed, user_limit, starts_at, ends_at, " + r.db.dialect.nowLate +
		" FROM voucher_stock WHERE voucher_id = ?"
	var b strings.Builder
	b.Grow(len(insert.sql) + len(events.sql) + len(units) + len(read) + 80)
	b.WriteString("START TRANSACTION; ")
	b.Write(insert.sql)
	b.WriteString("; SET @inserted = ROW_COUNT(); ")
	b.Write(events.sql)
	b.WriteString("; " + units + " AND @inserted = " + strconv.Itoa(len(orders)) + "; " + read)
	args = append(append(append(insert.args, events.args...), unitsArgs...), int64(r.voucherID))
	if r.db.packet > 0 && b.Len()+len(args)*roomForArg+insert.room()+events.room() > r.db.packet {
		return "", nil, errTooLarge
	}
	return b.String(), args, nil
}

// send returns how many orders were inserted, how many hot rows were changed, and the terms after that.
func send(ctx context.Context, conn connection, text string, args []any) (inserted, taken int, after reading, err error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return 0, 0, reading{}, err
	}
	var row stockRow
	if rows.Next() {
		err = rows.Scan(&inserted, &taken, &row.Total, &row.Stock, &row.Placed, &row.UserLimit, &row.StartsAt, &row.EndsAt, &row.ReadAt)
	}
	err = errors.Join(err, rows.Err(), rows.Close())
	return inserted, taken, reading{row.terms(), row.ReadAt.Time, time.Now()}, err
}
