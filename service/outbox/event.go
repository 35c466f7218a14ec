// Package outbox carries events from the database to a message broker and on to consumers.
//
// An event is a row that is inserted in the transaction of the change it describes, so neither exists without the other.
// A [Relay] claims such rows, publishes them outside of any transaction, waits for the broker's confirmation, and marks
// them as sent. If anything fails in between, the row is published again with the same ID. So an event reaches the
// broker at least once, and a consumer that records the IDs of the events it has handled applies each of them once.
//
// The package holds the logic; rows and connections are behind [Store] and [Broker], which packages below repository
// implement. Package brokertest holds the suite that every Broker passes. README.md tells the whole story.
package outbox

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Event describes one change of one object.
type Event struct {
	ID        int64     // unique forever and the same in every delivery; consumers recognize a repetition by it
	Type      string    // what happened, for example ORDER_PAID
	Key       int64     // the object that changed; brokers that keep events in order do so per key
	Version   int       // of the object after the change: 1, 2, …; consumers recognize a late event by it
	Payload   []byte    // JSON, read-only
	CreatedAt time.Time // by the database's clock, in UTC

	// TraceParent is the W3C traceparent of the change, or "". The outbox and the brokers pass it on unchecked; a reader
	// has to validate it.
	TraceParent string
}

// Names of the headers that carry an event's fields beside its payload. The values are text, so that every broker and
// every language can read them.
const (
	HeaderID      = "event-id"
	HeaderType    = "event-type"
	HeaderKey     = "event-key"
	HeaderVersion = "event-version"
	HeaderCreated = "event-created-at" // RFC 3339
	HeaderTrace   = "traceparent"      // W3C; absent if the event is not part of a trace
)

// Header is one header of a message.
type Header struct{ Name, Value string }

// Headers returns the headers of an event, always in the same order.
func Headers(e Event) []Header {
	headers := []Header{
		{HeaderID, strconv.FormatInt(e.ID, 10)},
		{HeaderType, e.Type},
		{HeaderKey, strconv.FormatInt(e.Key, 10)},
		{HeaderVersion, strconv.Itoa(e.Version)},
		{HeaderCreated, e.CreatedAt.UTC().Format(time.RFC3339Nano)},
	}
	if e.TraceParent != "" {
		headers = append(headers, Header{HeaderTrace, e.TraceParent})
	}
	return headers
}

// ParseEvent is the inverse of Headers. header returns the value of a header, or "" if it is absent. The error of a
// message that is not an event is ErrPoison, because another delivery would not change it.
func ParseEvent(header func(name string) string, payload []byte) (Event, error) {
	id, errID := strconv.ParseInt(header(HeaderID), 10, 64)
	key, errKey := strconv.ParseInt(header(HeaderKey), 10, 64)
	version, errVersion := strconv.Atoi(header(HeaderVersion))
	created, errCreated := time.Parse(time.RFC3339Nano, header(HeaderCreated))
	if err := errors.Join(errID, errKey, errVersion, errCreated); err != nil {
		return Event{}, fmt.Errorf("%w: not an event: %w", ErrPoison, err)
	}
	kind := header(HeaderType)
	if id <= 0 || kind == "" {
		return Event{}, fmt.Errorf("%w: not an event: id %d, type %q", ErrPoison, id, kind)
	}
	return Event{
		ID: id, Type: kind, Key: key, Version: version, Payload: payload, CreatedAt: created.UTC(), TraceParent: header(HeaderTrace),
	}, nil
}
