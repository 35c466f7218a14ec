package shop

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// byVoucher puts the orders of a voucher together.
func byVoucher(entries []entry) (sales [][]entry) {
	where := map[int64]int{}
	for _, e := range entries {
		i, ok := where[e.voucher]
		if !ok {
			i = len(sales)
			where[e.voucher] = i
			sales = append(sales, nil)
		}
		sales[i] = append(sales[i], e)
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

// forget takes entries that are written out of the stream, so that Redis keeps only the backlog. It does both steps or
// none: an entry that is acknowledged and not deleted would be delivered to nobody and wait for ever.
func (w *writer) forget(ctx context.Context, entries []entry) error {
	for part := range slices.Chunk(entries, 1000) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].stream
		}
		if _, err := w.shop.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.XAck(ctx, stream, group, ids...)
			p.XDel(ctx, stream, ids...)
			return nil
		}); err != nil {
			return fmt.Errorf("acknowledge entries: %w", err)
		}
	}
	return nil
}
