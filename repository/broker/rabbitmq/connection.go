package rabbitmq

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// handshakeTimeout bounds dialling and what follows until the connection is open, each.
const handshakeTimeout = 5 * time.Second

// connection is one connection to RabbitMQ, with the channels that publish on it.
type connection struct {
	amqp    *amqp.Connection
	net     net.Conn
	blocked <-chan amqp.Blocking

	mu   sync.Mutex
	idle []*lane
}

// connect opens a connection and declares the queues on it.
func (b *Broker) connect(ctx context.Context) (*connection, error) {
	c := &connection{}
	conn, err := amqp.DialConfig(b.opts.URL, amqp.Config{
		Heartbeat:  b.opts.Heartbeat,
		Properties: amqp.Table{"connection_name": "seckill " + b.opts.Exchange},
		Dial: func(network, addr string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: handshakeTimeout}
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c.net = conn
			// The client lifts it when the connection is open and heartbeats watch over it.
			return conn, conn.SetDeadline(time.Now().Add(handshakeTimeout))
		},
	})
	if err != nil {
		if c.net != nil {
			err = errors.Join(err, ignoreClosed(c.net.Close()))
		}
		return nil, err
	}
	c.amqp = conn
	c.blocked = conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	// Whoever calls may be gone before a frozen server has answered: dropping ends these calls too.
	stop := context.AfterFunc(ctx, c.drop)
	defer stop()
	if err := c.prepare(b.declare); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// prepare runs calls on a channel of their own.
func (c *connection) prepare(calls func(*amqp.Channel) error) error {
	ch, err := c.amqp.Channel()
	if err != nil {
		return err
	}
	if err := calls(ch); err != nil {
		return err
	}
	return ch.Close()
}

func (c *connection) alive() bool { return !c.amqp.IsClosed() }

// drop gives the connection up without a word to the server, which may not be listening. Everything that waits on it
// returns.
func (c *connection) drop() {
	_ = c.net.Close() // it may be closed already
	_ = c.amqp.CloseDeadline(time.Now())
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// lane is a channel in confirm mode. One call of Publish has it at a time, so that what comes back belongs to that.
type lane struct {
	channel  *amqp.Channel
	returned <-chan amqp.Return
	closed   <-chan *amqp.Error
}

// lane takes an idle channel or opens one.
func (c *connection) lane() (*lane, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		l := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return l, nil
	}
	c.mu.Unlock()
	ch, err := c.amqp.Channel()
	if err != nil {
		return nil, err
	}
	l := &lane{
		channel:  ch,
		returned: ch.NotifyReturn(make(chan amqp.Return, 128)),
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
	}
	return l, ch.Confirm(false)
}

// giveBack makes a channel on which nothing is outstanding available to others.
func (c *connection) giveBack(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, l)
}
