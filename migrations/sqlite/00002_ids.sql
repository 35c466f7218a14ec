-- +goose Up
-- The same tables as in ../mysql, for the embedded mode. Times are Unix milliseconds, as the driver is set to write them.

-- Who may make snowflake ids as which workers. A row is never deleted: the next holder starts where its ceilings end.
CREATE TABLE worker_lease (
  pair         INTEGER      NOT NULL,
  owner        VARCHAR(190) NOT NULL,
  fence        INTEGER      NOT NULL,
  expires_at   DATETIME     NOT NULL,
  even_ceiling INTEGER      NOT NULL,
  odd_ceiling  INTEGER      NOT NULL,
  PRIMARY KEY (pair)
);

-- The one layout that all ids under these leases are made with.
CREATE TABLE worker_layout (
  id     INTEGER     NOT NULL,
  layout VARCHAR(64) NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT only_one_layout CHECK (id = 1)
);

-- How far the numbers of a kind of id are given away, for segments.
CREATE TABLE leaf_alloc (
  biz_tag     VARCHAR(128) NOT NULL,
  max_id      INTEGER      NOT NULL,
  step        INTEGER      NOT NULL,
  description VARCHAR(256) NOT NULL,
  update_time DATETIME     NOT NULL,
  PRIMARY KEY (biz_tag),
  CONSTRAINT leaf_alloc_sane CHECK (max_id >= 0 AND step >= 1)
);

INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time)
VALUES ('order', 0, 1000, 'ids of orders', CAST(unixepoch('subsec') * 1000 AS INTEGER));

-- +goose Down
DROP TABLE leaf_alloc;
DROP TABLE worker_layout;
DROP TABLE worker_lease;
