package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// The first experiment on real servers, as a table's page and as JSON. The others are tested where they are.
func TestLabIDs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		cfg, err := mysql.ParseDSN(target.DSN)
		if err != nil || target.Engine != "mysql" {
			t.Skip("one engine is enough for what Redis does")
		}
		page := filepath.Join(t.TempDir(), "lab.html")
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"lab", "ids", "--only=refill", "--json", "--html=" + page,
			"--mysql-dsn=" + cfg.FormatDSN(), "--redis-addrs=" + redistest.Start(t).Addr}, &stdout, &stderr)
		if code != 0 {
			t.Fatalf("status %d\n%s%s", code, stdout.String(), stderr.String())
		}
		var result struct {
			Refill struct {
				Runs []struct {
					Way   string
					Waits int64
				}
			}
		}
		if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || len(result.Refill.Runs) != 3 {
			t.Fatalf("%v: %s", err, stdout.String())
		}
		if single, double := result.Refill.Runs[1], result.Refill.Runs[2]; single.Waits == 0 || double.Waits >= single.Waits {
			t.Errorf("calls waited %d times for a single buffer and %d times for a double one", single.Waits, double.Waits)
		}
		text, err := os.ReadFile(page)
		if err != nil || !strings.Contains(string(text), "<svg") || !strings.Contains(string(text), "double buffer") {
			t.Errorf("the page has no plot (%v)", err)
		}
	})
}
