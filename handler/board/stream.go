package board

import (
	"fmt"
	"net/http"
	"time"
)

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
