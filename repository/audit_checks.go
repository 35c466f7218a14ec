package repository

// auditCheck selects the rows that break an invariant. A sound database has none.
type auditCheck struct {
	id          string
	invariant   int
	holds       string // what has to hold
	offending   string
	whenSettled bool // it holds only once nothing is running and the outbox is empty
}

const auditTotals = `
SELECT (SELECT COUNT(*) FROM voucher_stock) AS vouchers,
       (SELECT COALESCE(SUM(total), 0) FROM voucher_stock) AS total,
       (SELECT COALESCE(SUM(stock), 0) FROM voucher_stock) AS stock,
       (SELECT COUNT(*) FROM voucher_order) AS orders,
       (SELECT COUNT(*) FROM voucher_order WHERE status = 1) AS pending,
       (SELECT COUNT(*) FROM voucher_order WHERE status = 2) AS paid,
       (SELECT COUNT(*) FROM voucher_order WHERE status = 3) AS closed,
       (SELECT COUNT(*) FROM voucher_order WHERE slot IS NOT NULL) AS live,
       (SELECT COALESCE(SUM(live - total), 0)
          FROM (SELECT s.voucher_id, s.total, COUNT(o.slot) AS live FROM voucher_stock s
                  JOIN voucher_order o ON o.voucher_id = s.voucher_id GROUP BY s.voucher_id, s.total) AS sold
         WHERE live > total) AS oversold,
       (SELECT COALESCE(SUM(live - user_limit), 0)
          FROM (SELECT s.user_limit, COUNT(o.slot) AS live FROM voucher_stock s
                  JOIN voucher_order o ON o.voucher_id = s.voucher_id
                 GROUP BY s.voucher_id, s.user_limit, o.user_id) AS held
         WHERE live > user_limit) AS duplicates,
       (SELECT COUNT(*) FROM outbox_event) AS events,
       (SELECT COUNT(*) FROM outbox_event WHERE status <> 1) AS unsent,
       (SELECT COUNT(*) FROM points_entry) AS effects,
       (SELECT COUNT(*) FROM payment WHERE refund_due = 1) AS refunds_due`

// eventsOf counts the events of each order by type. It aggregates before it joins, because no index leads from an order to
// its events: every order would pay for an index that only the audit uses.
const eventsOf = `
(SELECT biz_id, COUNT(*) AS events, COUNT(DISTINCT version) AS versions, MAX(version) AS latest,
        SUM(biz_type = 'ORDER_CREATED' AND version = 1) AS created,
        SUM(biz_type = 'ORDER_PAID') AS paid,
        SUM(biz_type = 'ORDER_CANCELLED') AS cancelled,
        SUM(biz_type = 'ORDER_EXPIRED') AS expired,
        SUM(biz_type = 'ORDER_REFUND_DUE') AS refunds
   FROM outbox_event GROUP BY biz_id)`

// refundsOf counts the payments of each order that are due for refund.
const refundsOf = `(SELECT order_id, COUNT(*) AS due FROM payment WHERE refund_due = 1 GROUP BY order_id)`

// purgedEvents counts the events that were archived or deleted after they were sent, and gives the creation time of the
// latest of them. Orders that are not younger than that may lack events.
const purgedEvents = `(SELECT COALESCE(SUM(events), 0) AS events, MAX(latest_created_at) AS until FROM outbox_purged)`

// effectsOf counts what the points consumer did for each order.
const effectsOf = `(SELECT order_id, COUNT(*) AS effects FROM points_entry GROUP BY order_id)`

