-- +goose Up
-- Nothing to do: in SQLite payloads have been TEXT from the start. The step keeps the numbers of both folders equal.

-- +goose Down
