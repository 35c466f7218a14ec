-- +goose Up

-- The instances of the shop, as they last said about themselves, for the live board. An instance that ends in order
-- deletes its row; nothing is decided by this table.
CREATE TABLE instance (
  name    VARCHAR(190) NOT NULL,
  report  JSON         NOT NULL,
  seen_at DATETIME(3)  NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- +goose Down
DROP TABLE instance;
