package rabbitmq

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"seckill/service/outbox"
)

// Subscribe consumes the group's queue, over as many connections, one after the other, as it takes.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	if err := b.life.Err(); err != nil {
		return err
	}
	ctx, cancel := b.life.Bind(ctx)
	defer cancel()
	failures := 0
	for ctx.Err() == nil {
		started := time.Now()
		err := b.consume(ctx, group, handle)
		if ctx.Err() != nil {
			break
		}
		if time.Since(started) > time.Minute { // it worked
			failures = 0
		}
		failures++
		b.opts.Log.Warn("rabbitmq: consuming was interrupted; connecting again", "group", group, "error", err)
		outbox.Pause{}.Wait(ctx, failures)
	}
	return b.life.Err()
}

// consume consumes over one connection until it fails or ctx ends.
func (b *Broker) consume(ctx context.Context, group string, handle outbox.Handler) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	// Handlers end first: what they have acknowledged has to reach the server, what they have not goes back to the
	// queue when the connection ends.
	defer conn.leave()
	ch, err := conn.amqp.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(b.opts.Prefetch, 0, false); err != nil {
		return err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	deliveries, err := ch.ConsumeWithContext(ctx, b.queue(group), "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	lanes := outbox.StartLanes(ctx, outbox.LanesConfig{Workers: b.opts.Workers, Queue: b.opts.Prefetch}, handle)
	defer lanes.Stop()
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return errors.New("the server has ended the subscription")
			}
			b.deliver(ctx, group, lanes, d)
		case err := <-closed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// leave ends a connection that was used to the end, so that acknowledgements under way arrive.
func (c *connection) leave() {
	_ = c.amqp.CloseDeadline(time.Now().Add(2 * time.Second)) // a server that is gone has put everything back by itself
	c.drop()
}

func (b *Broker) deliver(ctx context.Context, group string, lanes *outbox.Lanes, d amqp.Delivery) {
	settle := func(err error) {
		switch {
		case err == nil:
			_ = d.Ack(false) // if that fails the connection is gone, and the event comes again
		case errors.Is(err, outbox.ErrPoison):
			b.opts.Log.Error("rabbitmq: a consumer gave an event up", "group", group, "message", d.MessageId, "cause", err)
			_ = d.Nack(false, false) // to the dead letters
		}
	}
	e, err := parse(d)
	if err != nil {
		settle(err)
		return
	}
	_ = lanes.Deliver(ctx, e, settle) // ends with ctx only: the event goes back to the queue
}
