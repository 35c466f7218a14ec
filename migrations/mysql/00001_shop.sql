-- +goose Up

-- What a voucher is called and costs. Read often, written by admins only.
CREATE TABLE voucher (
  id          BIGINT       NOT NULL,
  title       VARCHAR(120) NOT NULL,
  price_cents BIGINT       NOT NULL,
  pay_seconds INT          NOT NULL,
  created_at  DATETIME(3)  NOT NULL,
  updated_at  DATETIME(3)  NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- The hot row: everything that the guard decides by stands in the row that it updates, and nothing else does.
-- placed counts every order ever placed. It tells an instance whether its list of buyers is still complete.
CREATE TABLE voucher_stock (
  voucher_id BIGINT      NOT NULL,
  total      BIGINT      NOT NULL,
  stock      BIGINT      NOT NULL,
  placed     BIGINT      NOT NULL,
  user_limit INT         NOT NULL,
  starts_at  DATETIME(3) NOT NULL,
  ends_at    DATETIME(3) NOT NULL,
  PRIMARY KEY (voucher_id),
  CONSTRAINT stock_not_oversold CHECK (stock >= 0),
  CONSTRAINT stock_within_total CHECK (stock <= total)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- Units added in the middle of a sale, so that the same request twice adds them once.
CREATE TABLE voucher_restock (
  voucher_id BIGINT NOT NULL,
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  units      BIGINT NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (voucher_id, request_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- status: 1 pending, 2 paid, 3 closed. close_reason: 1 cancelled, 2 expired.
-- slot numbers a user's live orders of a voucher from 0; a closed order gives its slot back (NULL is never a duplicate).
-- pay_by is set while the order is pending, so that its index holds only what may expire.
CREATE TABLE voucher_order (
  id           BIGINT      NOT NULL,
  voucher_id   BIGINT      NOT NULL,
  user_id      BIGINT      NOT NULL,
  slot         INT         NULL,
  request_id   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  status       TINYINT     NOT NULL,
  close_reason TINYINT     NULL,
  version      INT         NOT NULL,
  price_cents  BIGINT      NOT NULL,
  created_at   DATETIME(3) NOT NULL,
  pay_by       DATETIME(3) NULL,
  paid_at      DATETIME(3) NULL,
  closed_at    DATETIME(3) NULL,
  PRIMARY KEY (id),
  UNIQUE KEY order_once_per_slot (voucher_id, user_id, slot),
  UNIQUE KEY order_once_per_request (user_id, request_id),
  KEY order_pay_by (pay_by),
  CONSTRAINT closed_order_has_no_slot CHECK ((status = 3) = (slot IS NULL))
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- Money that arrived. One that could not be applied to its order is due for refund.
CREATE TABLE payment (
  payment_id   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_id     BIGINT      NOT NULL,
  amount_cents BIGINT      NOT NULL,
  refund_due   TINYINT     NOT NULL,
  created_at   DATETIME(3) NOT NULL,
  PRIMARY KEY (payment_id),
  KEY payment_order (order_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- One row for each change of an order, written in the transaction of the change.
-- (biz_id, version) names the change; event_id is what consumers dedupe by.
-- status: 0 pending, 1 sent, 2 failed. next_retry_time is back-off, lease and sent time in one.
CREATE TABLE outbox_event (
  event_id        BIGINT      NOT NULL,
  biz_type        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  biz_id          BIGINT      NOT NULL,
  version         INT         NOT NULL,
  payload         JSON        NOT NULL,
  status          TINYINT     NOT NULL DEFAULT 0,
  retry_count     INT         NOT NULL DEFAULT 0,
  next_retry_time DATETIME(3) NOT NULL,
  lock_owner      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at      DATETIME(3) NOT NULL,
  updated_at      DATETIME(3) NOT NULL,
  PRIMARY KEY (event_id),
  KEY outbox_due (status, next_retry_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- What a consumer has taken, inserted first in the transaction of its effect.
CREATE TABLE consume_record (
  consumer    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  event_id    BIGINT      NOT NULL,
  consumed_at DATETIME(3) NOT NULL,
  PRIMARY KEY (consumer, event_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- The effect of the points consumer: one point for each whole unit of currency paid. It is not unique by order on
-- purpose: consume_record alone must keep an effect from happening twice, and the audit must be able to see that it did.
CREATE TABLE points_entry (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  order_id   BIGINT      NOT NULL,
  user_id    BIGINT      NOT NULL,
  points     BIGINT      NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (id),
  KEY points_user (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- +goose Down
DROP TABLE points_entry, consume_record, outbox_event, payment, voucher_order, voucher_restock, voucher_stock, voucher;
