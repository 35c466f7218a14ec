package repository

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	gooselock "github.com/pressly/goose/v3/lock"
	gormmysql "gorm.io/driver/mysql"
)

var mysqlDialect = dialect{
	name:  "mysql",
	goose: goose.DialectMySQL,
	migrationLock: func() ([]goose.ProviderOption, error) {
		locker, err := gooselock.NewMySQLTableLocker(gooselock.WithTableLockTimeout(200*time.Millisecond, 600))
		return []goose.ProviderOption{goose.WithLocker(locker)}, err
	},

	now:         "UTC_TIMESTAMP(3)",
	nowAtRow:    "SYSDATE(3)", // the session's time zone is UTC
	addMillis:   func(time, millis string) string { return time + " + INTERVAL " + millis + " * 1000 MICROSECOND" },
	millisSince: func(time string) string { return "TIMESTAMPDIFF(MICROSECOND, " + time + ", UTC_TIMESTAMP(3)) DIV 1000" },
	greatest:    "GREATEST",

	// INSERT IGNORE would not do: it accepts invalid values as well.
	onConflictDoNothing: func(table, key string) string { return " ON DUPLICATE KEY UPDATE " + key + " = " + table + "." + key },
	onConflict:          func(_, set string) string { return " ON DUPLICATE KEY UPDATE " + set },
	// The server would choose by statistics, which are late for a table whose rows come and go. A statement that scanned
	// instead would lock the rows of others.
	useIndex: func(name string) string { return " FORCE INDEX (" + name + ")" },

	forShare:            " LOCK IN SHARE MODE", // MariaDB does not know FOR SHARE
	forUpdate:           " FOR UPDATE",
	forUpdateSkipLocked: " FOR UPDATE SKIP LOCKED",
	multiStatement:      true,
}

// serverKind holds the differences between MySQL and MariaDB. Both use mysqlDialect.
type serverKind struct {
	product      string
	major, minor int // the oldest version that is supported: older ones lack CHECK constraints or SKIP LOCKED
	// isolation is the session variable for the isolation level. MySQL 8 renamed it; MariaDB 11.1 did, and keeps the old name.
	isolation string
}

var (
	mysqlServer   = serverKind{product: "MySQL", major: 8, minor: 4, isolation: "transaction_isolation"}
	mariadbServer = serverKind{product: "MariaDB", major: 10, minor: 6, isolation: "tx_isolation"}
)

// serverOf recognizes a server by its version, such as "9.7.0" or "10.11.19-MariaDB-0+deb12u1". It refuses servers that
// are too old.
func serverOf(version string) (serverKind, error) {
	kind, number := mysqlServer, version
	if strings.Contains(strings.ToLower(version), "mariadb") {
		kind, number = mariadbServer, strings.TrimPrefix(version, "5.5.5-") // a prefix for old replicas
	}
	var major, minor int
	if _, err := fmt.Sscanf(number, "%d.%d", &major, &minor); err != nil {
		return kind, fmt.Errorf("database server: cannot read its version %q", version)
	}
	if major < kind.major || major == kind.major && minor < kind.minor {
		return kind, fmt.Errorf("database server: %s is too old, the shop needs %s %d.%d or later", version, kind.product, kind.major, kind.minor)
	}
	return kind, nil
}

// PoolOptions bound the connections to a server. The zero value of a field stands for its default.
type PoolOptions struct {
	MaxOpen int // connections at the same time; default 32
}

const (
	// sessionIdle is how long the server keeps an idle session. After it, the server rolls back the transaction of a client
	// that was paused or cut off, and so releases the hot row. The pool closes idle connections well before.
	sessionIdle = 10 * time.Second
	// lockWait is how long a statement waits for a row lock before it fails and is tried again.
	lockWait = 5 * time.Second
)

