package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/cli/clitest"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// The journal of a load agrees with the database. A journal that was changed does not, and the audit says where.
func TestAudit_Journal(t *testing.T) {
	data, journal := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	requests, orders := writeJournal(t, data, journal)
	var audit verdict.Verdict
	if code := clitest.RunJSON(t, program(), &audit, "audit", "--data="+data, "--whole", "--journal="+journal); code != 0 || !audit.OK {
		t.Errorf("exit status %d: %+v", code, audit)
	}
	if audit.Requests != requests || audit.Acknowledged != orders {
		t.Errorf("%+v of %d requests and %d orders", audit.Counts, requests, orders)
	}
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	var entry struct{ Order string }
	line, _, _ := strings.Cut(string(text), "\n")
	if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Order == "" {
		t.Fatalf("the first line is %s: %v", line, err)
	}
	forged := strings.ReplaceAll(string(text), `"`+entry.Order+`"`, `"123"`)
	if err := os.WriteFile(journal, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := seckill(t, "audit", "--data="+data, "--journal="+journal)
	if code != 1 || !strings.Contains(stdout, "BROKEN  4  every order that a client was told of exists (order-lost): broken by 1\n             map[order:123") {
		t.Errorf("exit status %d:\n%s", code, stdout)
	}
}

// writeJournal sends the lifecycle scenario to an embedded shop, and writes the journal of it.
func writeJournal(t *testing.T, data, path string) (requests, orders int64) {
	t.Helper()
	var opts app.Options
	parser, err := kong.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--listen=127.0.0.1:0", "--data=" + data}); err != nil {
		t.Fatal(err)
	}
	shop, err := app.Start(t.Context(), opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shop.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	tokens, err := cli.NewTokens(shop.JWTKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := loadtest.NewClient(shop.URL(), loadtest.ClientOptions{Token: tokens.Of})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	journal := loadtest.NewJournal(file)
	voucher, err := client.CreateVoucher(cli.Admin, loadtest.NewVoucher{
		Title: "journal", PriceCents: 1, Stock: 40, UserLimit: 1, PaySeconds: 900,
		StartsAt: time.Now().Add(-time.Minute), EndsAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	scenario, err := loadtest.ScenarioNamed("lifecycle")
	if err != nil {
		t.Fatal(err)
	}
	claims := verdict.NewOrderClaims()
	recorder := loadtest.NewRecorder(func(e *loadtest.Entry) { journal.Write(e); claims.Add(e) })
	buyers := &loadtest.Buyers{
		Client: client, Recorder: recorder, Voucher: voucher.ID, FirstUser: cli.FirstBuyer, Users: 60, Name: loadtest.NewName(),
	}
	load := loadtest.Load{Clients: 8, Arrivals: 60}
	if err := load.Run(t.Context(), func(a loadtest.Arrival) { scenario.Act(buyers, a) }, nil); err != nil {
		t.Fatal(err)
	}
	if err := journal.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return recorder.Report().Requests, claims.Owned(1).Orders
}