var auditChecks = []auditCheck{
	{"stock-negative", 1, "stock is not negative", `SELECT voucher_id, stock FROM voucher_stock WHERE stock < 0`, false},
	{"stock-balance", 1, "total = stock + live orders", `
SELECT s.voucher_id, s.total, s.stock, COUNT(o.slot) AS live FROM voucher_stock s
  LEFT JOIN voucher_order o ON o.voucher_id = s.voucher_id
 GROUP BY s.voucher_id, s.total, s.stock HAVING s.total <> s.stock + COUNT(o.slot)`, false},
	{"placed-count", 1, "the count of placed orders is right", `
SELECT s.voucher_id, s.placed, COUNT(o.id) AS orders FROM voucher_stock s
  LEFT JOIN voucher_order o ON o.voucher_id = s.voucher_id
 GROUP BY s.voucher_id, s.placed HAVING s.placed <> COUNT(o.id)`, false},
	{"voucher-missing", 1, "every order has a voucher", `
SELECT o.id, o.voucher_id FROM voucher_order o LEFT JOIN voucher_stock s ON s.voucher_id = o.voucher_id
 WHERE s.voucher_id IS NULL`, false},
	{"user-limit", 2, "no user holds more live orders than the limit", `
SELECT o.voucher_id, o.user_id, COUNT(*) AS live, s.user_limit FROM voucher_order o
  JOIN voucher_stock s ON s.voucher_id = o.voucher_id
 WHERE o.slot IS NOT NULL GROUP BY o.voucher_id, o.user_id, s.user_limit HAVING COUNT(*) > s.user_limit`, false},
	{"slot-conflict", 2, "each slot is held by one live order", `
SELECT voucher_id, user_id, slot, COUNT(*) AS orders, MAX(status) AS status FROM voucher_order
 WHERE slot IS NOT NULL GROUP BY voucher_id, user_id, slot HAVING COUNT(*) > 1 OR MAX(status) > 2`, false},
	{"slot-missing", 2, "every live order holds a slot", `
SELECT id, voucher_id, user_id, status FROM voucher_order WHERE slot IS NULL AND status <> 3`, false},
	{"request-duplicate", 3, "one request id, one order", `
SELECT user_id, request_id, COUNT(*) AS orders FROM voucher_order GROUP BY user_id, request_id HAVING COUNT(*) > 1`, false},
	{"id-duplicate", 5, "no id was used twice", `
SELECT o.id FROM voucher_order o JOIN outbox_event e ON e.event_id = o.id`, false},
	{"order-state", 6, "an order's status agrees with its times", `
SELECT id, status, pay_by, paid_at, closed_at, close_reason FROM voucher_order
 WHERE NOT (status = 1 AND pay_by IS NOT NULL AND paid_at IS NULL AND closed_at IS NULL AND close_reason IS NULL
         OR status = 2 AND pay_by IS NULL AND paid_at IS NOT NULL AND closed_at IS NULL AND close_reason IS NULL
         OR status = 3 AND pay_by IS NULL AND paid_at IS NULL AND closed_at IS NOT NULL AND close_reason IN (1, 2))`, false},
	{"payment-count", 6, "a paid order has one applied payment, every other order has none", `
SELECT o.id, o.status, COUNT(p.payment_id) AS payments FROM voucher_order o
  LEFT JOIN payment p ON p.order_id = o.id AND p.refund_due = 0
 GROUP BY o.id, o.status HAVING COUNT(p.payment_id) <> (o.status = 2)`, false},
	{"payment-orphan", 6, "every payment has its order", `
SELECT p.payment_id, p.order_id FROM payment p LEFT JOIN voucher_order o ON o.id = p.order_id WHERE o.id IS NULL`, false},
	{"event-missing", 7, "every change of an order has its event", `
SELECT o.id, o.status, o.close_reason, o.version, e.*, r.due FROM voucher_order o
  LEFT JOIN ` + eventsOf + ` e ON e.biz_id = o.id
  LEFT JOIN ` + refundsOf + ` r ON r.order_id = o.id
 CROSS JOIN ` + purgedEvents + ` p
 WHERE (p.until IS NULL OR o.created_at > p.until)
   AND (e.biz_id IS NULL OR e.events <> o.version OR e.versions <> o.version OR e.latest <> o.version OR e.created <> 1
     OR e.paid <> (o.status = 2) OR e.cancelled <> (o.status = 3 AND o.close_reason = 1)
     OR e.expired <> (o.status = 3 AND o.close_reason = 2) OR e.refunds <> COALESCE(r.due, 0))`, false},
	{"event-surplus", 7, "after a purge, no order has more events than changes", `
SELECT o.id, o.version, e.* FROM voucher_order o JOIN ` + eventsOf + ` e ON e.biz_id = o.id CROSS JOIN ` + purgedEvents + ` p
 WHERE o.created_at <= p.until AND (e.events > o.version OR e.versions <> e.events OR e.latest > o.version)`, false},
	{"event-purged", 7, "events and purged events add up to the changes", `
SELECT c.changes, e.events, p.events AS purged
  FROM (SELECT COALESCE(SUM(version), 0) AS changes FROM voucher_order) c
 CROSS JOIN (SELECT COUNT(*) AS events FROM outbox_event) e CROSS JOIN ` + purgedEvents + ` p
 WHERE p.events > 0 AND c.changes <> e.events + p.events`, false},
	{"event-orphan", 7, "every event has its order", `
SELECT e.event_id, e.biz_type, e.biz_id FROM outbox_event e LEFT JOIN voucher_order o ON o.id = e.biz_id WHERE o.id IS NULL`, false},
	{"effect-duplicate", 8, "no effect happened twice", `
SELECT order_id, COUNT(*) AS effects FROM points_entry GROUP BY order_id HAVING COUNT(*) > 1`, false},
	{"effect-orphan", 8, "every effect has its event", `
SELECT f.order_id, e.paid FROM ` + effectsOf + ` f
  LEFT JOIN voucher_order o ON o.id = f.order_id
  LEFT JOIN ` + eventsOf + ` e ON e.biz_id = f.order_id
 CROSS JOIN ` + purgedEvents + ` p
 WHERE COALESCE(e.paid, 0) = 0 AND (p.until IS NULL OR o.id IS NULL OR o.created_at > p.until)`, false},
	{"event-unsent", 8, "every event was sent", `
SELECT event_id, biz_type, biz_id, status, retry_count FROM outbox_event WHERE status <> 1`, true},
	{"effect-missing", 8, "every paid order has its effect", `
SELECT o.id, o.user_id FROM voucher_order o LEFT JOIN ` + effectsOf + ` p ON p.order_id = o.id
 WHERE o.status = 2 AND p.order_id IS NULL`, true},
	{"sale-window", 9, "nothing was sold outside the sale window", `
SELECT o.id, o.created_at, s.starts_at, s.ends_at FROM voucher_order o JOIN voucher_stock s ON s.voucher_id = o.voucher_id
 WHERE o.created_at < s.starts_at OR o.created_at >= s.ends_at`, false},
}
