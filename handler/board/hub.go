package board

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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
