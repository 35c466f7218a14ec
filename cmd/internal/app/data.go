package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"seckill/repository"
)

// The files of an embedded shop in its data directory, next to the token key.
const (
	dataFile = "seckill.db"
	lockFile = "seckill.lock" // held by the shop that serves the data; it stays when that is gone, and says nothing then
)

// OpenExistingDatabase opens a database without creating or migrating it.
func OpenExistingDatabase(ctx context.Context, opts *Options, log *slog.Logger) (*repository.DB, error) {
	if opts.Servers.Embedded() {
		_, err := os.Stat(filepath.Join(opts.Servers.Data, dataFile))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no embedded shop has left a database in %s: name its --data, or a --mysql-dsn", opts.Servers.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	return OpenDatabase(ctx, opts, log)
}

// makeData makes the data directory of an embedded shop.
func makeData(opts *Options) error {
	if err := os.MkdirAll(opts.Servers.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w; --data names another one", err)
	}
	return nil
}

// claimData keeps other shops away from the data directory: embedded, each would have a lock, a broker and a view of
// what is sold out of its own. The claim ends with the process, however it ends.
func claimData(opts *Options, s *stack) error {
	if err := makeData(opts); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(opts.Servers.Data, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	taken, err := tryLock(file)
	if taken && err == nil {
		s.onClose("data directory", func(context.Context) error { return file.Close() })
		if err = file.Truncate(0); err == nil {
			_, err = fmt.Fprintln(file, instanceName())
		}
		return err
	}
	text, _ := os.ReadFile(file.Name())
	_ = file.Close() // nothing was written
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return fmt.Errorf("another shop (%s) serves the data in %s: stop it, or name another directory by --data; several shops side by side need --mysql-dsn",
		strings.TrimSpace(string(text)), opts.Servers.Data)
}
