package board

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Why a viewer is refused.
var (
	ErrFull   = errors.New("board: too many viewers")
	ErrClosed = errors.New("board: closed")
)

// keptFrames is how far behind a viewer may be: 5 s at full pace. A slower viewer is disconnected; when it comes back, it
// starts from a snapshot.
const keptFrames = 20

// hub distributes frames to viewers, each over its own channel. It never waits for one of them. Board.mu guards it.
type hub struct {
	run     string // name of this run: frame numbers mean nothing to another one
	viewers map[chan []byte]bool
	recent  [][]byte // the last frames, at most keptFrames
	next    int64    // number of the next frame
	closed  bool
}

// frameID names a frame in the stream. Browsers send the last one back as Last-Event-ID.
func (h *hub) frameID(n int64) string { return fmt.Sprintf("%s-%d", h.run, n) }

// join adds a viewer. If it was here and missed little, resumed is true and the channel has the frames since lastID.
func (h *hub) join(lastID string, maxViewers int) (frames chan []byte, resumed bool, err error) {
	switch {
	case h.closed:
		return nil, false, ErrClosed
	case len(h.viewers) >= maxViewers:
		return nil, false, ErrFull
	}
	frames = make(chan []byte, 2*keptFrames)
	h.viewers[frames] = true
	digits, sameRun := strings.CutPrefix(lastID, h.run+"-")
	last, err := strconv.ParseUint(digits, 10, 62)
	missed := h.next - 1 - int64(last)
	if !sameRun || err != nil || missed < 0 || missed > int64(len(h.recent)) {
		return frames, false, nil
	}
	for _, frame := range h.recent[len(h.recent)-int(missed):] {
		frames <- frame
	}
	return frames, true, nil
}

// leave removes a viewer. It may have been disconnected before.
func (h *hub) leave(frames chan []byte) {
	if h.viewers[frames] {
		delete(h.viewers, frames)
		close(frames)
	}
}

// publish sends a frame to all viewers and disconnects those that are too slow.
func (h *hub) publish(frame []byte) {
	h.next++
	h.recent = append(h.recent, frame)
	h.recent = h.recent[max(0, len(h.recent)-keptFrames):]
	for frames := range h.viewers {
		if len(frames) > keptFrames {
			drain(frames)
			h.leave(frames)
		} else {
			frames <- frame
		}
	}
}

// drain drops the frames that a slow viewer would take too long to read.
func drain(frames chan []byte) {
	for {
		select {
		case <-frames:
		default:
			return
		}
	}
}

// close ends all streams after the last frame and refuses new viewers.
func (h *hub) close() {
	h.closed = true
	for frames := range h.viewers {
		h.leave(frames)
	}
}

// Stream sends the board to one viewer as server-sent events: a snapshot first, then what changes. A viewer that comes
// back soon with the Last-Event-ID of this run gets what it missed instead of a snapshot.
//
// Stream blocks until the viewer leaves, is too slow, or the board is closed. It returns an error only if it sent
// nothing: ErrFull or ErrClosed.
func (b *Board) Stream(w http.ResponseWriter, r *http.Request) error {
	first, frames, err := b.join(r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	defer b.leave(frames)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the server's read timeout is for requests; here it would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	for frame, open := first, true; open; {
		// A viewer that takes no frame within WriteTimeout is disconnected.
		if control.SetWriteDeadline(time.Now().Add(b.cfg.WriteTimeout)) != nil {
			return nil
		}
		if _, err := w.Write(frame); err != nil || control.Flush() != nil {
			return nil
		}
		select {
		case frame, open = <-frames:
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}

// join returns what a viewer needs first, and the channel of the frames after it.
func (b *Board) join(lastID string) (first []byte, frames chan []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	frames, resumed, err := b.hub.join(lastID, b.cfg.MaxViewers)
	first = []byte("retry: 1000\n") // milliseconds until browsers reconnect
	if err != nil || resumed {
		return append(first, '\n'), frames, err
	}
	return fmt.Appendf(first, "event: snapshot\nid: %s\ndata: %s\n\n", b.hub.frameID(b.hub.next-1), b.snapshot()), frames, nil
}

func (b *Board) leave(frames chan []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hub.leave(frames)
}

// watched reports whether the board has viewers.
func (b *Board) watched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.hub.viewers) > 0
}
