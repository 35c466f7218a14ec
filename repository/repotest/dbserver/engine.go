package dbserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// Engine names a kind of database server.
type Engine string

// The engines that the shop is tested on.
const (
	MariaDB Engine = "mariadb"
	MySQL   Engine = "mysql"
)

// The official images that an engine runs from; MariaDB only where it is not installed.
const (
	MariaDBImage = "mariadb:11.8"
	MySQLImage   = "mysql:9.7"
)

// Engines lists every engine, in the order in which tests go through them.
func Engines() []Engine { return []Engine{MariaDB, MySQL} }

// Variable names the environment variable with the DSN of the server of an engine that all tests share.
func Variable(engine Engine) string {
	return "SECKILL_TEST_" + strings.ToUpper(string(engine)) + "_DSN"
}

// settings are the options of both engines. Production should have them, since the shop's
// guarantees depend on them: a commit is on disk, in the redo log and in the binary log, before it is answered.
// MariaDB's own defaults write no binary log at all.
func settings(port int) []string {
	return []string{
		"--port=" + strconv.Itoa(port),
		"--bind-address=127.0.0.1",
		"--skip-name-resolve",
		"--innodb-flush-log-at-trx-commit=1",
		"--log-bin=binlog",
		"--sync-binlog=1",
		"--binlog-format=ROW",
		"--server-id=1",
		"--innodb-buffer-pool-size=256M",
		"--max-connections=1000",
		"--character-set-server=utf8mb4",
	}
}

func newRunner(engine Engine, port int) (runner, error) {
	switch engine {
	case MariaDB:
		if program, err := Program("mariadbd"); err == nil {
			return newProcess(program, settings(port))
		}
		return newContainer(MariaDBImage, port)
	case MySQL:
		return newContainer(MySQLImage, port, "--mysqlx=OFF")
	}
	return nil, fmt.Errorf("unknown database engine %q", engine)
}

// Program finds a server's program on PATH or in /usr/sbin, where Debian puts servers and which the PATH of
// ordinary users leaves out.
func Program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return exec.LookPath("/usr/sbin/" + name)
	}
	return path, nil
}

// freePort finds a port that nobody listens on. It stays below the range that the kernel takes the ports of
// outgoing connections from (32768 on Linux): there, a client could take the port while its server is down.
func freePort() (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port on 127.0.0.1 between 20000 and 32000")
}
