package repository

import (
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// event is a change of an order on its way into the outbox.
type event struct {
	id    idgen.ID
	trace string // the W3C traceparent of the change, "" for none
	service.OrderEvent
}

// appendEvents writes events in the transaction of their changes, and nowhere else.
func appendEvents(tx *gorm.DB, events []event, now time.Time) error {
	insert, args, err := insertEventsSQL(events, now)
	if err != nil {
		return err
	}
	return tx.Exec(insert, args...).Error
}

// insertEventsSQL builds the INSERT of events that are due at once.
func insertEventsSQL(events []event, now time.Time) (sql string, args []any, err error) {
	var at any = now // one allocation for all
	args = make([]any, 0, 9*len(events))
	for _, e := range events {
		payload, err := e.Payload()
		if err != nil {
			return "", nil, err
		}
		args = append(args, int64(e.id), string(e.Type), int64(e.OrderID), e.Version, payload, at, at, at, orNull(e.trace))
	}
	return insertInto("outbox_event", len(events), "event_id", "biz_type", "biz_id", "version", "payload",
		"next_retry_time", "created_at", "updated_at", "trace_parent"), args, nil
}

// orNull is the text, or NULL for "".
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
