package compare

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/cli/clitest"
	"seckill/loadtest"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// shop is the seckill program, built once for all tests.
var shop string

func TestMain(m *testing.M) {
	var b bench
	if err := b.build(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shop = b.program
	code := m.Run()
	b.close()
	os.Exit(code)
}

func program() cli.Program { return cli.Program{Name: "lab compare", Commands: new(Command)} }

func TestCompare_Embedded(t *testing.T) {
	clitest.NoLeaks(t)
	t.Setenv("TMPDIR", t.TempDir())
	page := filepath.Join(t.TempDir(), "compare.html")
	var r comparison
	code := clitest.RunJSON(t, program(), &r, "--program="+shop, "--lock=none,redis", "--commit-batch-max=1,8", "--rounds=2", "--orders=40", "--clients=8", "--sell-out=10", "--html="+page)
	if code != 0 || !r.OK {
		t.Errorf("exit status %d: %v", code, r.Broken)
	}
	checkComparison(t, &r, 2, 40, 10)
	var order []string
	for _, trial := range r.Trials {
		order = append(order, trial.String())
	}
	reversed := slices.Clone(order[4:])
	slices.Reverse(reversed)
	if !slices.Equal(order[:4], reversed) {
		t.Errorf("the second round does not go the other way: %v", order)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	checkPage(t, page, &r)
}

// checkComparison checks what must be so however fast the machine is.
func checkComparison(t *testing.T, r *comparison, rounds int, orders, sellOut int64) {
	t.Helper()
	if len(r.Summary) != 4 || len(r.Trials) != 4*rounds || len(r.Ratios) != 4 {
		t.Fatalf("%d summaries, %d trials, %d ratios", len(r.Summary), len(r.Trials), len(r.Ratios))
	}
	for _, trial := range r.Trials {
		if trial.Orders != orders || trial.Accepted.Count != orders || trial.OrdersPerSecond <= 0 {
			t.Errorf("%s: %d orders at %v/s", trial.combination, trial.Orders, trial.OrdersPerSecond)
		}
		if trial.Sold != sellOut || trial.Oversold+trial.Undersold+trial.Duplicates+trial.Unknown != 0 || trial.Refused.Count == 0 {
			t.Errorf("%s: %+v", trial.combination, trial)
		}
		if len(trial.Timeline) == 0 || trial.Shop.CPU <= 0 || trial.Shop.Resident < 1<<20 {
			t.Errorf("%s: %d slots, %+v", trial.combination, len(trial.Timeline), trial.Shop)
		}
		// One by one each order is a transaction. Grouped they are fewer, unless the machine is so slow that each order
		// finds an empty queue.
		if trial.BatchMax == 1 && trial.Transactions < nearlyAll || trial.Transactions > 1.5 || trial.Transactions <= 0 {
			t.Errorf("%s: %v transactions an order", trial.combination, trial.Transactions)
		}
	}
}

func checkPage(t *testing.T, path string, r *comparison) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if found := regexp.MustCompile(`(?i)(src|href|url\(|@import|<script|https?:)`).FindString(page); found != "" {
		t.Errorf("the page loads something: %q", found)
	}
	if n := strings.Count(page, "<svg"); n != 3 {
		t.Errorf("%d plots", n)
	}
	for _, want := range append([]string{r.Machine.Go, "Everything holds in all 8 trials", "--lock=redis --commit-batch-max=8"}, "<td>none</td>") {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// nearlyAll leaves out some of 40: a server counts a COMMIT a moment after it has answered it.
const nearlyAll = 0.9

func TestCompare_OnServers(t *testing.T) {
	redisAddr := redistest.Start(t).Addr
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		var r comparison
		code := clitest.RunJSON(t, program(), &r, "--program="+shop, "--lock=none,redis", "--commit-batch-max=1,8", "--rounds=1", "--orders=40", "--clients=8", "--sell-out=10",
			"--mysql-dsn="+target.DSN, "--redis-addrs="+redisAddr)
		if code != 0 || !r.OK {
			t.Fatalf("exit status %d: %v", code, r.Broken)
		}
		for _, s := range r.Summary {
			switch {
			case s.Lock == "none" && s.Scripts != 0:
				t.Errorf("%s: %v scripts an order", s.combination, s.Scripts)
			case s.Lock == "redis" && (s.Scripts <= 0 || s.Scripts > 2.1 || s.Commands < 4*nearlyAll): // two to acquire, two to release
				t.Errorf("%s: %v scripts and %v commands an order", s.combination, s.Scripts, s.Commands)
			}
			if s.BatchMax == 1 && s.Transactions < nearlyAll {
				t.Errorf("%s: %v transactions an order", s.combination, s.Transactions)
			}
		}
		if !strings.Contains(r.Machine.Database, "sync_binlog=") || !strings.HasPrefix(r.Machine.Redis, "Redis ") {
			t.Errorf("measured on %+v", r.Machine)
		}
		db, err := sql.Open("mysql", target.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		var left int
		err = db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE ?", target.Name[:40]+"%compare%").Scan(&left)
		if err != nil || left != 0 {
			t.Errorf("%d databases left behind, %v", left, err)
		}
	})
}

func TestCompare_ShopDoesNotStart(t *testing.T) {
	code, _, stderr := clitest.Run(t, program(), "--program="+shop, "--lock=none", "--commit-batch-max=0", "--rounds=1")
	if code != 1 || !strings.Contains(stderr, "--commit-batch-max must be from 1") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

func TestCompare_Interrupted(t *testing.T) {
	clitest.NoLeaks(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr clitest.Buffer
	done := make(chan int)
	go func() { done <- program().Run(ctx, []string{"--program=" + shop, "--duration=1h"}, &stdout, &stderr) }()
	clitest.Eventually(t, func() bool {
		found, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "seckill.db"))
		return err == nil && len(found) == 1
	})
	cancel()
	select {
	case code := <-done:
		if code != 1 || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("exit status %d: %s", code, stderr.String())
		}
	case <-time.After(60 * time.Second):
		t.Fatal("the comparison continues after it was interrupted")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSummarize_RatiosWithinARound(t *testing.T) {
	c := &Command{Lock: []string{"none"}, CommitBatchMax: []int{1, 256}, Rounds: 3}
	var trials []trial
	for round, rate := range []float64{100, 1000, 10} { // the machine was busy in some of them
		trials = append(trials,
			trial{combination: combination{"none", 1}, Round: round + 1, OrdersPerSecond: rate, Accepted: loadtest.Latency{P99: 100 * time.Millisecond}},
			trial{combination: combination{"none", 256}, Round: round + 1, OrdersPerSecond: 20 * rate, Accepted: loadtest.Latency{P99: 5 * time.Millisecond}})
	}
	r := summarize(c, trials, platform{})
	if s := summaryOf(r.Summary, combination{"none", 256}); s.OrdersPerSecond != 2000 || s.Slowest != 200 || s.Fastest != 20000 {
		t.Errorf("%+v", s)
	}
	if len(r.Ratios) != 1 || !strings.Contains(r.Ratios[0], "reach 20.0 times the throughput") || !strings.Contains(r.Ratios[0], "0.050 times the p99") {
		t.Errorf("%v", r.Ratios)
	}
	trials[3].Broken = []string{"something"}
	if r := summarize(c, trials, platform{}); r.OK || len(r.Broken) != 1 || !strings.Contains(r.verdict(), "NOT") {
		t.Errorf("a broken trial: %+v", r)
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{2: {9, 2, 1}, 3: {9, 4, 2, 1}, 7: {7}, 1.5: {2, 1}} {
		if got := median(values); got != want {
			t.Errorf("median(%v) = %v, want %v", values, got, want)
		}
	}
}

func TestParseCommandStat(t *testing.T) {
	for line, want := range map[string]int64{
		"cmdstat_evalsha:calls=12,usec=34,usec_per_call=2.83,rejected_calls=0,failed_calls=0": 12,
		"cmdstat_config|get:calls=3,usec=1":                                                   3,
		"# Commandstats":                                                                      -1,
		"cmdstat_x:calls=y":                                                                   -1,
		"":                                                                                    -1,
	} {
		_, calls, ok := parseCommandStat(line)
		if ok != (want >= 0) || ok && calls != want {
			t.Errorf("%q: %d, %v", line, calls, ok)
		}
	}
}

func TestCommand_InvalidFlags(t *testing.T) {
	for _, c := range []Command{
		{},
		{Lock: []string{"none"}, CommitBatchMax: []int{1}, Rounds: 1, Clients: 1, SellOut: 1},
		{Lock: []string{"redis"}, CommitBatchMax: []int{1}, Rounds: 1, Clients: 1, SellOut: 1, Orders: 1, Servers: app.Servers{MySQLDSN: "u@tcp(h:1)/d"}},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// The shops run with the garbage collection of the composed shop, unless the environment says otherwise.
func TestBench_GOGC(t *testing.T) {
	for set, want := range map[string]string{"": "GOGC=400", "100": "GOGC=100"} {
		t.Setenv("GOGC", set)
		b := bench{cmd: new(Command)}
		environment := b.environment(combination{}, new(tempDatabase))
		slices.Reverse(environment) // the last value of a variable counts
		i := slices.IndexFunc(environment, func(v string) bool { return strings.HasPrefix(v, "GOGC=") })
		if environment[i] != want {
			t.Errorf("GOGC=%q: %s, want %s", set, environment[i], want)
		}
	}
}
