package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"seckill/service/idgen"
)

// KeysConfig says what Keys measures. The zero value of a field stands for its default.
type KeysConfig struct {
	// DB is a database on MySQL or MariaDB in which tables may be created and dropped. Its user has to be allowed to
	// switch InnoDB's counters, which are the whole server's: anything else that is written meanwhile is counted too.
	DB *sql.DB
	// Snowflake makes the keys of one of the tables.
	Snowflake idgen.Generator

	Rows    int // of each table, default 200,000
	Batch   int // rows an INSERT, default 200
	Workers int // connections, default 4
}

func (c KeysConfig) withDefaults() KeysConfig {
	defaultTo(&c.Rows, 200_000)
	defaultTo(&c.Batch, 200)
	defaultTo(&c.Workers, 4)
	return c
}

// KeysResult compares primary keys.
type KeysResult struct {
	Server string   `json:"server"`
	Rows   int      `json:"rows"`
	Runs   []KeyRun `json:"runs"`
}

// KeyRun is one kind of key.
type KeyRun struct {
	Key        string  `json:"key"`
	RowsPerS   float64 `json:"rows_per_s"`
	Splits     int64   `json:"page_splits"` // of both indexes
	TableBytes int64   `json:"table_bytes"` // of the primary key, which holds the rows
	IndexBytes int64   `json:"index_bytes"` // of a secondary index on a number, which repeats the primary key
}

// keyKind is a kind of key: its column, and how to make one. A nil make leaves it to the server.
type keyKind struct {
	name, column string
	make         func(context.Context) (any, error)
}

func (c KeysConfig) kinds() []keyKind {
	text := func(u uuid.UUID, err error) (any, error) { return u.String(), err }
	binary := func(u uuid.UUID, err error) (any, error) { return u[:], err }
	const asText, asBinary = "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL", "BINARY(16) NOT NULL"
	return []keyKind{
		{"auto-increment", "BIGINT NOT NULL AUTO_INCREMENT", nil},
		{"snowflake", "BIGINT NOT NULL", func(ctx context.Context) (any, error) {
			id, err := c.Snowflake.Next(ctx)
			return int64(id), err
		}},
		{"uuid v7, binary(16)", asBinary, func(context.Context) (any, error) { return binary(uuid.NewV7()) }},
		{"uuid v4, binary(16)", asBinary, func(context.Context) (any, error) { return binary(uuid.NewRandom()) }},
		{"uuid v7, char(36)", asText, func(context.Context) (any, error) { return text(uuid.NewV7()) }},
		{"uuid v4, char(36)", asText, func(context.Context) (any, error) { return text(uuid.NewRandom()) }},
	}
}

const splitCounter = "index_page_splits"

// Keys fills a table for each kind of key, one after the other, and drops it again. It blocks until all are done or ctx
// ends.
func Keys(ctx context.Context, c KeysConfig) (result KeysResult, err error) {
	c = c.withDefaults()
	result.Rows = c.Rows
	if err := c.DB.QueryRowContext(ctx, "SELECT VERSION()").Scan(&result.Server); err != nil {
		return result, fmt.Errorf("keys: %w", err)
	}
	restore, err := c.countSplits(ctx, result.Server)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	for _, kind := range c.kinds() {
		run, err := c.run(ctx, kind)
		if err != nil {
			return result, fmt.Errorf("key %s: %w", kind.name, err)
		}
		result.Runs = append(result.Runs, run)
	}
	return result, nil
}

