// Command seckill is the shop: it serves it, shows it, looks after its database and measures it. Each command has a file
// of its own; `seckill --help` lists them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"seckill/cmd/internal/app"
)

// cli is every command of the program.
type cli struct {
	Demo    demoCmd    `cmd:"" help:"Sell a voucher out over HTTP and prove that nothing went wrong. Needs nothing but this program."`
	Serve   serveCmd   `cmd:"" help:"Keep a shop running."`
	Migrate migrateCmd `cmd:"" help:"Bring the tables of the database up to date, or tell whether they are."`
	Audit   auditCmd   `cmd:"" help:"Check every invariant over the database."`
	Compare compareCmd `cmd:"" help:"Run the same sale under several combinations of lock and batch size, and compare."`
	Load    loadCmd    `cmd:"" help:"Send load to a shop that runs somewhere, and judge what comes back."`
	Token   tokenCmd   `cmd:"" help:"Sign a token for development."`
	Consume consumeCmd `cmd:"" help:"Run the consumers of events alone."`
	Outbox  outboxCmd  `cmd:"" help:"Look at events on their way, and bring back those that were given up."`
	Lab     labCmd     `cmd:"" help:"Experiments that show why something is done the way it is."`
	Locks   locksCmd   `cmd:"" help:"See what each lock is worth when its holder loses it."`
	IDs     idsCmd     `cmd:"" name:"ids" help:"Look at ids, and look after their counter."`
	Health  healthCmd  `cmd:"" help:"Ask a shop whether it is well; for health checks of containers."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

const description = `A flash-sale (秒杀) shop that never oversells and never loses an order.

  seckill demo                         a whole sale on this machine, and its verdict
  seckill serve                        an embedded shop at http://127.0.0.1:8080
  seckill serve --mysql-dsn=… --redis-addrs=… --jwt-key=…
                                       a shop on real servers; start as many as you like

Every flag is also a variable: --mysql-dsn is SECKILL_MYSQL_DSN.`

func main() {
	os.Exit(runInterruptible(os.Args[1:], os.Stdout, os.Stderr))
}

// runInterruptible runs until Ctrl-C or SIGTERM, which end commands in good order. A second one of either ends the
// program at once, as if it had not been caught.
func runInterruptible(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // back to what signals do by themselves
	return run(ctx, args, stdout, stderr)
}

// errVerdict ends a command with status 1 after it has told by itself what is wrong.
var errVerdict = errors.New("the verdict is bad")

// run is main with its surroundings passed in. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	redis.SetLogger(silent{}) // what its client would print comes back as errors, and is told once
	parser, err := newParser(stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "seckill:", err)
		return 2
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "seckill: %v\n", err)
		return 2
	}
	if command == nil { // help was printed
		return 0
	}
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run(&output{stdout: stdout, stderr: stderr})
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errVerdict):
		return 1
	default:
		fmt.Fprintf(stderr, "seckill: %v\n", err)
		return 1
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// output is where a command writes to.
type output struct{ stdout, stderr io.Writer }

// json prints v for programs, and so that people can read it too.
func (o *output) json(v any) error {
	encoder := json.NewEncoder(o.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// logger writes to stderr as the options say.
func (o *output) logger(opts app.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(opts.LogLevel)) // kong has checked it
	options := &slog.HandlerOptions{Level: level}
	if opts.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(o.stderr, options))
	}
	return slog.New(slog.NewTextHandler(o.stderr, options))
}

func newParser(stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(new(cli),
		kong.Name("seckill"),
		kong.Description(description),
		kong.DefaultEnvars("SECKILL"),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
}
