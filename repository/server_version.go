package repository

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// serverInfo is what decides between the dialects of MySQL and MariaDB, and how much the server takes at once.
type serverInfo struct {
	text         string
	mariadb      bool
	major, minor int
	packet       int // bytes of a message to the server, at most
}

// askServer asks the server over a connection of its own, without the settings that depend on the answer.
func askServer(ctx context.Context, cfg *mysql.Config) (serverInfo, error) {
	plain := cfg.Clone()
	plain.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(plain)
	if err != nil {
		return serverInfo{}, fmt.Errorf("mysql dsn: %w", err)
	}
	pool := sql.OpenDB(connector)
	defer func() { _ = pool.Close() }()
	var text string
	var packet int
	if err := pool.QueryRowContext(ctx, "SELECT VERSION(), @@max_allowed_packet").Scan(&text, &packet); err != nil {
		return serverInfo{}, fmt.Errorf("mysql at %s: %w", cfg.Addr, err)
	}
	server, err := parseServerVersion(text)
	if err != nil {
		return serverInfo{}, err
	}
	server.packet = packet
	return server, server.supported()
}

// parseServerVersion reads texts such as "9.7.0" and "10.11.19-MariaDB-0+deb12u1". Some MariaDB servers put "5.5.5-"
// in front for the sake of old replicas.
func parseServerVersion(text string) (serverInfo, error) {
	v := serverInfo{text: text, mariadb: strings.Contains(strings.ToLower(text), "mariadb")}
	number := text
	if v.mariadb {
		number = strings.TrimPrefix(number, "5.5.5-")
	}
	parts := strings.SplitN(number, ".", 3)
	var err error
	if len(parts) >= 2 {
		if v.major, err = strconv.Atoi(parts[0]); err == nil {
			v.minor, err = strconv.Atoi(parts[1])
		}
	}
	if err != nil || len(parts) < 2 {
		return v, fmt.Errorf("database server: cannot make sense of its version %q", text)
	}
	return v, nil
}

// supported refuses servers that are too old: they lack CHECK constraints, or SKIP LOCKED, or are without support.
func (v serverInfo) supported() error {
	name, major, minor := "MySQL", 8, 4
	if v.mariadb {
		name, major, minor = "MariaDB", 10, 6
	}
	if v.major > major || v.major == major && v.minor >= minor {
		return nil
	}
	return fmt.Errorf("database server: %s is too old, the shop needs %s %d.%d or later", v.text, name, major, minor)
}

// isolationVariable is the session variable that sets the isolation level. MySQL 8 renamed it, MariaDB did in 11.1 but
// keeps the old name.
func (v serverInfo) isolationVariable() string {
	if v.mariadb {
		return "tx_isolation"
	}
	return "transaction_isolation"
}
