-- +goose Up

-- The trace that an event's change was part of, as W3C's traceparent (https://www.w3.org/TR/trace-context/#traceparent-header):
-- NULL, and free, unless the change was traced. INSTANT refuses to touch the rows that are there.
ALTER TABLE outbox_event ADD COLUMN trace_parent VARCHAR(55) CHARACTER SET ascii COLLATE ascii_bin NULL, ALGORITHM = INSTANT;

-- +goose Down
ALTER TABLE outbox_event DROP COLUMN trace_parent;
