package compare

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/cmd/internal/cli"
)

// platform is what the figures were measured on.
type platform struct {
	cli.Machine
	Database string `json:"database"`
	Redis    string `json:"redis,omitempty"`
	Counted  string `json:"transactions_are"`
}

// describeDatabase names the server and the settings that decide whether a commit is durable.
func describeDatabase(ctx context.Context, db *sql.DB) (string, error) {
	var version, flush, binlog, sync string
	err := db.QueryRowContext(ctx, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog").Scan(&version, &flush, &binlog, &sync)
	if err != nil {
		return "", err
	}
	if !strings.Contains(strings.ToLower(version), "mariadb") {
		version = "MySQL " + version
	}
	return fmt.Sprintf("%s, innodb_flush_log_at_trx_commit=%s, log_bin=%s, sync_binlog=%s", version, flush, binlog, sync), nil
}

// describeRedis names the server.
func describeRedis(ctx context.Context, client redis.UniversalClient) (string, error) {
	text, err := client.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	for line := range strings.Lines(text) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			return "Redis " + version, nil
		}
	}
	return "Redis", nil
}
