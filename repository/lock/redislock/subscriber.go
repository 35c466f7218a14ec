package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscriber receives the messages about released locks, over one connection for all channels. A message is a hint: it can
// get lost, so waiters poll as well.
type subscriber struct {
	client redis.UniversalClient

	mu            sync.Mutex
	subscriptions map[string]*subscription // by channel
	started       bool                     // the two goroutines run
	changed       chan struct{}            // has room for one: there are subscriptions to request

	ctx        context.Context // ends with close
	cancel     context.CancelFunc
	background sync.WaitGroup
}

// subscription is used by one waiter at a time: the others queue in the process.
type subscription struct {
	wake      chan struct{} // has room for one: a lock was released, or the subscription was confirmed
	requested bool
	confirmed bool
	inUse     bool
	idleSince time.Time // when its last use ended
}

// linger is how long a subscription outlives its last use: the next waiter for the same lock often comes soon.
const linger = time.Second

func newSubscriber(client redis.UniversalClient) *subscriber {
	ctx, cancel := context.WithCancel(context.Background())
	return &subscriber{client: client, subscriptions: map[string]*subscription{}, changed: make(chan struct{}, 1), ctx: ctx, cancel: cancel}
}

// subscribe returns at once. The subscription wakes its user when it is confirmed.
func (s *subscriber) subscribe(channel string) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscriptions[channel]
	if sub == nil {
		sub = &subscription{wake: make(chan struct{}, 1)}
		s.subscriptions[channel] = sub
		notify(s.changed)
	} else if sub.confirmed {
		notify(sub.wake)
	}
	sub.inUse = true
	if !s.started && s.ctx.Err() == nil {
		s.started = true
		connection := s.client.Subscribe(s.ctx)
		s.background.Go(func() { s.receive(connection) })
		s.background.Go(func() { s.request(connection) })
	}
	return sub
}

// unsubscribe ends the use of sub, which may be nil.
func (s *subscriber) unsubscribe(sub *subscription) {
	if sub == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.inUse, sub.idleSince = false, time.Now()
}

// request sends the changes of subscriptions. It has a goroutine of its own, because sending blocks while Redis is away.
func (s *subscriber) request(connection *redis.PubSub) {
	ticker := time.NewTicker(linger)
	defer ticker.Stop()
	for {
		select {
		case <-s.changed:
		case <-ticker.C:
		case <-s.ctx.Done():
			_ = connection.Close()
			return
		}
		start, end := s.changes()
		// Errors need no handling: after it has connected again, the client subscribes to all channels.
		if len(start) > 0 {
			_ = connection.Subscribe(s.ctx, start...)
		}
		if len(end) > 0 {
			_ = connection.Unsubscribe(s.ctx, end...)
		}
	}
}

// changes returns the channels to subscribe to, and those that were not used for a while.
func (s *subscriber) changes() (start, end []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, sub := range s.subscriptions {
		switch {
		case !sub.requested:
			sub.requested = true
			start = append(start, channel)
		case !sub.inUse && time.Since(sub.idleSince) > linger:
			delete(s.subscriptions, channel)
			end = append(end, channel)
		}
	}
	return start, end
}

// receive wakes the waiters, until request closes the connection.
func (s *subscriber) receive(connection *redis.PubSub) {
	for event := range connection.ChannelWithSubscriptions() {
		switch e := event.(type) {
		case *redis.Message:
			s.wake(e.Channel)
		case *redis.Subscription:
			if e.Kind == "subscribe" { // also on a new connection, before which messages may have been lost
				s.wake(e.Channel)
			}
		}
	}
}

func (s *subscriber) wake(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.subscriptions[channel]; sub != nil {
		sub.confirmed = true
		notify(sub.wake)
	}
}

// notify sends without blocking: one value in the channel is enough.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *subscriber) close() {
	s.cancel()
	s.background.Wait()
}
