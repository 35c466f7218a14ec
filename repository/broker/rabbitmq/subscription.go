package rabbitmq

import (
	"context"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"seckill/service/outbox"
)

// Subscribe consumes the group's queue. It opens a new connection whenever one fails.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	return b.base.Subscribe(ctx, func(ctx context.Context) error {
		outbox.Backoff{}.Retry(ctx, func(ctx context.Context) error { return b.consume(ctx, group, handle) }, func(err error) {
			b.opts.Log.Warn("rabbitmq: consuming was interrupted; connecting again", "group", group, "error", err)
		})
		return nil
	})
}

// consume consumes over one connection until that fails or ctx ends.
func (b *Broker) consume(ctx context.Context, group string, handle outbox.Handler) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	// After the handlers, so that the server gets their acknowledgements and requeues only what was not handled.
	defer conn.closeGracefully()
	ch, err := conn.amqp.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	deliveries, err := ch.ConsumeWithContext(ctx, b.queue(group), "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	dispatcher := outbox.StartDispatcher(ctx, outbox.DispatcherConfig{Queue: prefetch}, handle)
	defer dispatcher.Stop()
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return errors.New("the server has ended the subscription")
			}
			b.deliver(ctx, group, dispatcher, d)
		case err := <-closed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *Broker) deliver(ctx context.Context, group string, dispatcher *outbox.Dispatcher, d amqp.Delivery) {
	finish := func(err error) {
		switch {
		case err == nil:
			_ = d.Ack(false) // fails only if the connection is lost; the event is then delivered again
		case errors.Is(err, outbox.ErrPoison):
			b.opts.Log.Error("rabbitmq: a consumer gave up an event", "group", group, "message", d.MessageId, "cause", err)
			_ = d.Nack(false, false) // to the dead letters
		}
	}
	e, err := parse(d)
	if err != nil {
		finish(err)
		return
	}
	_ = dispatcher.Deliver(ctx, e, finish) // fails only if ctx has ended; RabbitMQ then requeues the event
}
