package board

import (
	"errors"
	"fmt"
	"sync"
)

// Why a stream ends, or does not begin.
var (
	// ErrFull refuses a viewer: as many as may are watching.
	ErrFull = errors.New("board: there are as many viewers as may be")
	// ErrClosed ends the streams when the shop goes.
	ErrClosed = errors.New("board: the shop is going")

	errSlow = errors.New("board: the viewer is too slow")
)

const (
	// keptFrames is how far back a viewer can be and still go on from there: 25 s at full pace.
	keptFrames = 512
	// maxBehind is how far behind a viewer may be: 5 s at full pace. One that is slower is cut off, and its browser comes
	// back for a fresh start.
	maxBehind = 100
)

// hub hands frames to viewers. Each frame is encoded once, and stands in one ring for all: a viewer is a position in it.
// So viewers cost no memory of their own, and none of them can hold up the others, or the board.
type hub struct {
	name string // of this run: positions mean nothing to another one
	max  int    // viewers

	mu       sync.Mutex
	frames   [keptFrames][]byte // frame n is at n % keptFrames
	next     int64              // number of the frame to come
	arrived  chan struct{}      // closed when it comes
	watching int
	closed   bool

	watched chan struct{} // gets a signal when there is a first viewer
}

func newHub(name string, viewers int) *hub {
	return &hub{name: name, max: viewers, arrived: make(chan struct{}), watched: make(chan struct{}, 1)}
}

// frameID names a frame: it is what a browser sends as Last-Event-ID.
func (h *hub) frameID(n int64) string { return fmt.Sprintf("%s-%d", h.name, n) }

// frameOf is the number of a frame of this run.
func (h *hub) frameOf(id string) (n int64, ok bool) {
	prefix := h.name + "-"
	if len(id) <= len(prefix) || len(id) > len(prefix)+18 || id[:len(prefix)] != prefix {
		return 0, false
	}
	for _, digit := range []byte(id[len(prefix):]) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = n*10 + int64(digit-'0')
	}
	return n, true
}

// publish adds a frame. It does not wait for anybody.
func (h *hub) publish(frame []byte) {
	h.mu.Lock()
	h.frames[h.next%keptFrames] = frame
	h.next++
	arrived := h.arrived
	h.arrived = make(chan struct{})
	h.mu.Unlock()
	close(arrived)
}

// join counts a viewer in; leave has to be called for it.
func (h *hub) join() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return ErrClosed
	case h.watching >= h.max:
		return ErrFull
	}
	h.watching++
	if h.watching == 1 {
		select {
		case h.watched <- struct{}{}:
		default:
		}
	}
	return nil
}

func (h *hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching--
}

func (h *hub) viewers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watching
}

// resumable tells whether a viewer that has seen frame n can go on with the next one.
func (h *hub) resumable(n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return n < h.next && h.next-n-1 <= maxBehind
}

// from appends the frames from number n on to into. If there are none, wait is closed when there is one, or when the hub
// closes. A viewer that is too far behind gets errSlow.
func (h *hub) from(n int64, into [][]byte) (frames [][]byte, next int64, wait <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next-n > maxBehind {
		return into, n, nil, errSlow
	}
	for ; n < h.next; n++ {
		into = append(into, h.frames[n%keptFrames])
	}
	if len(into) == 0 && h.closed {
		return into, n, nil, ErrClosed
	}
	return into, n, h.arrived, nil
}

// close ends all streams, once they have got the last frame, and lets nobody join any more.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	close(h.arrived)
	h.arrived = make(chan struct{})
}
