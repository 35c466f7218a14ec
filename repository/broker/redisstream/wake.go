package redisstream

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Waker wakes the relays of other instances over Redis publish/subscribe. It only saves time: an event whose wake-up is lost
// waits for the next poll of a relay.
type Waker struct {
	client  redis.UniversalClient
	channel string
	wake    func()
	pending chan struct{}
}

// NewWaker returns a waker that calls wake whenever an instance with the same channel calls Wake. wake must not block. The
// waker does not close the client.
func NewWaker(client redis.UniversalClient, channel string, wake func()) *Waker {
	return &Waker{client: client, channel: channel, wake: wake, pending: make(chan struct{}, 1)}
}

// Wake wakes the relay of this instance at once and those of the others soon. It never blocks.
func (w *Waker) Wake() {
	w.wake()
	select {
	case w.pending <- struct{}{}:
	default:
	}
}

// wakeEvery is the shortest time between two messages.
const wakeEvery = 20 * time.Millisecond

// Run sends and receives wake-ups until ctx ends. It ignores errors: losing a wake-up is safe.
func (w *Waker) Run(ctx context.Context) {
	var receiving sync.WaitGroup
	receiving.Go(func() { w.receive(ctx) })
	defer receiving.Wait()
	for {
		select {
		case <-w.pending:
			_ = w.client.Publish(ctx, w.channel, "").Err()
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(wakeEvery):
		case <-ctx.Done():
			return
		}
	}
}

// receive uses the channel of the client, which reconnects; a blocking read would not end with ctx.
func (w *Waker) receive(ctx context.Context) {
	subscription := w.client.Subscribe(ctx, w.channel)
	defer subscription.Close()
	for messages := subscription.Channel(); ; {
		select {
		case <-messages:
			w.wake()
		case <-ctx.Done():
			return
		}
	}
}
