package rabbitmq

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"seckill/service/outbox"
)

// A broken connection closes all its channels. await returns then, also if the last confirmation has already arrived, and
// does not loop on the closed channels.
func TestPublication_AwaitEndsWithConnection(t *testing.T) {
	for name, confirmations := range map[string][]*amqp.DeferredConfirmation{
		"after the last confirmation": {nil}, "before it": {new(amqp.DeferredConfirmation)},
	} {
		t.Run(name, func(t *testing.T) {
			returned, closed, blocked := make(chan amqp.Return), make(chan *amqp.Error, 1), make(chan amqp.Blocking)
			closed <- amqp.ErrClosed
			close(returned)
			close(blocked)
			close(closed)
			p := newPublication(&connection{blocked: blocked}, &publishChannel{returned: returned, closed: closed}, make([]outbox.Event, 1))
			p.confirmations = confirmations
			if confirmations[0] != nil {
				p.results[0] = unavailable(errUnconfirmed)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				p.await(t.Context())
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("await does not return")
			}
			if !p.broken {
				t.Error("the channel would be used again")
			}
		})
	}
}
