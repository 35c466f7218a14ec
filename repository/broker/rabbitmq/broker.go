// Package rabbitmq is a broker on RabbitMQ 4: a fanout exchange with a quorum queue for each group, publisher confirms
// and mandatory routing.
//
// Publishing has a connection of its own, and so has each subscription: RabbitMQ stops reading from a connection that
// publishes while it is short of memory, and consumers must go on then.
package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"seckill/service/outbox"
)

// Options say where RabbitMQ is and how to use it. URL, Exchange and Groups are required; the zero value of another
// field stands for its default.
type Options struct {
	URL      string   // amqp://user:password@host:port/vhost, or amqps://
	Exchange string   // the queue of a group is Exchange.Group, its dead letters are in Exchange.Group.dead
	Groups   []string // that have to get every event

	Workers    int // events that a subscription handles side by side; default 16
	Prefetch   int // events that a subscription holds at most; default 1000
	MaxPayload int // the server's max_message_size; default 16 MiB, which is the server's default too

	Heartbeat time.Duration // a connection that says nothing for twice as long is dead; default 5 s
	Log       *slog.Logger  // default: none
}

func (o *Options) setDefaults() error {
	if o.Exchange == "" || len(o.Groups) == 0 {
		return errors.New("rabbitmq: an exchange and its groups are required")
	}
	if _, err := amqp.ParseURI(o.URL); err != nil {
		return fmt.Errorf("rabbitmq: address: %w (it looks like amqp://user:password@host:5672/)", err)
	}
	if o.Prefetch <= 0 {
		o.Prefetch = 1000
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = 16 << 20
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Broker implements outbox.Broker. It keeps the payloads of events until RabbitMQ has answered or the connection is
// given up, also when Publish has returned before.
type Broker struct {
	opts Options
	life outbox.Lifetime

	mu        sync.Mutex
	publisher *connection // nil until it is needed
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker. It connects when it is first used, so RabbitMQ need not be there yet.
func New(opts Options) (*Broker, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	return &Broker{opts: opts, life: outbox.NewLifetime()}, nil
}

// queue is the queue of a group.
func (b *Broker) queue(group string) string { return b.opts.Exchange + "." + group }

// DeadQueue names the queue of a group's dead letters.
func DeadQueue(exchange, group string) string { return exchange + "." + group + ".dead" }

// declare makes sure that the exchange and all queues are there. Declaring again what is there already does nothing.
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
			// Events are counted out by whoever cannot take them, not by how often a consumer died holding them.
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

// unavailable blames RabbitMQ or the way to it.
func unavailable(err error) error { return fmt.Errorf("%w: rabbitmq: %w", outbox.ErrUnavailable, err) }

// Close ends all subscriptions and calls, and closes the connections.
func (b *Broker) Close() error {
	b.life.End()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.publisher != nil {
		b.publisher.drop()
		b.publisher = nil
	}
	return nil
}

// publishing returns the connection that publishes, opening one if need be.
func (b *Broker) publishing(ctx context.Context) (*connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.life.Err(); err != nil {
		return nil, err
	}
	if b.publisher != nil && b.publisher.alive() {
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
