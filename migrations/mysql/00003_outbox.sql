-- +goose Up

-- Events that were sent long ago, where the shop is told to keep them.
CREATE TABLE outbox_archive (
  event_id    BIGINT      NOT NULL,
  biz_type    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  biz_id      BIGINT      NOT NULL,
  version     INT         NOT NULL,
  payload     JSON        NOT NULL,
  retry_count INT         NOT NULL,
  created_at  DATETIME(3) NOT NULL,
  sent_at     DATETIME(3) NOT NULL,
  PRIMARY KEY (event_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- How many events of a kind were purged, archived ones included, and when the latest of them was created: counted in
-- the transaction that deletes them, so that an audit can still tell whether any is missing.
CREATE TABLE outbox_purged (
  biz_type          VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  events            BIGINT      NOT NULL,
  latest_created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (biz_type)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- The effect of the notification consumer: what a user is to be told. (order_id, version) puts events in order that
-- arrive out of order. status: 0 due, 1 sent, 2 overtaken by a later version, 3 given up.
CREATE TABLE notification (
  event_id        BIGINT      NOT NULL,
  order_id        BIGINT      NOT NULL,
  version         INT         NOT NULL,
  user_id         BIGINT      NOT NULL,
  biz_type        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload         JSON        NOT NULL,
  status          TINYINT     NOT NULL DEFAULT 0,
  retry_count     INT         NOT NULL DEFAULT 0,
  next_retry_time DATETIME(3) NOT NULL,
  lock_owner      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at      DATETIME(3) NOT NULL,
  PRIMARY KEY (event_id),
  KEY notification_order (order_id, version),
  KEY notification_due (status, next_retry_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- +goose Down
DROP TABLE notification, outbox_purged, outbox_archive;
