package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"seckill/handler/apitest"
	"seckill/handler/token"
	"seckill/repository"
	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/outbox"
)

// everything is audited when nothing is running any more.
var everything = repository.AuditOptions{Settled: true}

// nextUser gives each part of a test its own users.
var nextUser atomic.Int64

const testKey = "a key for tests that is long enough, not a secret"

// defaults are the options that the program has without flags.
func defaults(t testing.TB) Options {
	t.Helper()
	var opts Options
	parser, err := kong.New(&opts, kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	opts.API.Listen = "127.0.0.1:0"
	opts.API.JWTKey = testKey
	opts.Log.AccessLog = 1
	opts.Servers.Data = t.TempDir()
	opts.Log.LogLevel = "warn"
	return opts
}

// optionsFor points a shop at a test's database. Without a Redis it goes without a lock.
func optionsFor(t testing.TB, target dbtest.Database, redisAddr string) Options {
	t.Helper()
	opts := defaults(t)
	if target.Engine != dbtest.SQLite {
		opts.Servers.MySQLDSN = target.DSN
		opts.Servers.Migrate = true
		opts.Lock.Lock = "none"
		if redisAddr != "" {
			opts.Lock.Lock = "redis"
			opts.Servers.RedisAddrs = []string{redisAddr}
		}
	}
	return opts
}

// open starts a shop that is closed with the test. After the last one of a database was closed, the audit speaks.
func open(t testing.TB, opts Options) *App {
	t.Helper()
	shop, err := Start(t.Context(), opts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeApp(t, shop) })
	return shop
}

// quiet logs what is worth a warning to the test.
func quiet(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func closeApp(t testing.TB, running *App) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := running.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// mustAudit waits until the outbox is empty and audits.
func mustAudit(t testing.TB, db *repository.DB) service.AuditTotals {
	t.Helper()
	waitDelivered(t, db)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	audit, err := db.Audit(ctx, everything)
	if err == nil {
		err = audit.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return audit.Totals
}

// waitDelivered waits until every event was sent and marked.
func waitDelivered(t testing.TB, db *repository.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if _, err := outbox.WaitEmpty(ctx, repository.NewOutbox(db)); err != nil {
		t.Fatalf("the outbox is not empty: %v", err)
	}
}

// buyer is a user who speaks to one instance.
type buyer struct {
	t      testing.TB
	client *http.Client
	url    string
	token  string
}

// checked validates every exchange against openapi.yaml; fast is for crowds.
var fast = &http.Client{
	Transport: &http.Transport{MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000},
	Timeout:   60 * time.Second,
}

func checked(t testing.TB) *http.Client {
	return &http.Client{Transport: apitest.Transport(t, http.DefaultTransport), Timeout: 30 * time.Second}
}

func newBuyer(t testing.TB, client *http.Client, url string, user int64, role token.Role) *buyer {
	t.Helper()
	signed, err := token.Sign([]byte(testKey), token.Claims{User: service.UserID(user), Role: role, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return &buyer{t: t, client: client, url: url, token: signed}
}

// answer is what came back; err is set if nothing did.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	err    error
}

func (a answer) text(name string) string { s, _ := a.body[name].(string); return s }
func (a answer) code() string            { return a.text("code") }

// what is the outcome in one word: the status, or the code of a problem.
func (a answer) what() string {
	switch {
	case a.err != nil:
		return "broken"
	case a.code() != "":
		return a.code()
	}
	return strconv.Itoa(a.status)
}

func (b *buyer) do(method, path string, body any, header ...string) answer {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			b.t.Error(err)
		}
		payload = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, b.url+path, payload)
	if err != nil {
		b.t.Error(err)
		return answer{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+b.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := b.client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	a := answer{status: response.StatusCode, header: response.Header}
	text, err := io.ReadAll(response.Body)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &a.body)
	}
	a.err = err
	return a
}

func (b *buyer) place(voucher string, key ...string) answer {
	var header []string
	if len(key) > 0 {
		header = []string{"Idempotency-Key", key[0]}
	}
	return b.do(http.MethodPost, "/api/v1/orders", map[string]string{"voucher_id": voucher}, header...)
}

// mustBe fails the test unless the answer is what is wanted.
func (a answer) mustBe(t testing.TB, want string) answer {
	t.Helper()
	if a.what() != want {
		t.Fatalf("got %s (%v, %v), want %s", a.what(), a.body, a.err, want)
	}
	return a
}

// sale describes a voucher that is on sale now.
func sale(stock, limit int, payWithin time.Duration) map[string]any {
	return map[string]any{
		"title": "a voucher", "price_cents": 1234, "stock": stock, "user_limit": limit, "pay_seconds": int(payWithin / time.Second),
		"starts_at": time.Now().Add(-time.Hour).UTC(), "ends_at": time.Now().Add(time.Hour).UTC(),
	}
}

func (b *buyer) createVoucher(v map[string]any) string {
	b.t.Helper()
	return b.do(http.MethodPost, "/api/v1/admin/vouchers", v).mustBe(b.t, "201").text("id")
}

// runBuyers runs n buyers, at most width at a time, and counts their outcomes.
func runBuyers(n, width int, visit func(i int) []answer) map[string]int {
	counts := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	for range width {
		wg.Go(func() {
			for i := range next {
				for _, a := range visit(i) {
					mu.Lock()
					counts[a.what()]++
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return counts
}

// atOnce does the same thing several times in parallel.
func atOnce(n int, do func(i int) answer) []answer {
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i] = do(i) })
	}
	wg.Wait()
	return answers
}

func count(answers []answer) map[string]int {
	counts := map[string]int{}
	for _, a := range answers {
		counts[a.what()]++
	}
	return counts
}

func userKey(i int) string { return fmt.Sprintf("request-%d", i) }
