package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"seckill/service/outbox"
)

// Publish sends the events on a channel of their own and waits for their confirmations. An event that comes back
// because no queue is bound is not confirmed, and has the queues declared again.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.life.Publish(ctx, events, func(ctx context.Context) []error {
		conn, err := b.publishing(ctx)
		if err != nil {
			return outbox.Same(len(events), err)
		}
		l, err := conn.lane()
		if err != nil {
			conn.drop()
			return outbox.Same(len(events), unavailable(err))
		}
		call := &call{Broker: b, conn: conn, lane: l, events: events, results: make([]error, len(events)),
			confirmations: make([]*amqp.DeferredConfirmation, len(events))}
		// Sending blocks while the server does not read. When nobody waits any more, the connection goes.
		stop := context.AfterFunc(ctx, conn.drop)
		call.send(ctx)
		call.await(ctx)
		if stop() && !call.broken {
			conn.giveBack(l)
		} else {
			conn.drop()
		}
		return call.results
	})
}

// call is one call of Publish.
type call struct {
	*Broker
	conn          *connection
	lane          *lane
	events        []outbox.Event
	results       []error
	confirmations []*amqp.DeferredConfirmation // nil where results has the reason
	broken        bool                         // something is outstanding that nobody waits for
}

// errUnconfirmed stands for an event until its confirmation is there.
var errUnconfirmed = errors.New("not confirmed")

func (c *call) send(ctx context.Context) {
	for i, e := range c.events {
		if len(e.Payload) > c.opts.MaxPayload {
			c.results[i] = fmt.Errorf("%w: %d bytes are more than RabbitMQ takes (%d)", outbox.ErrRefused, len(e.Payload), c.opts.MaxPayload)
			continue
		}
		confirmation, err := c.lane.channel.PublishWithDeferredConfirmWithContext(ctx, c.opts.Exchange, "", true, false, message(e, i))
		if err != nil {
			c.broken = true
			c.results[i] = unavailable(err)
			continue
		}
		c.confirmations[i] = confirmation
		c.results[i] = unavailable(errUnconfirmed)
	}
}

// await waits for all confirmations, or until they cannot come any more.
func (c *call) await(ctx context.Context) {
	returned, blocked := c.lane.returned, c.conn.blocked // nil once they are closed, which is forever ready
	for i, confirmation := range c.confirmations {
		if confirmation == nil {
			continue
		}
		for waiting := true; waiting; {
			select {
			case <-confirmation.Done():
				c.confirmed(i, confirmation.Acked())
				waiting = false
			case r, open := <-returned:
				if !open {
					returned = nil // c.lane.closed says why
				} else {
					c.cameBack(r)
				}
			case reason := <-c.lane.closed:
				c.failed(reason)
				return
			case blocking, open := <-blocked:
				if !open {
					blocked = nil
				} else if blocking.Active {
					c.failed(fmt.Errorf("it takes nothing at the moment: %s", blocking.Reason))
					return
				}
			case <-ctx.Done():
				c.failed(context.Cause(ctx))
				return
			}
		}
	}
	c.drain(returned)
}

// drain takes what came back. RabbitMQ sends it before its confirmation, so it is here by now.
func (c *call) drain(returned <-chan amqp.Return) {
	for {
		select {
		case r, open := <-returned:
			if !open { // the connection broke after the last confirmation
				c.broken = true
				return
			}
			c.cameBack(r)
		default:
			return
		}
	}
}

// confirmed settles an event, unless it came back.
func (c *call) confirmed(i int, acked bool) {
	switch {
	case !acked: // the queue could not take it
		c.results[i] = unavailable(errors.New("it has rejected the event"))
	case errors.Is(c.results[i], errUnconfirmed):
		c.results[i] = nil
	}
}

// cameBack notes an event that no queue took. RabbitMQ confirms it nevertheless.
func (c *call) cameBack(r amqp.Return) {
	i, err := strconv.Atoi(r.CorrelationId)
	if err != nil || i < 0 || i >= len(c.results) {
		return // not one of ours
	}
	c.broken = true // so that the next connection declares the queues again
	c.results[i] = unavailable(fmt.Errorf("no queue took the event: %s", r.ReplyText))
}

// failed settles what is outstanding when the channel is gone.
func (c *call) failed(reason error) {
	c.broken = true
	size := refusedSize(reason)
	for i, err := range c.results {
		switch {
		case !errors.Is(err, errUnconfirmed):
		case size > 0 && len(c.events[i].Payload) == size:
			c.results[i] = fmt.Errorf("%w: %w", outbox.ErrRefused, reason)
		default:
			c.results[i] = unavailable(fmt.Errorf("not confirmed: %w", reason))
		}
	}
}

// refusedSize returns the size of a message for which the server closed the channel, or 0. It closes with the text
// "message size 17000000 is larger than configured max size 16777216", or "… larger than max size …".
func refusedSize(reason error) int {
	var closed *amqp.Error
	if !errors.As(reason, &closed) || closed == nil || closed.Code != amqp.PreconditionFailed {
		return 0
	}
	_, rest, found := strings.Cut(closed.Reason, "message size ")
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(rest, " ")
	size, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return size
}

func message(e outbox.Event, index int) amqp.Publishing {
	headers := amqp.Table{}
	for _, h := range outbox.Headers(e) {
		headers[h.Name] = h.Value
	}
	return amqp.Publishing{
		Headers: headers, ContentType: "application/json", DeliveryMode: amqp.Persistent,
		MessageId: strconv.FormatInt(e.ID, 10), Type: e.Type, Timestamp: e.CreatedAt,
		CorrelationId: strconv.Itoa(index), Body: e.Payload,
	}
}

func parse(d amqp.Delivery) (outbox.Event, error) {
	return outbox.ParseEvent(func(name string) string {
		value, _ := d.Headers[name].(string)
		return value
	}, d.Body)
}
