package faultproxy

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// Fault happens once, to the first request that matches.
type Fault struct {
	kind     kind
	match    func(request []byte) bool
	once     sync.Once
	happened chan struct{}
}

type kind int

const (
	cutRequest kind = iota
	dropAndCut
	dropSilently
)

// Contains matches requests that contain text, whatever the case of its ASCII letters.
func Contains(text string) func(request []byte) bool {
	lower := bytes.ToLower([]byte(text))
	return func(request []byte) bool { return bytes.Contains(bytes.ToLower(request), lower) }
}

// DropReply lets the next request that matches through, waits for the server's reply, throws it away and closes the
// connection: the server has done its work, and the client cannot know it. match must not keep its argument.
func (p *Proxy) DropReply(match func(request []byte) bool) *Fault { return p.add(dropAndCut, match) }

// SwallowReply is like DropReply, but the connection stays open and silent: this reply and all later ones are lost.
func (p *Proxy) SwallowReply(match func(request []byte) bool) *Fault {
	return p.add(dropSilently, match)
}

// CutOnRequest closes the connection when the next request that matches arrives, before the part that makes it match is
// forwarded.
func (p *Proxy) CutOnRequest(match func(request []byte) bool) *Fault { return p.add(cutRequest, match) }

// Happened is closed when the fault took effect.
func (f *Fault) Happened() <-chan struct{} { return f.happened }

// Wait waits until the fault took effect, and fails the test if it does not within ten seconds.
func (f *Fault) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-f.happened:
	case <-time.After(10 * time.Second):
		t.Fatal("faultproxy: the fault did not happen")
	}
}

func (f *Fault) happen() { f.once.Do(func() { close(f.happened) }) }

func (p *Proxy) add(k kind, match func([]byte) bool) *Fault {
	f := &Fault{kind: k, match: match, happened: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

// match takes out the first fault that request matches.
func (p *Proxy) match(request []byte) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if f.match(request) {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			return f
		}
	}
	return nil
}

func (p *Proxy) count(change func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}
