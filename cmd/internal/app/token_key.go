package app

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TokenKey returns the key that signs tokens: the configured one or, in embedded mode, the one in the data directory. It
// creates that file at the first start, readable by its owner only.
func TokenKey(opts *Options) ([]byte, error) {
	key, err := ReadTokenKey(opts)
	if errors.Is(err, fs.ErrNotExist) {
		return makeTokenKey(filepath.Join(opts.Servers.Data, keyFile))
	}
	return key, err
}

const keyFile = "jwt.key"

// ReadTokenKey returns the key of an existing shop, without creating one.
func ReadTokenKey(opts *Options) ([]byte, error) {
	if opts.API.JWTKey != "" {
		return []byte(opts.API.JWTKey), nil
	}
	if !opts.Servers.Embedded() {
		return nil, errNoKey
	}
	text, err := os.ReadFile(filepath.Join(opts.Servers.Data, keyFile))
	if err != nil {
		return nil, fmt.Errorf("no embedded shop has left its key in %s: start one with `seckill serve`, or name its --data or its --jwt-key: %w", opts.Servers.Data, err)
	}
	return []byte(strings.TrimSpace(string(text))), nil
}

func makeTokenKey(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("token key: %w", err)
	}
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
