// Package cli has what the command lines of the programs share: parsing, signals, exit status, output, and the tokens of
// users who send load.
package cli

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
)

// Program describes a command line. Commands is a pointer to a struct as kong reads it; the Run method of each command
// may take a context.Context, a *kong.Context and an *Output.
type Program struct {
	Name        string
	Description string
	Commands    any
}

// ErrFailed ends a command with status 1. The command has printed what is wrong.
var ErrFailed = errors.New("the command found something wrong")

// Main runs the program until it ends, or until Ctrl-C or SIGTERM cancels its context. The second signal kills the
// program. Main returns the exit status: 0 for success, 1 for failure, 2 for wrong usage.
func (p Program) Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // restores the default effect of the signals
	return p.Run(ctx, args, stdout, stderr)
}

// Run is Main without signals.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	redis.SetLogger(silent{}) // the client also returns what it would print as errors
	parser, err := p.Parser(stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 2
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 2
	}
	if command == nil { // help was printed
		return 0
	}
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run(&Output{Stdout: stdout, Stderr: stderr})
	if err != nil && !errors.Is(err, ErrFailed) {
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	}
	if err != nil {
		return 1
	}
	return 0
}

// Parser returns the parser of the command line. Every flag is also a variable: --mysql-dsn is SECKILL_MYSQL_DSN.
func (p Program) Parser(stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(p.Commands,
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.DefaultEnvars("SECKILL"),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Output is where a command writes to.
type Output struct{ Stdout, Stderr io.Writer }

// JSON prints v as indented JSON.
func (o *Output) JSON(v any) error {
	encoder := json.NewEncoder(o.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// Finish prints a result, as JSON or by write. It returns ErrFailed if the result is not ok.
func (o *Output) Finish(asJSON bool, result any, write func(io.Writer), ok bool) error {
	if !asJSON {
		write(o.Stdout)
	} else if err := o.JSON(result); err != nil {
		return err
	}
	if !ok {
		return ErrFailed
	}
	return nil
}

// Logger returns a logger that writes to Stderr; format is "json" or "text".
func (o *Output) Logger(level, format string) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // kong has checked it
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(o.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(o.Stderr, options))
}
