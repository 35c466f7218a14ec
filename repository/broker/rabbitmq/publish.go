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

// Publish sends the events on one channel and waits for their confirmations. An event that is returned because no queue is
// bound is not confirmed; the next call connects again and declares the queues.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.base.Publish(ctx, events, func(ctx context.Context) []error {
		conn, err := b.publisherConnection(ctx)
		if err != nil {
			return outbox.FailAll(events, err)
		}
		ch, err := conn.acquire()
		if err != nil {
			conn.drop()
			return outbox.FailAll(events, unavailable(err))
		}
		p := newPublication(conn, ch, events)
		// Sending blocks while the server does not read. Dropping the connection ends it.
		stop := context.AfterFunc(ctx, conn.drop)
		p.send(ctx, b.opts.Exchange)
		p.await(ctx)
		if stop() && !p.broken {
			conn.release(ch)
		} else {
			conn.drop()
		}
		return p.results
	})
}

// publication is one call of Publish.
type publication struct {
	conn          *connection
	channel       *publishChannel
	events        []outbox.Event
	results       []error
	confirmations []*amqp.DeferredConfirmation // nil for events that were not sent
	broken        bool                         // the channel must not be used again
}

func newPublication(conn *connection, ch *publishChannel, events []outbox.Event) *publication {
	return &publication{
		conn: conn, channel: ch, events: events,
		results: make([]error, len(events)), confirmations: make([]*amqp.DeferredConfirmation, len(events)),
	}
}

// errUnconfirmed is the result of an event until its confirmation arrives.
var errUnconfirmed = errors.New("not confirmed")

func (p *publication) send(ctx context.Context, exchange string) {
	for i, e := range p.events {
		if len(e.Payload) > maxPayload {
			p.results[i] = fmt.Errorf("%w: %d bytes are more than RabbitMQ accepts (%d)", outbox.ErrRefused, len(e.Payload), maxPayload)
			continue
		}
		const mandatory, immediate = true, false
		confirmation, err := p.channel.PublishWithDeferredConfirmWithContext(ctx, exchange, "", mandatory, immediate, newMessage(e, i))
		if err != nil {
			p.broken = true
			p.results[i] = unavailable(err)
			continue
		}
		p.confirmations[i] = confirmation
		p.results[i] = unavailable(errUnconfirmed)
	}
}

// await waits until every confirmation has arrived or no more can arrive.
func (p *publication) await(ctx context.Context) {
	for i, confirmation := range p.confirmations {
		if confirmation == nil {
			continue
		}
		if err := p.awaitOne(ctx, confirmation); err != nil {
			p.fail(err)
			return
		}
		p.confirm(i, confirmation.Acked())
	}
	for { // RabbitMQ returns a message before it confirms it, so all returned ones are here
		select {
		case r, open := <-p.channel.returned:
			if !open { // the connection broke after the last confirmation
				p.broken = true
				return
			}
			p.noteReturned(r)
		default:
			return
		}
	}
}

// awaitOne waits for one confirmation. It returns the reason if that cannot arrive any more.
func (p *publication) awaitOne(ctx context.Context, confirmation *amqp.DeferredConfirmation) error {
	returned, blocked := p.channel.returned, p.conn.blocked
	for {
		select {
		case <-confirmation.Done():
			return nil
		case r, open := <-returned:
			if !open {
				returned = nil // closed has the reason
				continue
			}
			p.noteReturned(r)
		case reason := <-p.channel.closed:
			return reason
		case b, open := <-blocked:
			if !open {
				blocked = nil
			} else if b.Active {
				return fmt.Errorf("it accepts nothing at the moment: %s", b.Reason)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// confirm sets the result of an event, unless it was returned.
func (p *publication) confirm(i int, acked bool) {
	switch {
	case !acked: // the queue could not store it
		p.results[i] = unavailable(errors.New("it has rejected the event"))
	case errors.Is(p.results[i], errUnconfirmed):
		p.results[i] = nil
	}
}

// noteReturned fails an event that no queue took. RabbitMQ confirms it nevertheless.
func (p *publication) noteReturned(r amqp.Return) {
	i, err := strconv.Atoi(r.CorrelationId)
	if err != nil || i < 0 || i >= len(p.results) {
		return // not an event of this call
	}
	p.broken = true // the next connection declares the queues
	p.results[i] = unavailable(fmt.Errorf("no queue took the event: %s", r.ReplyText))
}

// fail sets the results of all unconfirmed events.
func (p *publication) fail(reason error) {
	p.broken = true
	size := refusedSize(reason)
	for i, err := range p.results {
		switch {
		case !errors.Is(err, errUnconfirmed):
		case size > 0 && len(p.events[i].Payload) == size:
			p.results[i] = fmt.Errorf("%w: %w", outbox.ErrRefused, reason)
		default:
			p.results[i] = unavailable(fmt.Errorf("not confirmed: %w", reason))
		}
	}
}

// refusedSize returns the size of the message for which the server closed the channel, or 0. The server reports "message
// size 17000000 is larger than configured max size 16777216" or "… larger than max size …".
func refusedSize(reason error) int {
	closed, ok := errors.AsType[*amqp.Error](reason)
	if !ok || closed == nil || closed.Code != amqp.PreconditionFailed {
		return 0
	}
	_, rest, _ := strings.Cut(closed.Reason, "message size ")
	number, _, _ := strings.Cut(rest, " ")
	size, _ := strconv.Atoi(number) // 0 if there is none
	return size
}

func newMessage(e outbox.Event, index int) amqp.Publishing {
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
