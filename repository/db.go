// Package repository keeps the shop in a database: MySQL, MariaDB, or SQLite for the embedded mode. Rows and SQL stay in
// here; domain types come out. Its conditions are the guard of the shop: they hold whatever stands in front of them.
package repository

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	sqlite "github.com/libtnb/sqlite"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// DB is an open database. It is safe for use by many goroutines; Close it when the last of them is done.
type DB struct {
	gorm    *gorm.DB
	slow    *DB // for what takes minutes, such as an audit: no time-out but the context's; nil: this one does
	sql     *sql.DB
	dialect dialect
	version string
	packet  int // bytes of a message to the server, at most; 0: there is no such bound
	log     *slog.Logger
	// connect takes a connection out of the pool; a field, so that a test can put a wire in between.
	connect func(context.Context) (connection, error)
}

// PoolOptions bound the connections to a server. The zero value of a field stands for its default.
type PoolOptions struct {
	MaxOpen int // connections at the same time; default 32
}

// sessionIdle is how long the server keeps an idle session, and with it the locks of a transaction whose client was
// paused or cut off in the middle: the hot row must not wait for somebody who is gone. The pool lets go of idle
// connections well before.
const sessionIdle = 10 * time.Second

// lockWait is how long a statement waits for a row lock before it is rolled back and tried again.
const lockWait = 5 * time.Second

// OpenMySQL connects to MySQL 8.4 or later, or MariaDB 10.6 or later; it refuses others. The dsn is that of
// go-sql-driver; what the shop relies on (UTC, affected rows, isolation, strict mode, time-outs) is set here whatever
// the dsn says. ctx bounds the first connection only.
func OpenMySQL(ctx context.Context, dsn string, opts PoolOptions, log *slog.Logger) (*DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql dsn: %w (it looks like user:password@tcp(host:3306)/database)", err)
	}
	if cfg.DBName == "" {
		return nil, errors.New("mysql dsn: names no database (it looks like user:password@tcp(host:3306)/database)")
	}
	server, err := askServer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := settle(cfg, server); err != nil {
		return nil, fmt.Errorf("mysql dsn: %w", err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql dsn: %w", err)
	}
	pool := sql.OpenDB(connector)
	limit := opts.MaxOpen
	if limit <= 0 {
		limit = 32
	}
	pool.SetMaxOpenConns(limit)
	pool.SetMaxIdleConns(limit)
	pool.SetConnMaxIdleTime(sessionIdle / 2)
	pool.SetConnMaxLifetime(30 * time.Minute) // lets a load balancer or a failover move us
	db, err := open(gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}), pool, mysqlDialect, log)
	if err != nil {
		return nil, err
	}
	db.version, db.packet = server.text, server.packet
	patient := cfg.Clone()
	patient.ReadTimeout = 0
	if db.slow, err = openPatient(patient, log); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openPatient opens a few connections more, over which a statement may take its time before the first byte comes back.
func openPatient(cfg *mysql.Config, log *slog.Logger) (*DB, error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql dsn: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(4)
	pool.SetMaxIdleConns(1)
	pool.SetConnMaxIdleTime(sessionIdle / 2)
	return open(gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}), pool, mysqlDialect, log)
}

// patient is the database for what may take minutes.
func (db *DB) patient() *DB {
	if db.slow != nil {
		return db.slow
	}
	return db
}

// settle sets what the shop relies on. A dsn may choose the rest.
func settle(cfg *mysql.Config, server serverInfo) error {
	cfg.ParseTime = true
	cfg.Loc = time.UTC
	cfg.ClientFoundRows = false // affected rows are rows that changed: the guard counts on it
	cfg.ColumnsWithAlias = false
	cfg.InterpolateParams = true
	cfg.MultiStatements = true // see commitMessage; no SQL is made of what a client sends
	cfg.RejectReadOnly = true  // after a failover a connection to the demoted server is not used again
	cfg.MaxAllowedPacket = 0   // ask the server, so that a batch that is too large fails before it is sent
	cfg.CheckConnLiveness = true
	cfg.Logger = &mysql.NopLogger{} // its errors come back to us and are logged once, with their context
	for timeout, byDefault := range map[*time.Duration]time.Duration{
		&cfg.Timeout: 5 * time.Second, &cfg.ReadTimeout: 15 * time.Second, &cfg.WriteTimeout: 15 * time.Second,
	} {
		if *timeout == 0 {
			*timeout = byDefault
		}
	}
	session := map[string]string{
		"time_zone":                "'+00:00'",
		"autocommit":               "1",
		"sql_mode":                 "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
		server.isolationVariable(): "'READ-COMMITTED'",
		"innodb_lock_wait_timeout": fmt.Sprint(int(lockWait / time.Second)),
		"wait_timeout":             fmt.Sprint(int(sessionIdle / time.Second)),
	}
	for name, value := range cfg.Params {
		if _, ours := session[strings.ToLower(name)]; !ours { // the server does not tell Time_Zone from time_zone
			session[name] = value
		}
	}
	cfg.Params = session
	return cfg.Apply(mysql.TimeTruncate(0), mysql.Charset("utf8mb4", ""))
}

// OpenSQLite opens or creates the database file of the embedded mode. One connection serves everybody in turn, since
// SQLite has one writer: waiting for it in Go is fair, its own busy handler is not.
func OpenSQLite(path string, log *slog.Logger) (*DB, error) {
	dsn := "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(FULL)&_time_integer_format=unix_milli&_inttotime=1"
	pool, err := sql.Open(sqlite.DriverName, dsn)
	if err != nil {
		return nil, fmt.Errorf("sqlite %s: %w", path, err)
	}
	pool.SetMaxOpenConns(1)
	return open(sqlite.New(sqlite.Config{Conn: pool}), pool, sqliteDialect, log)
}

func open(d gorm.Dialector, pool *sql.DB, own dialect, log *slog.Logger) (*DB, error) {
	if err := checkGuard(log); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	db, err := gorm.Open(d, &gorm.Config{
		SkipDefaultTransaction: true, // transactions begin in inTx and commitMessage, nowhere else
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard, // errors are returned and logged once, by whoever handles them
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), pool.Close())
	}
	connect := func(ctx context.Context) (connection, error) { return pool.Conn(ctx) }
	return &DB{gorm: db, sql: pool, dialect: own, log: log, connect: connect}, nil
}

// Ping asks the server for a sign of life.
func (db *DB) Ping(ctx context.Context) error { return db.sql.PingContext(ctx) }

// Close closes all connections.
func (db *DB) Close() error {
	if db.slow != nil {
		return errors.Join(db.slow.Close(), db.sql.Close())
	}
	return db.sql.Close()
}

// Stats tells how the connections are used.
func (db *DB) Stats() sql.DBStats { return db.sql.Stats() }

// Name is the kind of database, "mysql" (also for MariaDB) or "sqlite".
func (db *DB) Name() string { return db.dialect.name }

// Version is what the server says about itself; empty for SQLite.
func (db *DB) Version() string { return db.version }

// session is a gorm handle bound to ctx.
func (db *DB) session(ctx context.Context) *gorm.DB { return db.gorm.WithContext(ctx) }
