package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/cli/clitest"
	"seckill/loadtest"

	"github.com/alecthomas/kong"
)

func program() cli.Program { return cli.Program{Name: "lab load", Commands: new(Command)} }

// openShop runs an embedded shop in this process until the test ends, and returns its address and data directory.
func openShop(t *testing.T) (url, data string) {
	t.Helper()
	shop, data := startShop(t)
	return shop.URL(), data
}

func startShop(t *testing.T) (shop *app.App, data string) {
	t.Helper()
	data = t.TempDir()
	var opts app.Options
	parser, err := kong.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--listen=127.0.0.1:0", "--data=" + data}); err != nil {
		t.Fatal(err)
	}
	shop, err = app.Start(t.Context(), opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shop.Close(closing); err != nil {
			t.Error(err)
		}
	})
	return shop, data
}

func TestLoad_EveryScenario(t *testing.T) {
	clitest.NoLeaks(t)
	url, data := openShop(t)
	for _, s := range loadtest.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			var r result
			code := clitest.RunJSON(t, program(), &r, "--url="+url, "--data="+data, "--scenario="+s.Name,
				"--requests=200", "--users=100", "--stock=30", "--clients=16")
			if code != 0 || !r.Verdict.OK {
				t.Errorf("exit status %d: %v", code, r.Verdict.Broken())
			}
			if r.Load.Requests+r.Load.Dropped < 200 || r.Clients.Orders == 0 || !r.Audited {
				t.Errorf("%d requests, %d dropped, %d orders, audited %v", r.Load.Requests, r.Load.Dropped, r.Clients.Orders, r.Audited)
			}
			if s.Rate == 0 && r.Load.Dropped != 0 {
				t.Errorf("%d arrivals dropped of a closed model", r.Load.Dropped)
			}
			if r.After.Total-r.After.Stock != r.Clients.Live {
				t.Errorf("the shop sold %d, the clients hold %d", r.After.Total-r.After.Stock, r.Clients.Live)
			}
		})
	}
}

func TestLoad_ExistingVoucher(t *testing.T) {
	url, data := openShop(t)
	var first, second result
	clitest.RunJSON(t, program(), &first, "--url="+url, "--data="+data, "--requests=20", "--users=20", "--stock=30", "--clients=4", "--no-keys")
	code := clitest.RunJSON(t, program(), &second, "--url="+url, "--data="+data, "--requests=20", "--first-user=100", "--users=20",
		"--voucher="+first.After.ID, "--clients=4", "--duplicates=2", "--no-audit")
	if code != 0 || second.Before.Stock != 10 || second.After.Stock != 0 || second.Clients.Live != 10 || second.Audited {
		t.Errorf("exit status %d, %+v", code, second)
	}
	if second.Load.Requests != 40 {
		t.Errorf("%d requests of 20 users who send each twice", second.Load.Requests)
	}
}

