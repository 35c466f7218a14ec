package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"seckill/repository"
)

// The files of an embedded shop in its data directory.
const (
	dataFile = "seckill.db"
	keyFile  = "jwt.key"
	lockFile = "seckill.lock" // locked by the shop that serves the data; the file itself means nothing
)

// OpenDatabase opens the database without migrating it. An embedded one is created if it does not exist. The caller closes
// it.
func OpenDatabase(ctx context.Context, opts *Options, log *slog.Logger) (*repository.DB, error) {
	if !opts.Servers.Embedded() {
		return repository.OpenMySQL(ctx, opts.Servers.MySQLDSN, repository.PoolOptions{MaxOpen: opts.Servers.MySQLConns}, log)
	}
	if err := createData(opts); err != nil {
		return nil, err
	}
	return repository.OpenSQLite(filepath.Join(opts.Servers.Data, dataFile), log)
}

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

func createData(opts *Options) error {
	if err := os.MkdirAll(opts.Servers.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w; --data names another one", err)
	}
	return nil
}

// claimData keeps other shops away from the data directory: embedded shops do not share their lock, broker and sold-out
// gate. The claim ends with the process, however that ends.
func (a *App) claimData() error {
	if err := createData(&a.opts); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(a.opts.Servers.Data, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	locked, err := tryLock(file)
	if locked && err == nil {
		a.stack.onClose("data directory", func(context.Context) error { return file.Close() })
		if err = file.Truncate(0); err == nil {
			_, err = fmt.Fprintln(file, processName())
		}
		return err
	}
	holder, _ := os.ReadFile(file.Name())
	_ = file.Close() // nothing was written
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return fmt.Errorf("another shop (%s) serves the data in %s: stop it, or name another directory by --data; several shops side by side need --mysql-dsn",
		strings.TrimSpace(string(holder)), a.opts.Servers.Data)
}

// tryLock locks a file until its descriptor is closed. It returns false if another process holds the lock. data_lock.go
// replaces it on systems that have flock; on others, nothing is locked.
var tryLock = func(*os.File) (bool, error) { return true, nil }

// tokenKey returns the key that signs tokens: the configured one or, in embedded mode, the one in the data directory. It
// creates that file at the first start, readable by its owner only.
func tokenKey(opts *Options) ([]byte, error) {
	key, err := ReadTokenKey(opts)
	if errors.Is(err, fs.ErrNotExist) {
		return createTokenKey(filepath.Join(opts.Servers.Data, keyFile))
	}
	return key, err
}

// ReadTokenKey returns the key of an existing shop, without creating one.
func ReadTokenKey(opts *Options) ([]byte, error) {
	if opts.API.JWTKey != "" {
		return []byte(opts.API.JWTKey), nil
	}
	if !opts.Servers.Embedded() {
		return nil, errors.New("--jwt-key is needed to sign tokens for a shop with --mysql-dsn")
	}
	text, err := os.ReadFile(filepath.Join(opts.Servers.Data, keyFile))
	if err != nil {
		return nil, fmt.Errorf("no embedded shop has left its key in %s: start one with `seckill serve`, or name its --data or its --jwt-key: %w", opts.Servers.Data, err)
	}
	return []byte(strings.TrimSpace(string(text))), nil
}

func createTokenKey(path string) ([]byte, error) {
	random := make([]byte, 48)
	_, _ = rand.Read(random) // never fails, says crypto/rand
	key := base64.StdEncoding.EncodeToString(random)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("token key: %w", err)
	}
	_, err = file.WriteString(key + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("token key: %w", err)
	}
	return []byte(key), nil
}
