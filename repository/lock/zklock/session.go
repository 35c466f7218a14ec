package zklock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// session is the one session of a Locker. When it expires, the client starts another; what it kept is gone then.
type session struct {
	*zk.Conn
	asked      time.Duration // the timeout asked for
	removal    time.Duration // bounds the removal of a node
	negotiated atomic.Int64  // what the server granted, in ns
	sent       atomic.Int64  // requests

	mu    sync.Mutex
	holds map[*lockcore.Hold]struct{} // to be told of the end of the session

	closing sync.Once
	ended   chan struct{} // closed when the client's goroutines are over
}

func connect(c Config) (*session, error) {
	s := &session{asked: c.Session, removal: c.Timeout, holds: map[*lockcore.Hold]struct{}{}, ended: make(chan struct{})}
	conn, events, err := zk.Connect(c.Addrs, c.Session, zk.WithLogger((*listener)(s)), zk.WithHostProvider(new(hosts)),
		zk.WithEventCallback(s.event))
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	s.Conn = conn
	go func() {
		defer close(s.ended)
		for range events { // the callback gets them too; here is only seen when they end
		}
	}()
	return s, nil
}

func (s *session) close() {
	s.closing.Do(s.Conn.Close)
	<-s.ended
}

// timeout is after what silence the server may end the session.
func (s *session) timeout() time.Duration {
	if n := s.negotiated.Load(); n > 0 {
		return min(s.asked, time.Duration(n))
	}
	return s.asked
}

// trusted returns until when the session stands, for sure, if the server answered what was sent at that time.
func (s *session) trusted(sent time.Time) time.Time {
	return sent.Add(s.timeout() - s.timeout()/10) // its clock may be faster, and the holder takes a while to notice
}

// event is called by the client, which waits for it.
func (s *session) event(e zk.Event) {
	if e.Type != zk.EventSession || e.State != zk.StateExpired {
		return
	}
	s.mu.Lock()
	lost := s.holds
	s.holds = map[*lockcore.Hold]struct{}{}
	s.mu.Unlock()
	for h := range lost {
		h.MarkLost()
	}
}

func (s *session) enlist(h *lockcore.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[h] = struct{}{}
}

func (s *session) strike(h *lockcore.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// listener is the client's logger. The client tells the timeout that was granted to nobody else.
type listener session

// Printf implements zk.Logger.
func (l *listener) Printf(format string, args ...any) {
	if strings.HasPrefix(format, "authenticated:") && len(args) == 2 {
		if ms, ok := args[1].(int32); ok {
			l.negotiated.Store(int64(ms) * int64(time.Millisecond))
		}
	}
}

// hosts gives the servers out in turn. Unlike the client's own provider it lets a server be tried again at once after a
// connection is lost; a round in which none was reached is followed by the client's pause of a second.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last connection
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider.
func (h *hosts) Next() (server string, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next%len(h.servers)]
	pause = h.tried > 0 && h.tried%len(h.servers) == 0
	h.next++
	h.tried++
	return server, pause
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next--
	h.tried = 0
}

// pending is a request that may still be under way; closed when it is not.
type pending <-chan struct{}

// ask calls f, which blocks for as long as the client likes, until by at the latest. If it takes longer, or ctx ends,
// the request goes on by itself.
func ask[T any](ctx context.Context, s *session, by time.Time, f func() (T, error)) (result T, under pending, err error) {
	type answer struct {
		result T
		err    error
	}
	s.sent.Add(1)
	answers, done := make(chan answer, 1), make(chan struct{})
	go func() {
		defer close(done)
		result, err := f()
		answers <- answer{result, err}
	}()
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.result, nil, a.err
	case <-ctx.Done():
		return result, done, lockcore.Ended(ctx)
	case <-timer.C:
		return result, done, fmt.Errorf("%w: no answer in time", lock.ErrUnavailable)
	}
}

// retry asks again until there is an answer, which is right for what may be repeated.
func retry[T any](ctx context.Context, s *session, by time.Time, f func() (T, error)) (T, error) {
	for {
		result, _, err := ask(ctx, s, by, f)
		if !unanswered(err) {
			return result, err
		}
		if time.Until(by) < pauseBetween {
			return result, fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
		}
		time.Sleep(pauseBetween)
	}
}

// pauseBetween is how long to wait before asking again; the client is about to connect again meanwhile.
const pauseBetween = 10 * time.Millisecond

// unanswered reports whether err means that the connection was lost, so that the outcome is unknown. The client passes
// on what the network said to the request that met the loss, and errors of its own to those behind it.
func unanswered(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved)
}
