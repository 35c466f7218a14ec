package board

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// quiet is how long a board on which nothing changes says nothing. Viewers take a longer silence for a broken
// connection.
const quiet = 1000 // milliseconds

// change encodes what a viewer has to learn to be up to date, or nothing. b.mu is held.
func (b *Board) change(before *values, seen *shopView, events []Event) []byte {
	frame := make([]byte, 0, 256)
	frame = append(append(append(frame, "id: "...), b.hub.frameID(b.hub.next)...), "\ndata: {\"t\":"...)
	frame = strconv.AppendInt(frame, b.at, 10)
	empty := len(frame)
	if changed := appendFigures(frame, &b.now, before); len(changed) > len(frame) {
		frame = changed
	}
	if v := b.view.changedVouchers(seen); v != nil {
		frame = appendJSON(append(frame, `,"vouchers":`...), v)
	}
	if !slices.Equal(b.view.instances, seen.instances) {
		frame = appendJSON(append(frame, `,"instances":`...), b.view.instances)
	}
	if len(events) > 0 {
		frame = appendJSON(append(frame, `,"events":`...), events)
	}
	if len(frame) == empty && b.at-b.told < quiet {
		return nil
	}
	return append(frame, "}\n\n"...)
}

// appendFigures writes the figures that differ; nothing if none does.
func appendFigures(b []byte, now, before *values) []byte {
	none := true
	for f := range figures {
		if before != nil && now[f] == before[f] {
			continue
		}
		if none {
			b = append(b, `,"figures":{"`...)
		} else {
			b = append(b, `,"`...)
		}
		none = false
		b = append(append(b, figureNames[f]...), `":`...)
		b = strconv.AppendInt(b, now[f], 10)
	}
	if !none {
		b = append(b, '}')
	}
	return b
}

// appendJSON encodes what is not sent often. These values always are JSON.
func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

// snapshot is everything, as of a frame: what a new viewer begins with. It is encoded for all who come within a moment:
// the frames since then bring each of them up to date.
type snapshot struct {
	at    int64
	frame int64 // the last one that it includes
	json  []byte
}

// snapshotAge is for how long a snapshot is handed out, in milliseconds. Fewer frames than a viewer may be behind come in
// that time.
const snapshotAge = 500

// whole returns a snapshot that is not older than snapshotAge.
func (b *Board) whole() (document []byte, frame int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.snapshot
	if s.json == nil || b.cfg.Meter.line.since(time.Now())-s.at > snapshotAge || b.hub.next-s.frame > maxBehind/2 {
		*s = snapshot{at: b.at, frame: b.hub.next - 1, json: b.encode()}
	}
	return s.json, s.frame
}

// encode writes the whole state. b.mu is held.
func (b *Board) encode() []byte {
	doc := make([]byte, 0, 16<<10)
	doc = appendJSON(append(doc, `{"instance":`...), b.cfg.Instance)
	doc = appendJSON(append(doc, `,"id":`...), b.hub.frameID(b.hub.next-1))
	doc = appendJSON(append(doc, `,"started_at":`...), b.cfg.Meter.began.UTC())
	doc = strconv.AppendInt(append(doc, `,"t":`...), b.at, 10)
	doc = appendFigures(doc, &b.now, nil)
	doc = appendJSON(append(doc, `,"vouchers":`...), b.view.changedVouchers(nil))
	doc = appendJSON(append(doc, `,"instances":`...), b.view.instances)
	events, _ := b.cfg.Meter.line.after(0)
	told := events[:0]
	for _, e := range events {
		if e.N <= b.event { // the others come with the next frame
			told = append(told, e)
		}
	}
	doc = appendJSON(append(doc, `,"events":`...), append([]Event{}, told...))
	return append(b.past.append(append(doc, `,"history":`...)), '}')
}