// countSplits makes InnoDB count page splits and returns what puts it back as it was.
func (c KeysConfig) countSplits(ctx context.Context, server string) (restore func() error, err error) {
	state := "status = 'enabled'"
	if strings.Contains(server, "MariaDB") {
		state = "enabled"
	}
	var on bool
	err = c.DB.QueryRowContext(ctx, "SELECT "+state+" FROM information_schema.innodb_metrics WHERE name = ?",
		splitCounter).Scan(&on)
	if err != nil || on {
		return func() error { return nil }, err
	}
	if _, err = c.DB.ExecContext(ctx, "SET GLOBAL innodb_monitor_enable = '"+splitCounter+"'"); err != nil {
		return nil, fmt.Errorf("have page splits counted: %w", err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, err := c.DB.ExecContext(ctx, "SET GLOBAL innodb_monitor_disable = '"+splitCounter+"'")
		return err
	}, nil
}

func (c KeysConfig) splits(ctx context.Context) (n int64, err error) {
	err = c.DB.QueryRowContext(ctx, "SELECT count FROM information_schema.innodb_metrics WHERE name = ?", splitCounter).Scan(&n)
	return n, err
}

// keyTable is the table of a run. It resembles an order: a user to look it up by, and a row of a hundred bytes or so.
const keyTable = "id_lab_key"

func (c KeysConfig) run(ctx context.Context, kind keyKind) (run KeyRun, err error) {
	run.Key = kind.name
	if err := c.exec(ctx, "DROP TABLE IF EXISTS "+keyTable, "CREATE TABLE "+keyTable+" (id "+kind.column+
		", user_id BIGINT NOT NULL, detail VARCHAR(80) NOT NULL, PRIMARY KEY (id), KEY by_user (user_id))"+
		" ENGINE = InnoDB DEFAULT CHARSET = utf8mb4"); err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, c.exec(context.WithoutCancel(ctx), "DROP TABLE "+keyTable)) }()
	before, err := c.splits(ctx)
	if err != nil {
		return run, err
	}
	start := time.Now()
	if err := c.fill(ctx, kind); err != nil {
		return run, err
	}
	run.RowsPerS = float64(c.Rows) / time.Since(start).Seconds()
	after, err := c.splits(ctx)
	if err != nil {
		return run, err
	}
	run.Splits = after - before
	if run.TableBytes, err = c.indexBytes(ctx, "PRIMARY"); err != nil {
		return run, err
	}
	run.IndexBytes, err = c.indexBytes(ctx, "by_user")
	return run, err
}

func (c KeysConfig) exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := c.DB.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// fill inserts all rows, in batches, over several connections.
func (c KeysConfig) fill(ctx context.Context, kind keyKind) error {
	var left atomic.Int64
	left.Store(int64(c.Rows))
	errs := make([]error, c.Workers)
	var wg sync.WaitGroup
	for i := range c.Workers {
		wg.Go(func() {
			for errs[i] == nil {
				n := min(c.Batch, int(left.Add(-int64(c.Batch)))+c.Batch)
				if n <= 0 {
					return
				}
				errs[i] = c.insert(ctx, kind, n)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c KeysConfig) insert(ctx context.Context, kind keyKind, n int) error {
	columns, row := "user_id, detail", "(?, ?)"
	if kind.make != nil {
		columns, row = columns+", id", "(?, ?, ?)"
	}
	args := make([]any, 0, 3*n)
	for range n {
		args = append(args, rand.Int64N(1_000_000), strings.Repeat("x", 80))
		if kind.make == nil {
			continue
		}
		key, err := kind.make(ctx)
		if err != nil {
			return err
		}
		args = append(args, key)
	}
	_, err := c.DB.ExecContext(ctx, "INSERT INTO "+keyTable+" ("+columns+") VALUES "+row+strings.Repeat(", "+row, n-1), args...)
	return err
}

// indexBytes returns the size of an index as InnoDB's statistics have it after they are brought up to date: that of all
// pages allocated to it, which are more by up to a megabyte than those in use.
func (c KeysConfig) indexBytes(ctx context.Context, index string) (bytes int64, err error) {
	var table, op, kind, text string
	if err := c.DB.QueryRowContext(ctx, "ANALYZE TABLE "+keyTable).Scan(&table, &op, &kind, &text); err != nil {
		return 0, err
	}
	err = c.DB.QueryRowContext(ctx, "SELECT stat_value * @@innodb_page_size FROM mysql.innodb_index_stats"+
		" WHERE database_name = DATABASE() AND table_name = ? AND index_name = ? AND stat_name = 'size'",
		keyTable, index).Scan(&bytes)
	return bytes, err
}
