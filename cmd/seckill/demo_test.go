package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sqlite "github.com/libtnb/sqlite"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/cli/clitest"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
	"seckill/repository"
)

func TestDemo_Holds(t *testing.T) {
	clitest.NoLeaks(t)
	t.Setenv("TMPDIR", t.TempDir())
	var v demoResult
	if code := clitest.RunJSON(t, program(), &v, "demo", "--buyers=300", "--stock=20", "--duplicates=3"); code != 0 {
		t.Errorf("exit status %d; broken: %v", code, v.Verdict.Broken())
	}
	w := v.Verdict
	if !w.OK || v.Sold != 20 || w.Oversold != 0 || w.Undersold != 0 || w.Duplicates != 0 || w.Unresolved != 0 {
		t.Errorf("verdict: %+v", w)
	}
	if v.Sale.Requests != 900 || v.Sale.Count(loadtest.OpPlace, loadtest.Placed) != 20 || v.Sale.Count(loadtest.OpPlace, "sold-out") == 0 {
		t.Errorf("sale: %+v", v.Sale.Outcomes)
	}
	if v.Paid != 10 || v.Cancelled != 5 || v.Pending != 5 || v.Resold != 5 {
		t.Errorf("%d paid, %d cancelled, %d pending, %d resold", v.Paid, v.Cancelled, v.Pending, v.Resold)
	}
	if v.ShortPaid > 1 || v.Expired != 2-v.ShortPaid || v.ExpiredResold != v.Expired {
		t.Errorf("%d paid in time, %d expired, %d of them resold", v.ShortPaid, v.Expired, v.ExpiredResold)
	}
	// Orders of the sale, of the returned units, of the short sale and of its expired units; then each change of them.
	orders, paid := 20+5+2+v.Expired, 10+v.ShortPaid
	if w.Acknowledged != orders || w.Events != orders+paid+5+v.Expired || w.Unsent != 0 || w.Effects != paid {
		t.Errorf("%d orders, %d events, %d unsent, %d effects", w.Acknowledged, w.Events, w.Unsent, w.Effects)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemo_EnoughForEverybody(t *testing.T) {
	var v demoResult
	if code := clitest.RunJSON(t, program(), &v, "demo", "--buyers=10", "--stock=50", "--duplicates=1", "--lock=none"); code != 0 {
		t.Errorf("exit status %d; broken: %v", code, v.Verdict.Broken())
	}
	if v.Sold != 8 || v.Cancelled != 2 || v.Resalable != 0 { // nobody came too late, so nobody comes again
		t.Errorf("sold %d, cancelled %d, resalable %d", v.Sold, v.Cancelled, v.Resalable)
	}
}

func TestDemo_Output(t *testing.T) {
	code, stdout, stderr := seckill(t, "demo", "--buyers=60", "--stock=10")
	if code != 0 {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	for _, want := range []string{
		"\n10 of 10 sold, 0 oversold, 0 undersold, 0 duplicates, 0 lost, 0 unknown: everything holds.\n",
		"sold-out", "180 requests in ", "5 paid, 2 cancelled, 3 left to be paid; sold again: 2 of 2 cancelled units",
		"  checks  34, 0 broken\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("does not say %q:\n%s", want, stdout)
		}
	}
	if strings.ContainsAny(stdout+stderr, "\x1b\r") {
		t.Error("control characters although nobody watches a terminal")
	}
}

// A defect in the database changes the verdict and the exit status, even if the sale itself went well.
func TestDemo_DefectInTheDatabase(t *testing.T) {
	data := t.TempDir()
	if code, _, stderr := seckill(t, "migrate", "up", "--data="+data); code != 0 {
		t.Fatal(stderr)
	}
	db, err := sql.Open(sqlite.DriverName, "file:"+filepath.Join(data, "seckill.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`INSERT INTO voucher_stock (voucher_id, total, stock, placed, user_limit, starts_at, ends_at) VALUES (1, 10, 9, 0, 1, 0, 1)`)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := seckill(t, "demo", "--buyers=20", "--stock=5", "--data="+data)
	if code != 1 || !strings.Contains(stdout, "NOT EVERYTHING HOLDS") || !strings.Contains(stdout, "total = stock + live orders") {
		t.Errorf("exit status %d:\n%s", code, stdout)
	}
}

func TestDemoResult_EachDefectCounts(t *testing.T) {
	sound := func() *demoResult {
		return &demoResult{Verdict: verdict.New(), Buyers: 100, Stock: 10, Sold: 10, Cancelled: 2, Resalable: 2, Resold: 2, Expired: 3, ExpiredResold: 3}
	}
	r := sound()
	if r.judge(); !r.Verdict.OK {
		t.Fatalf("a sound sale is judged %v", r.Verdict.Broken())
	}
	for name, plant := range map[string]func(*demoResult){
		"oversold":     func(r *demoResult) { r.Sold = 11 },
		"undersold":    func(r *demoResult) { r.Sold = 9 },
		"in the audit": func(r *demoResult) { r.Verdict.Require("stock-balance", "total = stock + live orders", 1) },
		"not resold":   func(r *demoResult) { r.Resold = 1 },
		"not returned": func(r *demoResult) { r.ExpiredResold = 2 },
		"failed": func(r *demoResult) {
			r.Sale.Outcomes = []loadtest.OutcomeReport{{Op: loadtest.OpPlace, Outcome: "internal", Class: loadtest.Failed, Latency: loadtest.Latency{Count: 1}}}
		},
	} {
		r := sound()
		plant(r)
		if r.judge(); r.Verdict.OK || len(r.Verdict.Broken()) != 1 {
			t.Errorf("%s: OK %v, broken %v", name, r.Verdict.OK, r.Verdict.Broken())
		}
	}
}

func TestDemo_Interrupted(t *testing.T) {
	clitest.NoLeaks(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr clitest.Buffer
	done := make(chan int)
	go func() {
		done <- program().Run(ctx, []string{"demo", "--buyers=1000000", "--stock=100", "--listen=127.0.0.1:0"}, &stdout, &stderr)
	}()
	clitest.Eventually(t, func() bool { // the shop has started, so the sale begins soon
		found, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "seckill-demo-*", "seckill.db"))
		return err == nil && len(found) == 1
	})
	cancel()
	select {
	case code := <-done:
		if code != 1 {
			t.Errorf("exit status %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the demo continues after it was interrupted")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if stdout.String() != "" {
		t.Errorf("an interrupted demo printed a verdict:\n%s", stdout.String())
	}
}

func TestDemo_Keep(t *testing.T) {
	clitest.NoLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr clitest.Buffer
	done := make(chan int)
	go func() {
		done <- program().Run(ctx, []string{"demo", "--buyers=20", "--stock=5", "--keep"}, &stdout, &stderr)
	}()
	stdout.Await(t, "/api/v1/admin/audit")
	printed := stdout.String()
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(printed)
	token := regexp.MustCompile(`TOKEN=(\S+)`).FindStringSubmatch(printed)
	voucher := regexp.MustCompile(`"voucher_id":"(\d+)"`).FindStringSubmatch(printed)
	if url == "" || token == nil || voucher == nil {
		t.Fatalf("it does not say what to try:\n%s", printed)
	}
	// What it says to try works.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/orders", strings.NewReader(`{"voucher_id":"`+voucher[1]+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token[1])
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("%s: %s", answer.Status, body)
	}
	for path, want := range map[string]string{"/": "shop.js", "/board": "board.js"} {
		if page := fetch(t, url+path); !strings.Contains(page, want) {
			t.Errorf("%s is not the page that it should be:\n%s", path, page)
		}
	}
	clitest.Eventually(t, func() bool { return strings.Contains(fetch(t, url+"/api/v1/vouchers?limit=1"), `"stock":60`) }) // the first small sale
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit status %d: %s", code, stderr.String())
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", url, answer.Status, err, text)
	}
	return string(text)
}

// A small sale has orders that are paid, cancelled and expired, and units that are sold again.
func TestDemo_SmallSale(t *testing.T) {
	clitest.NoLeaks(t)
	t.Setenv("TMPDIR", t.TempDir())
	parser, err := program().Parser(io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	k, err := parser.Parse([]string{"demo"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := k.Selected().Target.Addr().Interface().(*demoCmd)
	out := &cli.Output{Stdout: io.Discard, Stderr: t.Output()}
	shop, done, err := cmd.open(t.Context(), k, out)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDemo(cmd, shop, out)
	if err != nil {
		t.Fatal(err)
	}
	short := smallSale{announced: time.Second, open: 4 * time.Second, rate: 10, users: 400, units: 10, pay: time.Second}
	if err := d.runSmallSale(t.Context(), short, "A short one", 1000); err != nil {
		t.Error(err)
	}
	clitest.Eventually(t, func() bool { // the last orders expire
		audit, err := shop.DB.Audit(t.Context(), repository.AuditOptions{})
		if err := errors.Join(err, audit.Err()); err != nil {
			t.Fatal(err)
		}
		return audit.Totals.Pending == 0 && audit.Totals.Paid > 0 && audit.Totals.Closed > audit.Totals.Paid/5 && audit.Totals.Orders > 10
	})
	d.client.Close()
	if err := done(); err != nil {
		t.Error(err)
	}
}
