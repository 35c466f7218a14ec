package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// signals brings the news of releases, over one connection for all keys that are waited for. It is a hint: news can be
// lost, which is why waiters poll as well.
type signals struct {
	client redis.UniversalClient

	mu      sync.Mutex
	topics  map[string]*topic
	changes []change
	changed chan struct{} // has room for one: there are changes
	running bool

	ctx  context.Context // ends with close
	stop context.CancelFunc
	done sync.WaitGroup
}

// topic is what one waiter at a time listens to.
type topic struct {
	channel string
	news    chan struct{} // has room for one: a release, or the confirmation of the subscription
	stands  bool          // the subscription was confirmed
	used    bool          // by a waiter
	since   time.Time     // that it is not used
}

// linger is how long a subscription stays after its last use: the next waiter for the same lock is often close behind.
const linger = time.Second

// change is a subscription to start or to end.
type change struct {
	channel string
	start   bool
}

func newSignals(client redis.UniversalClient) *signals {
	ctx, stop := context.WithCancel(context.Background())
	return &signals{client: client, topics: map[string]*topic{}, changed: make(chan struct{}, 1), ctx: ctx, stop: stop}
}

// subscribe returns at once; the topic has news when the subscription stands. One waiter uses a channel at a time.
func (s *signals) subscribe(channel string) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil {
		t = &topic{channel: channel, news: make(chan struct{}, 1)}
		s.topics[channel] = t
		s.change(change{channel, true})
	} else if t.stands {
		t.tell()
	}
	t.used = true
	if !s.running && s.ctx.Err() == nil {
		s.running = true
		sub := s.client.Subscribe(s.ctx)
		s.done.Go(func() { s.listen(sub) })
		s.done.Go(func() { s.write(sub) })
	}
	return t
}

func (s *signals) unsubscribe(t *topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.used, t.since = false, time.Now()
}

// sweep ends the subscriptions that have not been used for a while.
func (s *signals) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, t := range s.topics {
		if !t.used && time.Since(t.since) > linger {
			delete(s.topics, channel)
			s.change(change{channel, false})
		}
	}
}

func (s *signals) change(c change) {
	s.changes = append(s.changes, c)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// write passes the changes on, in their order. It has a goroutine of its own, because it blocks while Redis is away.
func (s *signals) write(sub *redis.PubSub) {
	ticker := time.NewTicker(linger)
	defer ticker.Stop()
	for {
		select {
		case <-s.changed:
		case <-ticker.C:
			s.sweep()
		case <-s.ctx.Done():
			sub.Close()
			return
		}
		s.mu.Lock()
		changes := s.changes
		s.changes = nil
		s.mu.Unlock()
		for _, c := range changes {
			// An error is not lost: the client subscribes again to all channels when it has connected again.
			if c.start {
				_ = sub.Subscribe(s.ctx, c.channel)
			} else {
				_ = sub.Unsubscribe(s.ctx, c.channel)
			}
		}
	}
}

// listen hands out the news until the connection is closed by write.
func (s *signals) listen(sub *redis.PubSub) {
	for s.ctx.Err() == nil {
		event, err := sub.Receive(s.ctx)
		if err != nil {
			s.rest()
			continue
		}
		switch e := event.(type) {
		case *redis.Message:
			s.tell(e.Channel)
		case *redis.Subscription:
			if e.Kind == "subscribe" { // also after a new connection, before which news may have been lost
				s.tell(e.Channel)
			}
		}
	}
}

func (s *signals) tell(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[channel]; t != nil {
		t.stands = true
		t.tell()
	}
}

func (t *topic) tell() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

func (s *signals) rest() {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

func (s *signals) close() {
	s.stop()
	s.done.Wait()
}
