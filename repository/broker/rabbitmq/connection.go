package rabbitmq

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// connectTimeout limits dialling, and the handshake after it.
const connectTimeout = 5 * time.Second

// heartbeat is the interval of heartbeats; a connection that is silent for twice as long is dead.
const heartbeat = 5 * time.Second

// connection is one connection to RabbitMQ, with a pool of channels for publishing.
type connection struct {
	amqp    *amqp.Connection
	net     net.Conn
	blocked <-chan amqp.Blocking

	mu   sync.Mutex
	idle []*publishChannel
}

// connect opens a connection and declares the queues on it.
func (b *Broker) connect(ctx context.Context) (*connection, error) {
	c := &connection{}
	conn, err := amqp.DialConfig(b.opts.URL, amqp.Config{
		Heartbeat:  heartbeat,
		Properties: amqp.Table{"connection_name": "seckill " + b.opts.Exchange},
		Dial: func(network, addr string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: connectTimeout}
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c.net = conn
			// The client removes the deadline when the connection is open and has heartbeats.
			return conn, conn.SetDeadline(time.Now().Add(connectTimeout))
		},
	})
	if err != nil {
		if c.net != nil {
			_ = c.net.Close() // it may be closed already
		}
		return nil, err
	}
	c.amqp = conn
	c.blocked = conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	// A frozen server may not answer before ctx ends; dropping the connection ends these calls.
	stop := context.AfterFunc(ctx, c.drop)
	defer stop()
	if err := c.withChannel(b.declare); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// withChannel runs f on a channel of its own.
func (c *connection) withChannel(f func(*amqp.Channel) error) error {
	ch, err := c.amqp.Channel()
	if err != nil {
		return err
	}
	return errors.Join(f(ch), ch.Close())
}

func (c *connection) isOpen() bool { return !c.amqp.IsClosed() }

// drop closes the connection without telling the server, which may not be reading. Everything that waits on the
// connection returns.
func (c *connection) drop() {
	_ = c.net.Close() // it may be closed already
	_ = c.amqp.CloseDeadline(time.Now())
}

// closeGracefully closes the connection so that acknowledgements on their way still arrive.
func (c *connection) closeGracefully() {
	_ = c.amqp.CloseDeadline(time.Now().Add(2 * time.Second)) // a server that is gone has requeued its deliveries
	c.drop()
}

// publishChannel is a channel in confirm mode. One call of Publish uses it at a time, so that all returned messages
// belong to that call.
type publishChannel struct {
	*amqp.Channel
	returned <-chan amqp.Return
	closed   <-chan *amqp.Error
}

// acquire takes an idle channel or opens one.
func (c *connection) acquire() (*publishChannel, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		ch := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return ch, nil
	}
	c.mu.Unlock()
	ch, err := c.amqp.Channel()
	if err != nil {
		return nil, err
	}
	return &publishChannel{
		Channel:  ch,
		returned: ch.NotifyReturn(make(chan amqp.Return, 128)),
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
	}, ch.Confirm(false)
}

// release makes a channel available to other calls. Nothing may be outstanding on it.
func (c *connection) release(ch *publishChannel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, ch)
}
