// Package rabbitmq is a broker on RabbitMQ 4: a fanout exchange with a quorum queue for each group, publisher confirms and
// mandatory routing.
//
// Publishing has a connection of its own, and so has each subscription: RabbitMQ stops reading from a publishing
// connection while it is short of memory, and consumers must continue then.
package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"seckill/service/outbox"
)

// Options configure a Broker. URL, Exchange and Groups are required.
type Options struct {
	URL      string       // amqp://user:password@host:port/vhost, or amqps://; ?heartbeat=SECONDS overrides the default of 5 s
	Exchange string       // the queue of a group is Exchange.Group, its dead letters are in Exchange.Group.dead
	Groups   []string     // the groups that get every event
	Log      *slog.Logger // default: none
}

const (
	prefetch   = 1000     // events that a subscription holds at most
	maxPayload = 16 << 20 // RabbitMQ's default max_message_size
)

// Broker implements outbox.Broker. It retains payloads until RabbitMQ has answered or the connection is dropped, also
// after Publish has returned.
type Broker struct {
	opts Options
	base *outbox.BrokerBase

	mu        sync.Mutex
	publisher *connection // nil until it is needed
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker. It connects when it is used, so RabbitMQ does not have to be reachable yet.
func New(opts Options) (*Broker, error) {
	if opts.Exchange == "" || len(opts.Groups) == 0 {
		return nil, errors.New("rabbitmq: an exchange and its groups are required")
	}
	if _, err := amqp.ParseURI(opts.URL); err != nil {
		return nil, fmt.Errorf("rabbitmq: address: %w (expected amqp://user:password@host:5672/)", err)
	}
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Broker{opts: opts, base: outbox.NewBrokerBase()}, nil
}

// queue returns the queue of a group.
func (b *Broker) queue(group string) string { return b.opts.Exchange + "." + group }

// DeadQueue returns the queue of a group's dead letters.
func DeadQueue(exchange, group string) string { return exchange + "." + group + ".dead" }

// declare creates the exchange and all queues, unless they exist.
func (b *Broker) declare(ch *amqp.Channel) error {
	if err := ch.ExchangeDeclare(b.opts.Exchange, amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
		return err
	}
	for _, group := range b.opts.Groups {
		dead := DeadQueue(b.opts.Exchange, group)
		if _, err := ch.QueueDeclare(dead, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
			return err
		}
		_, err := ch.QueueDeclare(b.queue(group), true, false, false, false, amqp.Table{
			"x-queue-type": "quorum",
			// An event becomes a dead letter when a handler gives it up, not when several consumers died holding it.
			"x-delivery-limit":          -1,
			"x-dead-letter-exchange":    "",
			"x-dead-letter-routing-key": dead,
			// A dead letter is confirmed before it leaves the queue; that needs rejecting overflow:
			// https://www.rabbitmq.com/docs/quorum-queues#activating-at-least-once-dead-lettering
			"x-dead-letter-strategy": "at-least-once",
			"x-overflow":             "reject-publish",
		})
		if err != nil {
			return err
		}
		if err := ch.QueueBind(b.queue(group), "", b.opts.Exchange, false, nil); err != nil {
			return err
		}
	}
	return nil
}

func unavailable(err error) error { return fmt.Errorf("%w: rabbitmq: %w", outbox.ErrUnavailable, err) }

// Close ends all subscriptions and calls, and closes the connections.
func (b *Broker) Close() error {
	b.base.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.publisher != nil {
		b.publisher.drop()
		b.publisher = nil
	}
	return nil
}

// publisherConnection returns the connection for publishing. It opens one if there is none.
func (b *Broker) publisherConnection(ctx context.Context) (*connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.base.Err(); err != nil {
		return nil, err
	}
	if b.publisher != nil && b.publisher.isOpen() {
		return b.publisher, nil
	}
	b.publisher = nil
	c, err := b.connect(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	b.publisher = c
	return c, nil
}
