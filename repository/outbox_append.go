package repository

import (
	"slices"
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

func (e event) traced() bool { return e.trace != "" }

// appendEvents writes events in the transaction of their changes, and nowhere else. They are due at once. The column for
// the trace is named only where there is one, so that nobody pays for it otherwise.
func appendEvents(tx *gorm.DB, events []event, now time.Time) error {
	columns, trace, traced := 8, "", slices.ContainsFunc(events, event.traced)
	if traced {
		columns, trace = 9, ", trace_parent"
	}
	args := make([]any, 0, columns*len(events))
	for _, e := range events {
		payload, err := e.Payload()
		if err != nil {
			return err
		}
		args = append(args, int64(e.id), string(e.Type), int64(e.OrderID), e.Version, payload, now, now, now)
		if traced {
			args = append(args, nullable(e.trace))
		}
	}
	return tx.Exec("INSERT INTO outbox_event"+
		" (event_id, biz_type, biz_id, version, payload, next_retry_time, created_at, updated_at"+trace+") VALUES "+
		tuples(len(events), columns), args...).Error
}

// nullable is NULL for "".
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
