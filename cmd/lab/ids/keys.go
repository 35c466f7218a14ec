package ids

import (
	"cmp"
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

// KeysConfig configures Keys. Zero values stand for the defaults.
type KeysConfig struct {
	// DB is a MySQL or MariaDB database for the tables. Its user must be allowed to enable InnoDB's counters. They belong to
	// the whole server, so other writes are counted too.
	DB *sql.DB
	// Snowflake makes the keys of one of the tables.
	Snowflake idgen.Generator

	Rows    int // of each table, default 200,000
	Rounds  int // each adds rows to every table, so that a disturbance affects all of them; default 20
	Batch   int // rows of an INSERT, default 200
	Workers int // connections, default 4
}

func (c KeysConfig) withDefaults() KeysConfig {
	c.Rows = cmp.Or(c.Rows, 200_000)
	c.Rounds = cmp.Or(c.Rounds, 20)
	c.Batch = cmp.Or(c.Batch, 200)
	c.Workers = cmp.Or(c.Workers, 4)
	return c
}

// KeysResult compares primary keys.
type KeysResult struct {
	Server string   `json:"server"`
	Rows   int      `json:"rows"`
	Runs   []KeyRun `json:"runs"`
}

// KeyRun is the result of one kind of key.
type KeyRun struct {
	Key        string  `json:"key"`
	RowsPerS   float64 `json:"rows_per_s"`
	Splits     int64   `json:"page_splits"` // of both indexes
	TableBytes int64   `json:"table_bytes"` // of the primary key, which holds the rows
	IndexBytes int64   `json:"index_bytes"` // of a secondary index on a number, which contains the primary key
}

// keyKind is a kind of key: its table, its column, and how to generate one. If generate is nil, the server does.
type keyKind struct {
	table, name, column string
	generate            func(context.Context) (any, error)
}

func (c KeysConfig) kinds() []keyKind {
	text := func(u uuid.UUID, err error) (any, error) { return u.String(), err }
	binary := func(u uuid.UUID, err error) (any, error) { return u[:], err }
	const asText, asBinary = "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL", "BINARY(16) NOT NULL"
	return []keyKind{
		{"id_lab_auto", "auto-increment", "BIGINT NOT NULL AUTO_INCREMENT", nil},
		{"id_lab_flake", "snowflake", "BIGINT NOT NULL", func(ctx context.Context) (any, error) {
			id, err := c.Snowflake.Next(ctx)
			return int64(id), err
		}},
		{"id_lab_v7", "uuid v7, binary(16)", asBinary, func(context.Context) (any, error) { return binary(uuid.NewV7()) }},
		{"id_lab_v4", "uuid v4, binary(16)", asBinary, func(context.Context) (any, error) { return binary(uuid.NewRandom()) }},
		{"id_lab_v7_text", "uuid v7, char(36)", asText, func(context.Context) (any, error) { return text(uuid.NewV7()) }},
		{"id_lab_v4_text", "uuid v4, char(36)", asText, func(context.Context) (any, error) { return text(uuid.NewRandom()) }},
	}
}

const splitCounter = "index_page_splits"

// Keys fills a table for each kind of key, round by round, and drops the tables. It blocks until then, or until ctx ends.
func Keys(ctx context.Context, c KeysConfig) (result *KeysResult, err error) {
	c = c.withDefaults()
	result = &KeysResult{Rows: c.Rows}
	if err := c.DB.QueryRowContext(ctx, "SELECT VERSION()").Scan(&result.Server); err != nil {
		return result, fmt.Errorf("keys: %w", err)
	}
	restore, err := c.countSplits(ctx, result.Server)
	if err != nil {
		return result, fmt.Errorf("keys: %w", err)
	}
	defer func() { err = errors.Join(err, restore()) }()
	kinds := c.kinds()
	defer func() { err = errors.Join(err, c.drop(context.WithoutCancel(ctx), kinds)) }()
	if err := c.create(ctx, kinds); err != nil {
		return result, fmt.Errorf("keys: %w", err)
	}
	result.Runs, err = c.fill(ctx, kinds)
	return result, err
}

// countSplits makes InnoDB count page splits; restore undoes it.
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
		return nil, fmt.Errorf("count page splits: %w", err)
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

// create creates the tables. Their rows resemble orders: about a hundred bytes, and an index by user.
func (c KeysConfig) create(ctx context.Context, kinds []keyKind) error {
	if err := c.drop(ctx, kinds); err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := c.exec(ctx, "CREATE TABLE "+kind.table+" (id "+kind.column+
			", user_id BIGINT NOT NULL, detail VARCHAR(80) NOT NULL, PRIMARY KEY (id), KEY by_user (user_id))"+
			" ENGINE = InnoDB DEFAULT CHARSET = utf8mb4"); err != nil {
			return err
		}
	}
	return nil
}

