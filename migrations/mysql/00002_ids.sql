-- +goose Up

-- Who may make snowflake ids as which workers: pair p holds the workers 2p and 2p+1. fence grows with every new holder.
-- Ceilings are the Unix milliseconds that no id of the even and of the odd worker has reached. A row is never deleted:
-- the next holder starts where its ceilings end.
CREATE TABLE worker_lease (
  pair         INT          NOT NULL,
  owner        VARCHAR(190) NOT NULL,
  fence        BIGINT       NOT NULL,
  expires_at   DATETIME(3)  NOT NULL,
  even_ceiling BIGINT       NOT NULL,
  odd_ceiling  BIGINT       NOT NULL,
  PRIMARY KEY (pair)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- The one layout that all ids under these leases are made with.
CREATE TABLE worker_layout (
  id     INT         NOT NULL,
  layout VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT only_one_layout CHECK (id = 1)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- How far the numbers of a kind of id are given away, for segments. The table is Leaf's
-- (github.com/Meituan-Dianping/Leaf, scripts/leaf_alloc.sql). step is the least number of ids to take at once; it may
-- be raised at any time. Counters in Redis report here as well, so that none of them is believed below max_id.
CREATE TABLE leaf_alloc (
  biz_tag     VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  max_id      BIGINT       NOT NULL,
  step        BIGINT       NOT NULL,
  description VARCHAR(256) NOT NULL,
  update_time DATETIME(3)  NOT NULL,
  PRIMARY KEY (biz_tag),
  CONSTRAINT leaf_alloc_sane CHECK (max_id >= 0 AND step >= 1)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time)
VALUES ('order', 0, 1000, 'ids of orders', UTC_TIMESTAMP(3));

-- +goose Down
DROP TABLE leaf_alloc;
DROP TABLE worker_layout;
DROP TABLE worker_lease;
