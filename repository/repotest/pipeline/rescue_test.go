package pipeline

import (
	"log/slog"
	"testing"

	"seckill/repository/repotest/dbtest"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

// No relay runs anywhere. The rescue job, which a scheduler starts each minute, sends what is overdue, and nothing else.
func TestRescueWithoutARelay(t *testing.T) {
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
		jobs := outbox.Jobs{
			Relay:       outbox.NewRelay(outbox.Config{Store: d.outbox, Broker: b}),
			Maintenance: d.outbox, Monitor: &outbox.Monitor{Maintenance: d.outbox, Log: slog.New(slog.DiscardHandler)}, Log: slog.New(slog.DiscardHandler),
		}
		rescue := jobs.List()[0]
		for d.count(t, "outbox_event WHERE status = 1") == 0 { // until the consumer is there
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
