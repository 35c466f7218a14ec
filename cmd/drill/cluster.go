package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/compose"
	"seckill/repository"
)

// The services of docker-compose.yml that drills name.
const (
	gateway        = "nginx"
	shop1          = "shop-1"
	shop2          = "shop-2"
	eventsConsumer = "consumer"
	mysqlServer    = "mysql"
	broker         = "rabbitmq"
)

var (
	instances        = []string{shop1, shop2}
	redisServers     = []string{"redis-1", "redis-2", "redis-3"}
	sentinels        = []string{"sentinel-1", "sentinel-2", "sentinel-3"}
	redlockServers   = []string{"redlock-1", "redlock-2", "redlock-3", "redlock-4", "redlock-5"}
	zookeeperServers = []string{"zookeeper-1", "zookeeper-2", "zookeeper-3"}
)

// publishedPorts are the ports that drills connect to; 0 is the one that the compose file publishes.
var publishedPorts = map[string]int{gateway: 0, shop1: 8080, shop2: 8080, eventsConsumer: 8080, mysqlServer: 3306}

// cluster is a shop that is up, with connections to its database.
type cluster struct {
	*compose.Project
	passwords map[string]string // of the database's users
	db        *repository.DB
	root      *sql.DB // as the database's administrator
	dirty     bool    // a drill failed here: the next one needs a new cluster
}

// connect opens the database as the shop does and as its administrator.
func (c *cluster) connect(ctx context.Context) (err error) {
	opts := app.Options{Servers: app.Servers{MySQLDSN: c.dsn("seckill").FormatDSN(), MySQLConns: 8}}
	silent := slog.New(slog.DiscardHandler) // drills expect the database to be away
	if c.db, err = app.OpenDatabase(ctx, &opts, silent); err != nil {
		return err
	}
	connector, err := mysql.NewConnector(c.dsn("root"))
	if err != nil {
		return err
	}
	c.root = sql.OpenDB(connector)
	return c.root.PingContext(ctx)
}

func (c *cluster) dsn(user string) *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", c.Addr(mysqlServer), "seckill"
	cfg.User, cfg.Passwd = user, c.passwords[user]
	cfg.Logger = &mysql.NopLogger{} // the errors are also returned
	return cfg
}

// clean empties the tables that a drill fills, so that each verdict is about one drill.
func (c *cluster) clean(ctx context.Context) error {
	for _, table := range []string{
		"voucher_order", "outbox_event", "payment", "consume_record", "points_entry", "voucher_restock", "voucher_stock", "voucher",
	} {
		if _, err := c.root.ExecContext(ctx, "TRUNCATE TABLE "+table); err != nil {
			return fmt.Errorf("empty %s: %w", table, err)
		}
	}
	return nil
}

// queryTimeout bounds a query, since the database may be frozen.
const queryTimeout = 20 * time.Second

// number runs a query for one number.
func (c *cluster) number(ctx context.Context, query string, args ...any) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err = c.root.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

// get requests a page of an instance. It waits a second at most.
func (c *cluster) get(ctx context.Context, instance, path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Addr(instance)+path, nil)
	if err != nil {
		return 0, "", err
	}
	request.Close = true // a connection from before a fault says nothing about the time after it
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, string(text), err
}

// metric reads a metric of an instance by its name and labels, such as seckill_breaker_open{breaker="lock"}. A missing
// metric is 0, since nothing was counted yet.
func (c *cluster) metric(ctx context.Context, instance, name string) (float64, error) {
	status, body, err := c.get(ctx, instance, "/metrics")
	if err != nil {
		return 0, err
	}
	if status != http.StatusOK {
		return 0, fmt.Errorf("%s: /metrics answers %d", instance, status)
	}
	return parseMetric(body, name)
}

func parseMetric(page, name string) (float64, error) {
	lines := bufio.NewScanner(strings.NewReader(page))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, lines.Err()
}
