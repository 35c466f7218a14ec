package pipeline

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

// victimVariable makes this test binary an instance that a test kills: it holds the DSN.
const victimVariable = "SECKILL_TEST_VICTIM_DSN"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(victimVariable); dsn != "" {
		victim(dsn)
		return
	}
	os.Exit(m.Run())
}

// stuck is a broker that says what it got and never answers.
type stuck struct{}

func (stuck) Publish(ctx context.Context, events []outbox.Event) []error {
	fmt.Println("publishing", len(events))
	<-ctx.Done()
	return outbox.Same(len(events), outbox.ErrUnavailable)
}

// victim is an instance in the middle of a batch.
func victim(dsn string) {
	db, err := repository.OpenMySQL(context.Background(), dsn, repository.PoolOptions{}, slog.Default())
	if err != nil {
		panic(err)
	}
	outbox.NewRelay(outbox.Config{
		Store: repository.NewOutbox(db), Broker: stuck{}, InFlight: 1,
		PublishTimeout: 2 * time.Second, SettleTimeout: time.Second, Lease: 3 * time.Second,
	}).Run(context.Background())
}

// An instance that is killed with a batch in its hands: another goes on when the lease is over, and sends the rest
// meanwhile.
func TestInstanceKilledInTheMiddleOfABatch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		d := open(t, target)
		const events = 250
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
		if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "publishing 100\n" {
			t.Errorf("the instance said %q (%v)", line, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed, as it should be
		if n := d.count(t, "outbox_event WHERE lock_owner IS NOT NULL AND status = 0"); n != 100 {
			t.Errorf("%d events are left in the hands of the dead, want 100", n)
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
		if took := time.Since(start); took > 6*time.Second { // the lease and a poll
			t.Errorf("the other instance took %v", took)
		}
		waitForEffects(t, d, events)
	})
}
