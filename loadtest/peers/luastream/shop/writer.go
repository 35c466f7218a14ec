package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/idgen"
)

// Names in Redis.
const (
	stream   = "luastream:orders"
	group    = "writers"
	consumer = "writer"
)

const (
	retry        = 100 * time.Millisecond // pause after a failure
	batchTimeout = 30 * time.Second       // of a batch in hand, also while the shop closes
)

// writer brings the stream to MySQL.
type writer struct {
	shop     *Shop
	batchMax int64
}

// run writes until ctx ends. It begins with what was delivered and not acknowledged, because it had failed or its
// process died, and returns to that after every failure.
func (w *writer) run(ctx context.Context) {
	from := "0" // what was delivered before; ">" is what was not
	failing := false
	for ctx.Err() == nil {
		n, err := w.step(ctx, from)
		switch {
		case err != nil && ctx.Err() == nil:
			if !failing { // once, not each time
				w.shop.log.Warn("the writer failed and tries again", "error", err)
			}
			from = "0"
			pause(ctx, retry)
		case n == 0:
			from = ">"
		}
		failing = err != nil
	}
}

// step writes one batch, and returns its number of orders.
func (w *writer) step(ctx context.Context, from string) (int, error) {
	entries, err := w.read(ctx, from)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	// What was read is written and acknowledged, also while the shop closes.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	for _, sale := range byVoucher(entries) {
		if err := w.write(ctx, sale); err != nil {
			return 0, err
		}
	}
	return len(entries), w.forget(ctx, entries)
}

// read gets the next entries, waiting for them a little.
func (w *writer) read(ctx context.Context, from string) ([]entry, error) {
	streams, err := w.shop.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: consumer, Streams: []string{stream, from}, Count: w.batchMax, Block: time.Second,
	}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil && strings.HasPrefix(err.Error(), "NOGROUP"): // a new Redis, or one that has lost what it had
		return nil, w.shop.redis.XGroupCreateMkStream(ctx, stream, group, "0").Err()
	case err != nil:
		return nil, fmt.Errorf("read the stream: %w", err)
	}
	entries := make([]entry, 0, len(streams[0].Messages))
	for i := range streams[0].Messages {
		e, err := parse(&streams[0].Messages[i])
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// parse reads what place.lua has written. Anything else stops the writer: to skip it might be to lose an order.
func parse(m *redis.XMessage) (entry, error) {
	e := entry{stream: m.ID}
	for name, into := range map[string]*int64{"v": &e.voucher, "u": &e.user, "o": &e.order} {
		text, _ := m.Values[name].(string)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return e, fmt.Errorf("entry %s has no order: %w", m.ID, err)
		}
		*into = n
	}
	millis, err := strconv.ParseInt(m.ID[:max(0, strings.IndexByte(m.ID, '-'))], 10, 64)
	e.at = time.UnixMilli(millis).UTC()
	return e, err
}

// byVoucher groups orders by their voucher.
func byVoucher(entries []entry) map[int64][]entry {
	sales := map[int64][]entry{}
	for _, e := range entries {
		sales[e.voucher] = append(sales[e.voucher], e)
	}
	return sales
}

// write commits the orders of one voucher.
func (w *writer) write(ctx context.Context, orders []entry) error {
	sale, err := w.shop.sale(ctx, idgen.ID(orders[0].voucher))
	if err != nil {
		return err
	}
	added, refused, err := commit(ctx, w.shop.db, orders)
	if err != nil {
		return fmt.Errorf("write %d orders: %w", len(orders), err)
	}
	sale.settle(added, refused)
	if refused > 0 {
		w.shop.log.Error("acknowledged orders that the database refuses", "voucher", sale.text, "orders", refused)
	}
	return nil
}

// forget removes entries that are written from the stream, so that Redis keeps only the backlog. It does both steps or
// none: an entry that is acknowledged and not deleted would be delivered to nobody and wait for ever.
func (w *writer) forget(ctx context.Context, entries []entry) error {
	ids := make([]string, len(entries))
	for i := range entries {
		ids[i] = entries[i].stream
	}
	if _, err := w.shop.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.XAck(ctx, stream, group, ids...)
		p.XDel(ctx, stream, ids...)
		return nil
	}); err != nil {
		return fmt.Errorf("acknowledge entries: %w", err)
	}
	return nil
}

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
