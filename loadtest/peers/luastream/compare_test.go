package main

import (
	"context"
	"database/sql"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// The load generator drives both shops, and both audits are good if nothing breaks.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	seckill, lab, luastream := filepath.Join(dir, "seckill"), filepath.Join(dir, "lab"), filepath.Join(dir, "luastream")
	build(t, "../../..", seckill, "./cmd/seckill")
	build(t, "../../..", lab, "./cmd/lab")
	build(t, ".", luastream, ".")
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		c := &compareCmd{
			Seckill: seckill, Lab: lab, MySQLDSN: db.DSN, Redis: redistest.Binary(t), AOF: "everysec",
			Rounds: 1, Duration: time.Second, Clients: 16,
		}
		var played round
		for i, who := range c.contestants(luastream) {
			r, err := c.run(t.Context(), &who)
			if err != nil {
				t.Fatalf("%s: %v", who.name, err)
			}
			if r.orders == 0 || r.acknowledged <= 0 || r.durable <= 0 || r.p99 < r.p50 || !r.good {
				t.Errorf("%s: %+v", who.name, r)
			}
			played[i] = r
		}
		if played[0].durable != played[0].acknowledged || played[0].waiting != 0 {
			t.Errorf("ours has answered before the commit: %+v", played[0])
		}
		if left := databases(t, db); left != 0 {
			t.Errorf("%d databases are left", left)
		}
		var text strings.Builder
		printRow(&text, 1, "peer", played[1])
		conclude(&text, []round{played})
		if !strings.Contains(text.String(), "good") || strings.Contains(text.String(), "NaN") {
			t.Errorf("the table: %s", &text)
		}
	})
}

// The error has the output of a contestant that does not start, and nothing is left behind.
func TestCompare_StartFails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		c := &compareCmd{MySQLDSN: db.DSN, Redis: redistest.Binary(t), AOF: "off"}
		broken := contestant{name: "broken", program: redistest.Binary(t), args: []string{"--no-such-option"}}
		_, err := c.run(t.Context(), &broken)
		if err == nil || !strings.Contains(err.Error(), "ended at once") || !strings.Contains(err.Error(), "no-such-option") {
			t.Errorf("got %v", err)
		}
		if left := databases(t, db); left != 0 {
			t.Errorf("%d databases are left", left)
		}
	})
}

func TestRatio(t *testing.T) {
	for want, values := range map[float64][]float64{2: {3, 1, 2}, 2.5: {4, 1, 2, 3}, 7: {7}} {
		rounds := make([]round, len(values))
		for i, v := range values {
			rounds[i][0].acknowledged = v
		}
		if got := ratio(rounds, func(r *round) float64 { return r[0].acknowledged }); got != want {
			t.Errorf("median of %v: %v, want %v", values, got, want)
		}
	}
}

func build(t *testing.T, module, into, pkg string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "-C", module, "build", "-o", into, pkg).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", pkg, err, out)
	}
}

// databases counts those that were made for a run and are still there.
func databases(t *testing.T, db dbtest.Database) (n int) {
	t.Helper()
	pool, err := sql.Open("mysql", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	if err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE CONCAT(DATABASE(), '\\_%')").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
