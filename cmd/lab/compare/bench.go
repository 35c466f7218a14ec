package compare

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/redis/go-redis/v9"

	"seckill/cmd/internal/cli"
	"seckill/repository/lock/redislock"
)

// bench is what all turns share.
type bench struct {
	cmd     *Command
	program string // the seckill program
	built   string // directory of the program that was built for the comparison; empty if none was
	key     string
	tokens  *cli.Tokens
	redis   map[string][]redis.UniversalClient // the servers of each lock that has any
	machine environment
	log     *slog.Logger
}

func newBench(ctx context.Context, c *Command, out *cli.Output) (b *bench, err error) {
	b = &bench{cmd: c, key: rand.Text() + rand.Text(), machine: environment{Machine: cli.ThisMachine(), Database: "SQLite, embedded"}, log: slog.New(slog.NewTextHandler(out.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if b.tokens, err = cli.NewTokens([]byte(b.key)); err != nil {
		return nil, err
	}
	if b.program = c.Program; b.program == "" {
		if err := b.build(ctx); err != nil {
			b.close()
			return nil, err
		}
	}
	users := int64(cli.MaxPrepared)
	if c.Orders > 0 {
		users = c.Orders
	}
	b.tokens.Prepare(cli.FirstBuyer, users)
	if c.Embedded() {
		return b, nil
	}
	if err := b.openRedis(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// openRedis opens the servers of the locks, to read what they count.
func (b *bench) openRedis(ctx context.Context) error {
	c := b.cmd
	b.redis = map[string][]redis.UniversalClient{}
	config := c.Servers.RedisConfig(c.RedisAddrs)
	if slices.Contains(c.Lock, "redis") {
		if err := b.addRedis(ctx, "redis", config); err != nil {
			return err
		}
	}
	if slices.Contains(c.Lock, "redlock") {
		for _, addr := range c.RedlockAddrs {
			if err := b.addRedis(ctx, "redlock", redislock.Config{Addrs: []string{addr}, Username: c.RedisUsername, Password: c.RedisPassword}); err != nil {
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
	b.machine.Redis, err = describeRedis(ctx, client)
	return err
}

// build builds the seckill program in a temporary directory.
func (b *bench) build(ctx context.Context) (err error) {
	if b.built, err = os.MkdirTemp("", "seckill-compare-"); err != nil {
		return err
	}
	b.program = filepath.Join(b.built, "seckill")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", b.program, "seckill/cmd/seckill").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the shop (--program names one that is built): %w\n%s", err, out)
	}
	return nil
}

func (b *bench) close() {
	if b.built != "" {
		_ = os.RemoveAll(b.built)
	}

	for _, clients := range b.redis {
		for _, client := range clients {
			_ = client.Close() // it was only read from
		}
	}
}
