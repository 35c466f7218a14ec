package board

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Why a stream ends, or does not begin.
var (
	// ErrFull refuses a viewer because MaxViewers are watching.
	ErrFull = errors.New("board: too many viewers")
	// ErrClosed refuses a viewer, or ends its stream, because the board is closed.
	ErrClosed = errors.New("board: closed")

	errSlow = errors.New("board: the viewer is too slow")
)

// keptFrames is how far behind a viewer may be: 5 s at full pace. A slower viewer is disconnected; when it comes back, it
// starts from a snapshot.
const keptFrames = 20

// hub distributes frames to viewers. All viewers read the same ring and each has only a position in it, so a viewer costs
// no memory here, and a slow one holds up nobody.
type hub struct {
	run        string // name of this run: frame numbers mean nothing to another one
	maxViewers int

	mu       sync.Mutex
	frames   [keptFrames][]byte // frame n is at n % keptFrames
	next     int64              // number of the next frame
	changed  chan struct{}      // closed when there is a new frame, or the hub closes
	watching int
	closed   bool
}

func newHub(run string, maxViewers int) *hub {
	return &hub{run: run, maxViewers: maxViewers, changed: make(chan struct{})}
}

// frameID names a frame in the stream. Browsers send it back as Last-Event-ID.
func (h *hub) frameID(n int64) string { return fmt.Sprintf("%s-%d", h.run, n) }

// resume returns the number of the frame that follows the one named id, if that frame is of this run and still kept.
func (h *hub) resume(id string) (next int64, ok bool) {
	digits, ok := strings.CutPrefix(id, h.run+"-")
	seen, err := strconv.ParseUint(digits, 10, 62)
	if !ok || err != nil {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	next = int64(seen) + 1
	return next, next <= h.next && h.next-next <= keptFrames
}

// publish adds a frame. It waits for nobody.
func (h *hub) publish(frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frames[h.next%keptFrames] = frame
	h.next++
	h.wakeViewers()
}

// wakeViewers requires h.mu.
func (h *hub) wakeViewers() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// join counts a viewer in. The viewer must call leave.
func (h *hub) join() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return ErrClosed
	case h.watching >= h.maxViewers:
		return ErrFull
	}
	h.watching++
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

// wait blocks until there are frames from number n on, and returns them and the number of the next. It fails when ctx ends,
// when the hub is closed and there are no more frames, or if frame n is no longer kept.
func (h *hub) wait(ctx context.Context, n int64) (frames [][]byte, next int64, err error) {
	for {
		frames, changed, err := h.from(n)
		if err != nil || len(frames) > 0 {
			return frames, n + int64(len(frames)), err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, n, ctx.Err()
		}
	}
}

// from returns the frames from number n on. Without any, changed is closed when to look again.
func (h *hub) from(n int64) (frames [][]byte, changed <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.next-n > keptFrames:
		return nil, nil, errSlow
	case n == h.next && h.closed:
		return nil, nil, ErrClosed
	}
	for ; n < h.next; n++ {
		frames = append(frames, h.frames[n%keptFrames])
	}
	return frames, h.changed, nil
}

// close ends all streams after the last frame and refuses new viewers. A second call does nothing.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		h.wakeViewers()
	}
}
