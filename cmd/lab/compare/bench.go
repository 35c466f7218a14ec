package compare

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/cmd/internal/cli"
	"seckill/repository/lock/redislock"
)

// bench is what all trials share.
type bench struct {
	cmd        *Command
	program    string // the seckill program
	buildDir   string // where the program was built; empty if --program names it
	key        string // signs the tokens
	tokens     *cli.Tokens
	redis      map[string][]redis.UniversalClient // the servers of each lock
	measuredOn platform
	log        *slog.Logger
}

// newBench builds the shop, signs tokens and connects to Redis. Close it.
func newBench(ctx context.Context, c *Command, out *cli.Output) (b *bench, err error) {
	b = &bench{
		cmd: c, program: c.Program, key: rand.Text() + rand.Text(), redis: map[string][]redis.UniversalClient{},
		measuredOn: platform{Machine: cli.ThisMachine(), Database: "SQLite, embedded"}, log: out.Logger("warn", "text"),
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.program == "" {
		if err = b.build(ctx); err != nil {
			return b, err
		}
	}
	if b.tokens, err = cli.NewTokens([]byte(b.key)); err != nil {
		return b, err
	}
	b.tokens.Prepare(cli.FirstBuyer, cmp.Or(c.Orders, cli.MaxPrepared))
	if c.Embedded() {
		return b, nil
	}
	return b, b.openRedis(ctx)
}

// build builds the seckill program in a temporary directory.
func (b *bench) build(ctx context.Context) (err error) {
	if b.buildDir, err = os.MkdirTemp("", "seckill-compare-"); err != nil {
		return err
	}
	b.program = filepath.Join(b.buildDir, "seckill")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", b.program, "seckill/cmd/seckill").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the shop (--program can name one): %w\n%s", err, out)
	}
	return nil
}

// openRedis connects to the servers of the locks, to read their counters.
func (b *bench) openRedis(ctx context.Context) error {
	c := b.cmd
	if slices.Contains(c.Lock, "redis") {
		if err := b.addRedis(ctx, "redis", c.RedisConfig(c.RedisAddrs)); err != nil {
			return err
		}
	}
	if slices.Contains(c.Lock, "redlock") {
		for _, addr := range c.RedlockAddrs {
			config := redislock.Config{Addrs: []string{addr}, Username: c.RedisUsername, Password: c.RedisPassword}
			if err := b.addRedis(ctx, "redlock", config); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) addRedis(ctx context.Context, lock string, config redislock.Config) error {
	client, err := redislock.NewClient(config)
	if err != nil {
		return err
	}
	b.redis[lock] = append(b.redis[lock], client)
	b.measuredOn.Redis, err = describeRedis(ctx, client)
	return err
}

func (b *bench) close() {
	for _, clients := range b.redis {
		for _, client := range clients {
			_ = client.Close() // it was only read from
		}
	}
	if b.buildDir != "" {
		_ = os.RemoveAll(b.buildDir)
	}
}

// environment returns the options of serve as variables, so that secrets do not appear in the list of processes.
func (b *bench) environment(c combination, db *tempDatabase) []string {
	s := &b.cmd.Servers
	return append(os.Environ(),
		"GOGC="+cmp.Or(os.Getenv("GOGC"), "400"), // as in docker-compose.yml: 8 % more orders a second
		"SECKILL_LISTEN=127.0.0.1:0",
		"SECKILL_LOG_FORMAT=json",
		"SECKILL_LOG_LEVEL=info",
		"SECKILL_ACCESS_LOG=0",
		"SECKILL_METRICS=true",
		"SECKILL_JWT_KEY="+b.key,
		"SECKILL_LOCK="+c.Lock,
		"SECKILL_COMMIT_BATCH_MAX="+strconv.Itoa(c.BatchMax),
		"SECKILL_MIGRATE=true",
		"SECKILL_DATA="+db.dir,
		"SECKILL_MYSQL_DSN="+db.dsn,
		"SECKILL_MYSQL_CONNS="+strconv.Itoa(s.MySQLConns),
		"SECKILL_REDIS_ADDRS="+strings.Join(s.RedisAddrs, ","),
		"SECKILL_REDIS_CLUSTER="+strconv.FormatBool(s.RedisCluster),
		"SECKILL_REDIS_SENTINEL_MASTER="+s.RedisSentinelMaster,
		"SECKILL_REDIS_SENTINEL_PASSWORD="+s.RedisSentinelPassword,
		"SECKILL_REDIS_USERNAME="+s.RedisUsername,
		"SECKILL_REDIS_PASSWORD="+s.RedisPassword,
		"SECKILL_REDIS_DB="+strconv.Itoa(s.RedisDB),
		"SECKILL_REDLOCK_ADDRS="+strings.Join(b.cmd.RedlockAddrs, ","),
		"SECKILL_ZOOKEEPER_ADDRS="+strings.Join(s.ZooKeeperAddrs, ","),
	)
}
