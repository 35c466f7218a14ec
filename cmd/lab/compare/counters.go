package compare

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// work counts what the servers did since their start.
type work struct {
	Transactions int64 // committed
	Commands     int64 // of Redis, including those inside of scripts
	Scripts      int64 // of Redis; each is one request
}

// counter reads the counts of one server, and adds them to w.
type counter func(ctx context.Context, w *work) error

// readWork reads all counters.
func readWork(ctx context.Context, counters []counter) (w work, err error) {
	for _, count := range counters {
		err = errors.Join(err, count(ctx, &w))
	}
	return w, err
}

// countCommits counts COMMIT statements: those of one database if the performance schema counts them, else those of the
// whole server, which may have other users. how tells which.
func countCommits(ctx context.Context, db *sql.DB, database string) (c counter, how string) {
	if countsByDatabase(ctx, db) {
		return func(ctx context.Context, w *work) error {
			return db.QueryRowContext(ctx, `SELECT COALESCE(SUM(COUNT_STAR), 0) FROM performance_schema.events_statements_summary_by_digest
				WHERE SCHEMA_NAME = ? AND DIGEST_TEXT = 'COMMIT'`, database).Scan(&w.Transactions)
		}, "COMMIT statements in the shop's database, from the performance schema"
	}
	return func(ctx context.Context, w *work) error {
		var name string
		return db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Com_commit'").Scan(&name, &w.Transactions)
	}, "COMMIT statements of the whole server (Com_commit)"
}

// countsByDatabase reports whether the performance schema is on, readable, and not full. A full one counts statements of
// new databases without a digest.
func countsByDatabase(ctx context.Context, db *sql.DB) bool {
	var on bool
	if err := db.QueryRowContext(ctx, "SELECT @@performance_schema").Scan(&on); err != nil || !on {
		return false
	}
	var full int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST IS NULL").Scan(&full)
	return err == nil && full == 0
}

// countBatches reads the number of commits from the metrics of an embedded shop, because SQLite does not count them.
func countBatches(url string) (c counter, how string) {
	return func(ctx context.Context, w *work) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			if value, ok := strings.CutPrefix(lines.Text(), "seckill_commit_batch_orders_count "); ok {
				n, err := strconv.ParseFloat(value, 64)
				w.Transactions = int64(n)
				return err
			}
		}
		return errors.Join(lines.Err(), errors.New("the shop's metrics have no number of batches"))
	}, "batches, from the shop's metrics"
}

// countCommands counts the commands of Redis, on every master of a cluster.
func countCommands(client redis.UniversalClient) counter {
	return func(ctx context.Context, w *work) error {
		cluster, ok := client.(*redis.ClusterClient)
		if !ok {
			return addCommands(ctx, client, w)
		}
		var mu sync.Mutex
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			return addCommands(ctx, node, w)
		})
	}
}

func addCommands(ctx context.Context, client redis.UniversalClient, w *work) error {
	text, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	for line := range strings.Lines(text) {
		name, calls, ok := parseCommandStat(strings.TrimSpace(line))
		if !ok || name == "info" { // sent by addCommands
			continue
		}
		w.Commands += calls
		if name == "evalsha" || name == "eval" || name == "fcall" {
			w.Scripts += calls
		}
	}
	return nil
}

// parseCommandStat reads lines such as "cmdstat_evalsha:calls=12,usec=34,usec_per_call=2.83".
func parseCommandStat(line string) (name string, calls int64, ok bool) {
	rest, ok := strings.CutPrefix(line, "cmdstat_")
	if !ok {
		return "", 0, false
	}
	name, rest, ok = strings.Cut(rest, ":calls=")
	if !ok {
		return "", 0, false
	}
	number, _, _ := strings.Cut(rest, ",")
	calls, err := strconv.ParseInt(number, 10, 64)
	return name, calls, err == nil
}
