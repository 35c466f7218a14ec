package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"seckill/repository"
	"seckill/repository/repotest/dbtest"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

// victimVariable makes this test binary an instance that a test kills. It holds the DSN.
const victimVariable = "SECKILL_TEST_VICTIM_DSN"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(victimVariable); dsn != "" {
		victim(dsn)
		return
	}
	os.Exit(m.Run())
}

// stuck is a broker that prints the size of each batch and never answers.
type stuck struct{}

func (stuck) Publish(ctx context.Context, events []outbox.Event) []error {
	fmt.Println("publishing", len(events))
	<-ctx.Done()
	return outbox.FailAll(events, outbox.ErrUnavailable)
}

// victimLease is long enough to kill the victim before it gives up a batch, after a third of it.
const victimLease = 6 * time.Second

// victim runs an instance that publishes forever.
func victim(dsn string) {
	db, err := repository.OpenMySQL(context.Background(), dsn, repository.PoolOptions{}, slog.Default())
	if err != nil {
		panic(err)
	}
	outbox.NewRelay(outbox.Config{
		Store: repository.NewOutbox(db), Broker: stuck{}, Lease: victimLease,
	}).Run(context.Background())
}

// An instance is killed while it publishes four batches. Another instance sends the other events at once, and those of the
// four batches when their lease has ended.
func TestRelay_ProcessKilledWhilePublishing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		d := open(t, target)
		const events, held = 450, 400
		if err := d.commit(t.Context(), 1, events); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimVariable+"="+target.DSN)
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(stdout)
		for range held / 100 {
			if line, err := lines.ReadString('\n'); err != nil || line != "publishing 100\n" {
				t.Errorf("the instance printed %q (%v)", line, err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed, as it should be
		if n := d.count(t, "outbox_event WHERE lock_owner IS NOT NULL AND status = 0"); n != held {
			t.Errorf("the killed instance holds %d events, want %d", n, held)
		}

		b := inprocTarget().open(t, brokertest.Topic())
		points(t, d, b)
		start := time.Now()
		relay(t, outbox.Config{Store: d.outbox, Broker: b})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if left, err := outbox.WaitEmpty(ctx, d.outbox); err != nil || left != (outbox.Backlog{}) {
			t.Errorf("left %+v (%v)", left, err)
		}
		if took := time.Since(start); took > victimLease+3*time.Second { // the lease and a poll
			t.Errorf("the other instance took %v", took)
		}
		waitForEffects(t, d, events)
	})
}

// No relay runs. The rescue job, which a scheduler starts every minute, sends the overdue events and no others.
func TestJobs_RescueWithoutRelay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		d := open(t, target)
		b := inprocTarget().open(t, brokertest.Topic())
		points(t, d, b)
		if err := d.commit(t.Context(), 1, 300); err != nil {
			t.Fatal(err)
		}
		if _, err := d.sql.Exec("UPDATE outbox_event SET next_retry_time = next_retry_time - INTERVAL 61 SECOND WHERE event_id <= 250"); err != nil {
			t.Fatal(err)
		}
		jobs := &outbox.Jobs{
			Relay: outbox.NewRelay(outbox.Config{Store: d.outbox, Broker: b}), Maintenance: d.outbox, Log: slog.New(slog.DiscardHandler),
		}
		rescue := jobs.List()[0]
		for d.count(t, "outbox_event WHERE status = 1") == 0 { // until the consumer has subscribed
			if _, err := rescue.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := d.sql.Exec("UPDATE outbox_event SET next_retry_time = next_retry_time - INTERVAL 61 SECOND WHERE event_id <= 250 AND status = 0"); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"50 sent, 0 given up, 0 to be tried again, 0 wait for the broker", "0 sent, 0 given up, 0 to be tried again, 0 wait for the broker"} {
			if said, err := rescue.Run(t.Context()); err != nil || said != want {
				t.Errorf("the rescue said %q (%v), want %q", said, err, want)
			}
		}
		waitForEffects(t, d, 250)
	})
}
