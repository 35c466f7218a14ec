package board

import (
	"net"
	"net/http"
	"time"
)

// retry is what browsers are told to wait before they come back, in milliseconds.
const retry = "retry: 1000\n"

// sendBuffer bounds what the kernel keeps for a viewer: a few snapshots. By default it would keep megabytes for one that
// reads slowly, who would see what is long over.
const sendBuffer = 128 << 10

// Snapshot returns the state of the board as a JSON document. It is shared: do not change it.
func (b *Board) Snapshot() []byte {
	b.polled.Store(b.cfg.Meter.line.since(time.Now()))
	document, _ := b.whole()
	return document
}

// Stream sends the board to one viewer as server-sent events: the whole state first, then whatever changes. A viewer that
// comes back with the Last-Event-ID of this run gets what it has missed instead, if that is not too much.
//
// It blocks until the viewer goes, is found to be too slow, or the board is closed, and returns an error only if it has
// sent nothing: ErrFull or ErrClosed.
func (b *Board) Stream(w http.ResponseWriter, r *http.Request) error {
	if err := b.hub.join(); err != nil {
		return err
	}
	defer b.hub.leave()
	if conn, ok := connection(r.Context()).(*net.TCPConn); ok {
		_ = conn.SetWriteBuffer(sendBuffer) // if not, memory is all it costs
	}
	v := viewer{w: w, control: http.NewResponseController(w), timeout: b.cfg.WriteTimeout}
	_ = v.control.SetReadDeadline(time.Time{}) // the server's is for requests; over its end it would cancel this one
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	next, err := b.begin(&v, r.Header.Get("Last-Event-ID"))
	for err == nil {
		next, err = b.pass(r, &v, next)
	}
	return nil
}

// begin sends what a viewer needs before the first frame, and returns the number of that frame.
func (b *Board) begin(v *viewer, lastID string) (next int64, err error) {
	if seen, ok := b.hub.frameOf(lastID); ok && b.hub.resumable(seen) {
		return seen + 1, v.send([]byte(retry + "\n"))
	}
	document, frame := b.whole()
	return frame + 1, v.send([]byte(retry+"event: snapshot\nid: "+b.hub.frameID(frame)+"\ndata: "), document, []byte("\n\n"))
}

// pass sends the frames that are there, or waits for one.
func (b *Board) pass(r *http.Request, v *viewer, next int64) (int64, error) {
	frames, next, wait, err := b.hub.from(next, v.frames[:0])
	v.frames = frames
	switch {
	case err != nil:
		return next, err
	case len(frames) > 0:
		return next, v.send(frames...)
	}
	select {
	case <-wait:
		return next, nil
	case <-r.Context().Done():
		return next, r.Context().Err()
	}
}

// viewer is one who watches.
type viewer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	limit   time.Time // as it was set last
	frames  [][]byte  // to be used again
}

// send writes all parts at once. It blocks until the connection has taken them, but no longer than the time-out; to move
// its limit a few times is enough, and saves a tenth of what a viewer costs.
func (v *viewer) send(parts ...[]byte) error {
	if limit := time.Now().Add(v.timeout); limit.Sub(v.limit) > v.timeout/4 {
		if err := v.control.SetWriteDeadline(limit); err != nil {
			return err
		}
		v.limit = limit
	}
	for _, part := range parts {
		if _, err := v.w.Write(part); err != nil {
			return err
		}
	}
	return v.control.Flush()
}
