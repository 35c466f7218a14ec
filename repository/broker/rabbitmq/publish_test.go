package rabbitmq

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"seckill/service/outbox"
)

// A connection that breaks closes all that it reports by, also when the last confirmation is there already: whoever waits
// is told, and nobody goes round in circles.
func TestAConnectionThatBreaksEndsTheWait(t *testing.T) {
	for name, confirmations := range map[string][]*amqp.DeferredConfirmation{
		"after the last confirmation": {nil}, "before it": {new(amqp.DeferredConfirmation)},
	} {
		t.Run(name, func(t *testing.T) {
			returned, closed, blocked := make(chan amqp.Return), make(chan *amqp.Error, 1), make(chan amqp.Blocking)
			closed <- amqp.ErrClosed
			close(returned)
			close(blocked)
			close(closed)
			c := &call{
				Broker: &Broker{}, conn: &connection{blocked: blocked}, lane: &lane{returned: returned, closed: closed},
				events: make([]outbox.Event, 1), results: make([]error, 1), confirmations: confirmations,
			}
			if confirmations[0] != nil {
				c.results[0] = unavailable(errUnconfirmed)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.await(t.Context())
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("it waits for ever")
			}
			if !c.broken {
				t.Error("the connection would be used again")
			}
		})
	}
}
