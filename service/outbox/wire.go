package outbox

import (
	"fmt"
	"strconv"
	"time"
)

// The headers under which brokers carry what stands beside the payload. Their values are text, so that every broker and
// every language can read them.
const (
	HeaderID      = "event-id"
	HeaderType    = "event-type"
	HeaderKey     = "event-key"
	HeaderVersion = "event-version"
	HeaderCreated = "event-created-at" // RFC 3339
	HeaderTrace   = "traceparent"      // only with an event that is part of a trace; the name is W3C's
)

// Header is one of an event's headers.
type Header struct{ Name, Value string }

// Headers returns an event's headers, in one order.
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

// ParseEvent reads what Headers wrote; header returns a value by its name, "" if there is none. A message that is no
// event is ErrPoison: no delivery of it will ever do better.
func ParseEvent(header func(name string) string, payload []byte) (Event, error) {
	id, errID := strconv.ParseInt(header(HeaderID), 10, 64)
	key, errKey := strconv.ParseInt(header(HeaderKey), 10, 64)
	version, errVersion := strconv.Atoi(header(HeaderVersion))
	created, errCreated := time.Parse(time.RFC3339Nano, header(HeaderCreated))
	for _, err := range []error{errID, errKey, errVersion, errCreated} {
		if err != nil {
			return Event{}, fmt.Errorf("%w: not an event: %w", ErrPoison, err)
		}
	}
	kind := header(HeaderType)
	if id <= 0 || kind == "" {
		return Event{}, fmt.Errorf("%w: not an event: id %d, type %q", ErrPoison, id, kind)
	}
	return Event{
		ID: id, Type: kind, Key: key, Version: version, Payload: payload, CreatedAt: created.UTC(), TraceParent: header(HeaderTrace),
	}, nil
}
