package redisstream

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Waker passes wake-ups on to the relays of other instances, by Redis' publish/subscribe. It only saves time: a wake-up
// that is lost costs its event the relay's Poll.
type Waker struct {
	client  redis.UniversalClient
	channel string
	wake    func()
	pending chan struct{}
}

// NewWaker returns a waker that calls wake, which must not block, whenever an instance with the same channel calls Wake.
// The client stays the caller's.
func NewWaker(client redis.UniversalClient, channel string, wake func()) *Waker {
	return &Waker{client: client, channel: channel, wake: wake, pending: make(chan struct{}, 1)}
}

// Wake wakes this instance's relay at once and the others' soon. It never blocks.
func (w *Waker) Wake() {
	w.wake()
	select {
	case w.pending <- struct{}{}:
	default:
	}
}

// wakeEvery is how often others are woken at most.
const wakeEvery = 20 * time.Millisecond

// Run sends and receives until ctx ends, whatever fails.
func (w *Waker) Run(ctx context.Context) {
	var receiving sync.WaitGroup
	receiving.Go(func() { w.receive(ctx) })
	defer receiving.Wait()
	for {
		select {
		case <-w.pending:
			_ = w.client.Publish(ctx, w.channel, "").Err() // lost wake-ups do no harm
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

// receive leaves it to the client to connect again; a read of its own would not end with ctx.
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
