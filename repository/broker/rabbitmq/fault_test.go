package rabbitmq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/repository/broker/rabbitmq"
	"seckill/repository/repotest/brokerserver"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

// publish publishes one event with a context of 2 s, and checks that the call ends with it.
func publish(t *testing.T, b *rabbitmq.Broker) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	err := b.Publish(ctx, brokertest.Events(1))[0]
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("publishing took %v, its context 2 s", took)
	}
	return err
}

// publishUntil publishes until the result is as wanted.
func publishUntil(t *testing.T, b *rabbitmq.Broker, what string, wanted func(error) bool) {
	t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if err = publish(t, b); wanted(err) {
			return
		}
	}
	t.Fatalf("%s: still %v", what, err)
}

func isUnavailable(err error) bool { return errors.Is(err, outbox.ErrUnavailable) }
func isConfirmed(err error) bool   { return err == nil }

// RabbitMQ returns an unroutable message and then confirms it. Such an event does not count as sent.
func TestBroker_UnroutableIsNotConfirmed(t *testing.T) {
	server := brokerserver.RabbitMQ(t)
	topic := brokertest.Topic()
	b := open(t, server.URL(), topic, "points")
	defer b.Close()
	if err := publish(t, b); err != nil {
		t.Fatal(err)
	}
	if _, err := channel(t, server.URL()).QueueDelete(topic+".points", false, false, false); err != nil {
		t.Fatal(err)
	}
	if err := publish(t, b); !isUnavailable(err) {
		t.Errorf("an event that no queue took: %v, want ErrUnavailable", err)
	}
	if err := publish(t, b); err != nil {
		t.Errorf("the queue was not declared again: %v", err)
	}
}

// A server that is short of memory stops reading from publishers. Consumers continue.
func TestBroker_MemoryAlarm(t *testing.T) {
	server := brokerserver.RabbitMQ(t)
	topic := brokertest.Topic()
	b := open(t, server.URL(), topic, "points")
	defer b.Close()
	for range 3 {
		if err := publish(t, b); err != nil {
			t.Fatal(err)
		}
	}
	server.Run(t, "rabbitmqctl", "set_vm_memory_high_watermark", "0.000001")
	publishUntil(t, b, "short of memory", isUnavailable)
	if err := publish(t, b); !isUnavailable(err) {
		t.Errorf("while it is short of memory: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan int64, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- b.Subscribe(ctx, "points", func(_ context.Context, e outbox.Event) error { got <- e.ID; return nil })
	}()
	for range 3 {
		select {
		case <-got:
		case <-time.After(20 * time.Second):
			t.Fatal("a consumer is held up by the memory alarm")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	server.Run(t, "rabbitmqctl", "set_vm_memory_high_watermark", "0.6")
	publishUntil(t, b, "memory is back", isConfirmed)
}

// An event that is too large for the server closes the channel that it shares with others. Only that event is refused.
func TestBroker_ServerRefusesSize(t *testing.T) {
	server := brokerserver.RabbitMQ(t)
	server.Run(t, "rabbitmqctl", "eval", "persistent_term:put(max_message_size, 1000), application:set_env(rabbit, max_message_size, 1000).")
	b := open(t, server.URL(), brokertest.Topic(), "points")
	defer b.Close()
	events := brokertest.Events(3)
	events[1].Payload = make([]byte, 1001)
	sent := map[int64]bool{}
	for range 3 { // as a relay does
		for i, err := range b.Publish(t.Context(), events) {
			switch {
			case i == 1 && !errors.Is(err, outbox.ErrRefused):
				t.Fatalf("the large event: %v, want ErrRefused", err)
			case i != 1 && err != nil && !isUnavailable(err):
				t.Errorf("event %d: %v", i, err)
			case err == nil:
				sent[events[i].ID] = true
			}
		}
	}
	if err := publish(t, b); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
