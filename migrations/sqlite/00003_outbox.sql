-- +goose Up

-- Events that were sent long ago, where the shop is told to keep them.
CREATE TABLE outbox_archive (
  event_id    INTEGER     NOT NULL,
  biz_type    VARCHAR(32) NOT NULL,
  biz_id      INTEGER     NOT NULL,
  version     INTEGER     NOT NULL,
  payload     TEXT        NOT NULL,
  retry_count INTEGER     NOT NULL,
  created_at  DATETIME    NOT NULL,
  sent_at     DATETIME    NOT NULL,
  PRIMARY KEY (event_id)
);

-- How many events of a kind were purged, archived ones included, and when the latest of them was created: counted in
-- the transaction that deletes them, so that an audit can still tell whether any is missing.
CREATE TABLE outbox_purged (
  biz_type          VARCHAR(32) NOT NULL,
  events            INTEGER     NOT NULL,
  latest_created_at DATETIME    NOT NULL,
  PRIMARY KEY (biz_type)
);

-- The effect of the notification consumer: what a user is to be told. (order_id, version) puts events in order that
-- arrive out of order. status: 0 due, 1 sent, 2 overtaken by a later version, 3 given up.
CREATE TABLE notification (
  event_id        INTEGER     NOT NULL,
  order_id        INTEGER     NOT NULL,
  version         INTEGER     NOT NULL,
  user_id         INTEGER     NOT NULL,
  biz_type        VARCHAR(32) NOT NULL,
  payload         TEXT        NOT NULL,
  status          INTEGER     NOT NULL DEFAULT 0,
  retry_count     INTEGER     NOT NULL DEFAULT 0,
  next_retry_time DATETIME    NOT NULL,
  lock_owner      VARCHAR(64) NULL,
  created_at      DATETIME    NOT NULL,
  PRIMARY KEY (event_id)
);
CREATE INDEX notification_order ON notification (order_id, version);
CREATE INDEX notification_due ON notification (status, next_retry_time);

-- +goose Down
DROP TABLE notification;
DROP TABLE outbox_purged;
DROP TABLE outbox_archive;
