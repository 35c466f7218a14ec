-- +goose Up
-- The same tables as in ../mysql, for the embedded mode. Times are Unix milliseconds, as the driver is set to write them.

-- What a voucher is called and costs. Read often, written by admins only.
CREATE TABLE voucher (
  id          INTEGER      NOT NULL,
  title       VARCHAR(120) NOT NULL,
  price_cents INTEGER      NOT NULL,
  pay_seconds INTEGER      NOT NULL,
  created_at  DATETIME     NOT NULL,
  updated_at  DATETIME     NOT NULL,
  PRIMARY KEY (id)
);

-- The hot row: everything that the guard decides by stands in the row that it updates, and nothing else does.
-- placed counts every order ever placed. It tells an instance whether its list of buyers is still complete.
CREATE TABLE voucher_stock (
  voucher_id INTEGER  NOT NULL,
  total      INTEGER  NOT NULL,
  stock      INTEGER  NOT NULL,
  placed     INTEGER  NOT NULL,
  user_limit INTEGER  NOT NULL,
  starts_at  DATETIME NOT NULL,
  ends_at    DATETIME NOT NULL,
  PRIMARY KEY (voucher_id),
  CONSTRAINT stock_not_oversold CHECK (stock >= 0),
  CONSTRAINT stock_within_total CHECK (stock <= total)
);

-- Units added in the middle of a sale, so that the same request twice adds them once.
CREATE TABLE voucher_restock (
  voucher_id INTEGER NOT NULL,
  request_id VARCHAR(64) NOT NULL,
  units      INTEGER NOT NULL,
  created_at DATETIME NOT NULL,
  PRIMARY KEY (voucher_id, request_id)
);

-- status: 1 pending, 2 paid, 3 closed. close_reason: 1 cancelled, 2 expired.
-- slot numbers a user's live orders of a voucher from 0; a closed order gives its slot back (NULL is never a duplicate).
-- pay_by is set while the order is pending, so that its index holds only what may expire.
CREATE TABLE voucher_order (
  id           INTEGER     NOT NULL,
  voucher_id   INTEGER     NOT NULL,
  user_id      INTEGER     NOT NULL,
  slot         INTEGER     NULL,
  request_id   VARCHAR(64) NOT NULL,
  status       INTEGER     NOT NULL,
  close_reason INTEGER     NULL,
  version      INTEGER     NOT NULL,
  price_cents  INTEGER     NOT NULL,
  created_at   DATETIME    NOT NULL,
  pay_by       DATETIME    NULL,
  paid_at      DATETIME    NULL,
  closed_at    DATETIME    NULL,
  PRIMARY KEY (id),
  CONSTRAINT closed_order_has_no_slot CHECK ((status = 3) = (slot IS NULL))
);
CREATE UNIQUE INDEX order_once_per_slot ON voucher_order (voucher_id, user_id, slot);
CREATE UNIQUE INDEX order_once_per_request ON voucher_order (user_id, request_id);
CREATE INDEX order_pay_by ON voucher_order (pay_by);

-- Money that arrived. One that could not be applied to its order is due for refund.
CREATE TABLE payment (
  payment_id   VARCHAR(64) NOT NULL,
  order_id     INTEGER     NOT NULL,
  amount_cents INTEGER     NOT NULL,
  refund_due   INTEGER     NOT NULL,
  created_at   DATETIME    NOT NULL,
  PRIMARY KEY (payment_id)
);
CREATE INDEX payment_order ON payment (order_id);

-- One row for each change of an order, written in the transaction of the change.
-- (biz_id, version) names the change; event_id is what consumers dedupe by.
-- status: 0 pending, 1 sent, 2 failed. next_retry_time is back-off, lease and sent time in one.
CREATE TABLE outbox_event (
  event_id        INTEGER     NOT NULL,
  biz_type        VARCHAR(32) NOT NULL,
  biz_id          INTEGER     NOT NULL,
  version         INTEGER     NOT NULL,
  payload         TEXT        NOT NULL,
  status          INTEGER     NOT NULL DEFAULT 0,
  retry_count     INTEGER     NOT NULL DEFAULT 0,
  next_retry_time DATETIME    NOT NULL,
  lock_owner      VARCHAR(64) NULL,
  created_at      DATETIME    NOT NULL,
  updated_at      DATETIME    NOT NULL,
  PRIMARY KEY (event_id)
);
CREATE INDEX outbox_due ON outbox_event (status, next_retry_time);

-- What a consumer has taken, inserted first in the transaction of its effect.
CREATE TABLE consume_record (
  consumer    VARCHAR(32) NOT NULL,
  event_id    INTEGER     NOT NULL,
  consumed_at DATETIME    NOT NULL,
  PRIMARY KEY (consumer, event_id)
);

-- The effect of the points consumer: one point for each whole unit of currency paid. It is not unique by order on
-- purpose: consume_record alone must keep an effect from happening twice, and the audit must be able to see that it did.
CREATE TABLE points_entry (
  id         INTEGER  PRIMARY KEY AUTOINCREMENT,
  order_id   INTEGER  NOT NULL,
  user_id    INTEGER  NOT NULL,
  points     INTEGER  NOT NULL,
  created_at DATETIME NOT NULL
);
CREATE INDEX points_user ON points_entry (user_id);

-- +goose Down
DROP TABLE points_entry;
DROP TABLE consume_record;
DROP TABLE outbox_event;
DROP TABLE payment;
DROP TABLE voucher_order;
DROP TABLE voucher_restock;
DROP TABLE voucher_stock;
DROP TABLE voucher;
