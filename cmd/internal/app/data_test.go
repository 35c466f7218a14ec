package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A second embedded shop on the same data is refused, in this process and in another one. After the first one has ended,
// even if it was killed, the next one may start.
func TestData_OneShopOnly(t *testing.T) {
	opts := defaults(t)
	first := open(t, opts)
	refused := func(when string) {
		t.Helper()
		shop, err := Start(t.Context(), opts, quiet(t))
		if err == nil {
			closeApp(t, shop)
		}
		if err == nil || !strings.Contains(err.Error(), opts.Servers.Data) || !strings.Contains(err.Error(), "another shop") {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("next to a shop in this process")
	closeApp(t, first)

	other := spawn(t, "SECKILL_DATA="+opts.Servers.Data)
	refused("next to a shop in another process")
	other.kill()
	closeApp(t, open(t, opts))
}

// OpenExistingDatabase creates neither a database nor a directory.
func TestOpenExistingDatabase_DoesNotCreate(t *testing.T) {
	opts := defaults(t)
	opts.Servers.Data = filepath.Join(opts.Servers.Data, "mistyped")
	db, err := OpenExistingDatabase(t.Context(), &opts, quiet(t))
	if err == nil {
		_ = db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), opts.Servers.Data) {
		t.Error(err)
	}
	if _, err := os.Stat(opts.Servers.Data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there now: %v", err)
	}
}