func TestLoad_ReportsDropped(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			time.Sleep(200 * time.Millisecond)
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"code":"sold-out"}`)
			return
		}
		fmt.Fprint(w, `{"id":"7","user_limit":1,"pay_seconds":900}`)
	}))
	defer slow.Close()
	code, stdout, _ := clitest.Run(t, program(), "--url="+slow.URL, "--voucher=7", "--jwt-key="+testKey, "--rate=100", "--duration=500ms", "--clients=2", "--no-audit")
	if code != 0 {
		t.Errorf("exit status %d", code)
	}
	var requests, dropped int
	if _, err := fmt.Sscanf(strings.TrimSpace(stdout), "sale: %d requests in", &requests); err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	_, after, _ := strings.Cut(stdout, "orders, ")
	_, after, _ = strings.Cut(after, "; ")
	if _, err := fmt.Sscanf(after, "%d dropped", &dropped); err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	// Two clients can take about six of the fifty arrivals.
	if dropped < 30 || requests < 2 {
		t.Errorf("%d requests, %d dropped:\n%s", requests, dropped, stdout)
	}
}

const testKey = "0123456789abcdef0123456789abcdef"

// A shop that breaks its promises changes the verdict and the exit status.
func TestLoad_FindsDefects(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(n int64, w http.ResponseWriter)
		want   string
	}{
		"oversold": {func(n int64, w http.ResponseWriter) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id":"%d"}`, n)
		}, "(oversold)"},
		"one order for all": {func(_ int64, w http.ResponseWriter) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"1"}`)
		}, "(order-two-users)"},
		"failures": {func(_ int64, w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"code":"internal"}`)
		}, "(request-failed)"},
		"unknown": {func(_ int64, w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"outcome-unknown","request_id":"5"}`)
		}, "(outcome-unresolved)"},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					c.answer(n.Add(1), w)
					return
				}
				fmt.Fprint(w, `{"id":"7","user_limit":1,"pay_seconds":900,"total":5,"stock":5}`)
			}))
			defer shop.Close()
			code, stdout, _ := clitest.Run(t, program(), "--url="+shop.URL, "--voucher=7", "--jwt-key="+testKey, "--requests=20",
				"--clients=2", "--duplicate-share=0", "--settle=300ms", "--no-audit")
			if code != 1 || !strings.Contains(stdout, "NOT EVERYTHING HOLDS") || !strings.Contains(stdout, c.want) {
				t.Errorf("exit status %d:\n%s", code, stdout)
			}
		})
	}
}

func TestLoad_TokenFile(t *testing.T) {
	shop, _ := startShop(t)
	url := shop.URL()
	tokens, err := cli.NewTokens(shop.JWTKey)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for user := range int64(5) {
		lines = append(lines, tokens.Of(11+user))
	}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n\n"+tokens.Of(cli.Admin)), 0o600); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(t.TempDir(), "journal")
	var r result
	code := clitest.RunJSON(t, program(), &r, "--url="+url, "--token-file="+file, "--requests=10", "--stock=10", "--clients=1", "--journal="+journal)
	if code != 0 || r.Clients.Holders != 5 {
		t.Errorf("exit status %d, %+v", code, r)
	}
	entries, err := os.Open(journal)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = entries.Close() }()
	users := map[int64]bool{}
	if err := loadtest.ReadJournal(entries, func(e *loadtest.Entry) error { users[e.User] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(users) != 5 || !users[11] || !users[15] {
		t.Errorf("requests were sent for users %v", users)
	}
	if err := os.WriteFile(file, []byte("not a token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := clitest.Run(t, program(), "--url="+url, "--token-file="+file); code != 1 || !strings.Contains(stderr, "line 1") {
		t.Errorf("exit status %d, %s", code, stderr)
	}
}

// Ctrl-C ends only the load: what was sent until then is settled, written to the journal and reported.
func TestLoad_Interrupted(t *testing.T) {
	clitest.NoLeaks(t)
	url, data := openShop(t)
	journal := filepath.Join(t.TempDir(), "journal")
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr clitest.Buffer
	done := make(chan int)
	go func() {
		done <- program().Run(ctx, []string{"--url=" + url, "--data=" + data, "--scenario=soak", "--duration=1h", "--rate=500", "--journal=" + journal, "--json"}, &stdout, &stderr)
	}()
	clitest.Eventually(t, func() bool { // until it has sold something
		answer, err := http.Get(url + "/api/v1/vouchers")
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(body), `"stock":19`)
	})
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if code := <-done; code != 0 {
		t.Fatalf("exit status %d: %s\n%s", code, stderr.String(), stdout.String())
	}
	var r result
	if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(journal)
	if err != nil || int64(strings.Count(string(written), "\n")) != r.Load.Requests || r.Clients.Orders == 0 {
		t.Errorf("%d lines of %d requests, %d orders, %v", strings.Count(string(written), "\n"), r.Load.Requests, r.Clients.Orders, err)
	}
}