func (c KeysConfig) drop(ctx context.Context, kinds []keyKind) error {
	for _, kind := range kinds {
		if err := c.exec(ctx, "DROP TABLE IF EXISTS "+kind.table); err != nil {
			return err
		}
	}
	return nil
}

func (c KeysConfig) exec(ctx context.Context, statement string) error {
	_, err := c.DB.ExecContext(ctx, statement)
	return err
}

// fill fills all tables round by round, and measures.
func (c KeysConfig) fill(ctx context.Context, kinds []keyKind) ([]KeyRun, error) {
	runs, took := make([]KeyRun, len(kinds)), make([]time.Duration, len(kinds))
	for round := range c.Rounds {
		rows := c.Rows*(round+1)/c.Rounds - c.Rows*round/c.Rounds
		for i, kind := range kinds {
			before, err := c.splits(ctx)
			if err != nil {
				return nil, err
			}
			start := time.Now()
			if err := c.insertAll(ctx, kind, rows); err != nil {
				return nil, fmt.Errorf("key %s: %w", kind.name, err)
			}
			took[i] += time.Since(start)
			after, err := c.splits(ctx)
			if err != nil {
				return nil, err
			}
			runs[i].Splits += after - before
		}
	}
	for i, kind := range kinds {
		runs[i].Key, runs[i].RowsPerS = kind.name, float64(c.Rows)/took[i].Seconds()
		if err := c.measure(ctx, kind.table, &runs[i]); err != nil {
			return nil, fmt.Errorf("key %s: %w", kind.name, err)
		}
	}
	return runs, nil
}

// insertAll inserts rows in batches, with several connections.
func (c KeysConfig) insertAll(ctx context.Context, kind keyKind, rows int) error {
	var left atomic.Int64
	left.Store(int64(rows))
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
	if kind.generate != nil {
		columns, row = columns+", id", "(?, ?, ?)"
	}
	args := make([]any, 0, 3*n)
	for range n {
		args = append(args, rand.Int64N(1_000_000), strings.Repeat("x", 80))
		if kind.generate == nil {
			continue
		}
		key, err := kind.generate(ctx)
		if err != nil {
			return err
		}
		args = append(args, key)
	}
	_, err := c.DB.ExecContext(ctx, "INSERT INTO "+kind.table+" ("+columns+") VALUES "+row+strings.Repeat(", "+row, n-1), args...)
	return err
}

// measure reads the sizes of a table's indexes from InnoDB's statistics: those of all allocated pages, up to a megabyte more
// than those in use.
func (c KeysConfig) measure(ctx context.Context, table string, run *KeyRun) error {
	var name, op, kind, text string
	if err := c.DB.QueryRowContext(ctx, "ANALYZE TABLE "+table).Scan(&name, &op, &kind, &text); err != nil {
		return err
	}
	const size = "SELECT stat_value * @@innodb_page_size FROM mysql.innodb_index_stats" +
		" WHERE database_name = DATABASE() AND table_name = ? AND index_name = ? AND stat_name = 'size'"
	if err := c.DB.QueryRowContext(ctx, size, table, "PRIMARY").Scan(&run.TableBytes); err != nil {
		return err
	}
	return c.DB.QueryRowContext(ctx, size, table, "by_user").Scan(&run.IndexBytes)
}
