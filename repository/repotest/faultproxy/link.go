package faultproxy

import (
	"net"
	"sync"
	"time"
)

// link is one client's connection and the one to the server that belongs to it.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	gone           chan struct{}
	once           sync.Once

	mu       sync.Mutex
	request  []byte // what the client has sent since the last reply
	dropping *Fault // set while replies are lost
}

// remembered bounds how much of a request is kept for matching: its end.
const remembered = 1 << 20

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{proxy: p, client: client, server: server, gone: make(chan struct{})}
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.gone)
		l.client.Close()
		l.server.Close()
	})
}

// run forwards both ways, until one side is closed.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(func() { l.forward(l.client, l.server, l.asked, &l.proxy.stats.Up) })
	both.Go(func() { l.forward(l.server, l.client, l.answered, &l.proxy.stats.Down) })
	both.Wait()
}

// forward passes on what pass lets through.
func (l *link) forward(from, to net.Conn, pass func([]byte) bool, count *int) {
	defer l.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && l.hold() && pass(buf[:n]) {
			l.proxy.mu.Lock()
			*count += n // before its reply can be seen
			l.proxy.mu.Unlock()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits for as long as the proxy hangs or delays. It reports false if the link was closed meanwhile.
func (l *link) hold() bool {
	l.proxy.mu.Lock()
	flow, delay := l.proxy.flow, l.proxy.delay
	l.proxy.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.gone:
			return false
		}
	}
	select {
	case <-l.gone:
		return false
	case <-flow:
		return true
	}
}

// asked looks at what the client sends, and reports whether to forward it.
func (l *link) asked(chunk []byte) bool {
	l.mu.Lock()
	l.request = append(l.request, chunk...)
	if over := len(l.request) - remembered; over > 0 {
		l.request = append(l.request[:0], l.request[over:]...)
	}
	fault := l.proxy.match(l.request)
	if fault != nil && fault.kind != cutRequest {
		l.dropping = fault
	}
	l.mu.Unlock()
	if fault != nil && fault.kind == cutRequest {
		l.proxy.count(func(s *Stats) { s.Cut++ })
		l.close()
		fault.happen()
		return false
	}
	return true
}

// answered looks at what the server sends, and reports whether to forward it.
func (l *link) answered([]byte) bool {
	l.mu.Lock()
	l.request = l.request[:0]
	fault := l.dropping
	l.mu.Unlock()
	if fault == nil {
		return true
	}
	l.proxy.count(func(s *Stats) { s.Dropped++ })
	if fault.kind == dropAndCut {
		l.proxy.count(func(s *Stats) { s.Cut++ })
		l.close()
	}
	fault.happen()
	return false
}
