package zklock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// session is the one session of a Locker. When it expires, the client starts another; the nodes of the old one are gone.
type session struct {
	*zk.Conn
	asked    time.Duration // the timeout asked for
	removal  time.Duration // bounds the removal of a node
	granted  atomic.Int64  // the timeout that the server granted, in ms; 0 before the first connection
	requests atomic.Int64  // number of requests sent

	mu    sync.Mutex
	holds map[*lockcore.Hold]struct{} // locks to mark as lost when the session expires

	closeOnce sync.Once
	closed    chan struct{} // closed when the client's goroutines have ended
}

func connect(c Config) (*session, error) {
	s := &session{asked: c.Session, removal: c.Timeout, holds: map[*lockcore.Hold]struct{}{}, closed: make(chan struct{})}
	conn, events, err := zk.Connect(c.Addrs, c.Session, zk.WithLogger(noLog{}), zk.WithHostProvider(new(hosts)),
		zk.WithDialer(s.dial), zk.WithEventCallback(s.event))
	if err != nil {
		return nil, fmt.Errorf("zklock: %w", err)
	}
	s.Conn = conn
	go func() {
		defer close(s.closed)
		for range events { // the callback has handled them
		}
	}()
	return s, nil
}

func (s *session) close() {
	s.closeOnce.Do(s.Conn.Close)
	<-s.closed
}

// noLog silences the client. Its errors also come back from its methods.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

// dial opens a connection that reads along which session timeout the server grants. The client has no method for it.
func (s *session) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &handshakeConn{Conn: conn, granted: &s.granted}, nil
}

// handshakeConn stores the timeout of the first answer on a connection. It is a ConnectResponse: length, protocol
// version, timeout in ms, and more (zookeeper.jute in ZooKeeper's source).
type handshakeConn struct {
	net.Conn
	granted *atomic.Int64
	head    []byte // the first bytes of the answer
}

// Read implements net.Conn.
func (c *handshakeConn) Read(p []byte) (int, error) {
	const length = 12 // of what comes up to the timeout
	n, err := c.Conn.Read(p)
	if missing := length - len(c.head); n > 0 && missing > 0 {
		c.head = append(c.head, p[:min(n, missing)]...)
		if len(c.head) == length {
			c.granted.Store(int64(binary.BigEndian.Uint32(c.head[8:])))
		}
	}
	return n, err
}

// timeout returns after which silence the server may end the session.
func (s *session) timeout() time.Duration {
	if ms := s.granted.Load(); ms > 0 {
		return min(s.asked, time.Duration(ms)*time.Millisecond)
	}
	return s.asked
}

// validUntil returns the time until which the session certainly exists; sent is when an answered request was sent. A tenth
// is subtracted because the server's clock may be faster.
func (s *session) validUntil(sent time.Time) time.Time {
	return sent.Add(s.timeout() - s.timeout()/10)
}

// event marks all locks as lost when the session expires. The client waits until it returns.
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

// register makes h lost when the session expires.
func (s *session) register(h *lockcore.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[h] = struct{}{}
}

func (s *session) unregister(h *lockcore.Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// hosts returns the servers in turn. Unlike the client's own provider, it tries a server again at once after its
// connection was lost. After a round in which no server was reached, the client pauses for a second.
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

// running is closed when a request has ended that was not waited for; nil if there is none.
type running <-chan struct{}

// request calls f, which sends one request, and waits for its answer until the deadline or the end of ctx. After that,
// the client goes on with the request.
func request[T any](ctx context.Context, s *session, deadline time.Time, f func() (T, error)) (result T, r running, err error) {
	type answer struct {
		result T
		err    error
	}
	s.requests.Add(1)
	answers, done := make(chan answer, 1), make(chan struct{})
	go func() {
		defer close(done)
		result, err := f()
		answers <- answer{result, err}
	}()
	select {
	case a := <-answers:
		return a.result, nil, a.err
	case <-ctx.Done():
		return result, done, lockcore.Ended(ctx)
	case <-time.After(time.Until(deadline)):
		return result, done, fmt.Errorf("%w: no answer in time", lock.ErrUnavailable)
	}
}

// repeat sends a request again while its answer is lost. f must be safe to repeat.
func repeat[T any](ctx context.Context, s *session, deadline time.Time, f func() (T, error)) (T, error) {
	const pause = 10 * time.Millisecond // the client connects again meanwhile
	for {
		result, _, err := request(ctx, s, deadline, f)
		if !isUnanswered(err) {
			return result, err
		}
		if time.Until(deadline) < pause {
			return result, fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
		}
		time.Sleep(pause)
	}
}

// isUnanswered reports whether the connection was lost before the answer came, so that the outcome is unknown. The
// request that met the loss gets the network's error, the requests behind it get errors of the client.
func isUnanswered(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, zk.ErrConnectionClosed) ||
		errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved)
}
