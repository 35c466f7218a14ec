// Package faultproxy breaks connections on purpose: a TCP proxy between a client and its server that can cut, hang, delay
// or refuse connections, or lose the reply to a certain request. It knows no protocol. A request is what
// a client sent since the last reply, so it suits protocols in which a client waits for its reply: Redis, MySQL,
// ZooKeeper, HTTP/1.
package faultproxy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections to an upstream address. Its methods may be called at any time from any goroutine.
type Proxy struct {
	t        testing.TB
	upstream string
	addr     string

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	flow     chan struct{} // closed while bytes may pass
	delay    time.Duration
	faults   []*Fault
	stats    Stats
	closed   bool
	running  sync.WaitGroup
}

// Stats are the counters of a Proxy.
type Stats struct {
	Accepted int // connections
	Cut      int // connections closed by Cut, or by a Fault
	Open     int // connections at the moment
	Dropped  int // replies lost by DropReply
	Up, Down int // bytes forwarded to the server, and to the client
}

// New starts a proxy on a free loopback port. It is closed with the test.
func New(t testing.TB, upstream string) *Proxy {
	t.Helper()
	flow := make(chan struct{})
	close(flow)
	p := &Proxy{t: t, upstream: upstream, links: map[*link]struct{}{}, flow: flow, addr: "127.0.0.1:0"}
	p.Accept()
	t.Cleanup(p.close)
	return p
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Stats returns the counts so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Open = len(p.links)
	return s
}

// Cut closes all connections and returns their number. New ones are accepted.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.links)
	p.stats.Cut += n
	for l := range p.links {
		l.close()
	}
	return n
}

// Refuse refuses new connections, as if no server listened, until Accept. Existing connections stay open.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Accept ends Refuse.
func (p *Proxy) Accept() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.listener, p.addr = l, l.Addr().String()
	p.running.Go(func() { p.serve(l) })
}

// Hang stops all bytes, both ways, until Resume. Connections stay, and new ones are accepted, as with a server that is
// stopped or behind a network that swallows packets. Bytes that are sent meanwhile arrive after Resume.
func (p *Proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flow:
		p.flow = make(chan struct{})
	default:
	}
}

// Resume ends Hang.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flow:
	default:
		close(p.flow)
	}
}

// Delay holds up everything that is sent, each way, by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) close() {
	p.Refuse()
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.Resume()
	p.running.Wait()
}

func (p *Proxy) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed by Refuse
		}
		p.running.Go(func() { p.connect(client) })
	}
}

// connect links a client to the upstream, for as long as both are there.
func (p *Proxy) connect(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.upstream, 5*time.Second)
	if err != nil {
		client.Close()
		return
	}
	l := newLink(p, client, server)
	p.mu.Lock()
	p.stats.Accepted++
	if p.closed {
		l.close()
	}
	p.links[l] = struct{}{}
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}
