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
	if err := b.hub.join(); err != nil {
		return err
	}
	defer b.hub.leave()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the server's read timeout is for requests; here it would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")  // for nginx
	parts := [][]byte{[]byte("retry: 1000\n")} // browsers wait a second before they reconnect
	next, resumed := b.hub.resume(r.Header.Get("Last-Event-ID"))
	if resumed {
		parts = append(parts, []byte("\n"))
	} else {
		snapshot, frame := b.snapshot()
		parts = append(parts, fmt.Appendf(nil, "event: snapshot\nid: %s\ndata: %s\n\n", b.hub.frameID(frame), snapshot))
		next = frame + 1
	}
	for b.send(w, control, parts) == nil {
		var err error
		if parts, next, err = b.hub.wait(r.Context(), next); err != nil {
			break
		}
	}
	return nil
}

// send writes all parts. It blocks until the connection has taken them, but no longer than the write timeout.
func (b *Board) send(w http.ResponseWriter, control *http.ResponseController, parts [][]byte) error {
	if err := control.SetWriteDeadline(time.Now().Add(b.cfg.WriteTimeout)); err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return control.Flush()
}
