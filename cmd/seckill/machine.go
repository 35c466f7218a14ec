package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/redis/go-redis/v9"
)

// machine is what figures were measured on. Without it they mean nothing.
type machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"` // that the process may use
	System   string `json:"system"`
	Go       string `json:"go"`
	Program  string `json:"program"`
	Database string `json:"database"`
	Redis    string `json:"redis,omitempty"`
	Counted  string `json:"transactions_are"`
}

func describeMachine() machine {
	return machine{
		CPU: cpuModel(), Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Program: "seckill " + buildVersion(), Database: "SQLite, embedded",
	}
}

// cpuModel is "" where the system does not tell.
func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
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

func (m *machine) String() string {
	parts := []string{fmt.Sprintf("%d cores", m.Cores), m.System, m.Go, m.Program, m.Database}
	if m.CPU != "" {
		parts = append([]string{m.CPU}, parts...)
	}
	if m.Redis != "" {
		parts = append(parts, m.Redis)
	}
	return strings.Join(parts, "; ")
}