// OpenMySQL connects to MySQL 8.4 or later, or MariaDB 10.6 or later. The dsn has the format of go-sql-driver.
// The settings that the shop relies on (UTC, affected rows, isolation, strict mode, timeouts) replace those of the dsn.
// ctx bounds the first connection only.
func OpenMySQL(ctx context.Context, dsn string, opts PoolOptions, log *slog.Logger) (*DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql dsn: %w (it looks like user:password@tcp(host:3306)/database)", err)
	}
	if cfg.DBName == "" {
		return nil, errors.New("mysql dsn: names no database (it looks like user:password@tcp(host:3306)/database)")
	}
	cfg.Logger = &mysql.NopLogger{} // errors are returned, and logged once with their context
	version, packet, err := askServer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	kind, err := serverOf(version)
	if err != nil {
		return nil, err
	}
	if err := applySessionSettings(cfg, kind); err != nil {
		return nil, fmt.Errorf("mysql dsn: %w", err)
	}
	db, err := openPool(cfg, cmp.Or(max(opts.MaxOpen, 0), 32), log)
	if err != nil {
		return nil, err
	}
	db.version, db.maxOrders = version, max(1, packet/orderBytes)
	patient := cfg.Clone()
	patient.ReadTimeout = 0
	if db.longQueries, err = openPool(patient, 4, log); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// askServer asks for the server's version, and for how many bytes it accepts as one message, over a connection without the
// settings that depend on the version.
func askServer(ctx context.Context, cfg *mysql.Config) (version string, packet int, err error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return "", 0, fmt.Errorf("mysql dsn: %w", err)
	}
	pool := sql.OpenDB(connector)
	defer func() { _ = pool.Close() }()
	if err := pool.QueryRowContext(ctx, "SELECT VERSION(), @@max_allowed_packet").Scan(&version, &packet); err != nil {
		return "", 0, fmt.Errorf("mysql at %s: %w", cfg.Addr, err)
	}
	return version, packet, nil
}

// openPool opens a pool of at most limit connections.
func openPool(cfg *mysql.Config, limit int, log *slog.Logger) (*DB, error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql dsn: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(limit)
	pool.SetMaxIdleConns(limit)
	pool.SetConnMaxIdleTime(sessionIdle / 2)
	pool.SetConnMaxLifetime(30 * time.Minute) // after a failover, or behind a load balancer, connections move on
	return open(gormmysql.New(gormmysql.Config{Conn: pool, SkipInitializeWithVersion: true}), pool, mysqlDialect, log)
}

// applySessionSettings sets what the shop relies on. The dsn may choose the rest.
func applySessionSettings(cfg *mysql.Config, kind serverKind) error {
	cfg.ParseTime = true
	cfg.Loc = time.UTC
	cfg.ClientFoundRows = false // affected rows are rows that changed: the guard counts on it
	cfg.ColumnsWithAlias = false
	cfg.InterpolateParams = true
	cfg.MultiStatements = true // see placeInOneMessage; safe: all values are parameters, which the driver escapes
	cfg.RejectReadOnly = true  // after a failover, connections to the demoted server are closed
	cfg.MaxAllowedPacket = 0   // ask the server, so that a batch that is too large fails before it is sent
	cfg.CheckConnLiveness = true
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, 15*time.Second)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, 15*time.Second)
	session := map[string]string{
		"time_zone":                "'+00:00'",
		"autocommit":               "1",
		"sql_mode":                 "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
		kind.isolation:             "'READ-COMMITTED'",
		"innodb_lock_wait_timeout": fmt.Sprint(int(lockWait / time.Second)),
		"wait_timeout":             fmt.Sprint(int(sessionIdle / time.Second)),
	}
	for name, value := range cfg.Params {
		if _, ours := session[strings.ToLower(name)]; !ours { // variables are case-insensitive
			session[name] = value
		}
	}
	cfg.Params = session
	return cfg.Apply(mysql.TimeTruncate(0), mysql.Charset("utf8mb4", ""))
}
