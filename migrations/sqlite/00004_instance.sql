-- +goose Up
-- The same table as in ../mysql, for the embedded mode.

-- The instances of the shop, as they last said about themselves, for the live board.
CREATE TABLE instance (
  name    VARCHAR(190) NOT NULL,
  report  JSON         NOT NULL,
  seen_at DATETIME     NOT NULL,
  PRIMARY KEY (name)
);

-- +goose Down
DROP TABLE instance;
