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

// appendEvents writes events in the transaction of their changes, and nowhere else.
func appendEvents(tx *gorm.DB, events []event, now time.Time) error {
	insert, err := eventsStatement(dialectOf(tx), events, now)
	if err != nil {
		return err
	}
	return tx.Exec(insert.text(), insert.args...).Error
}

// eventsStatement inserts events. They are due at once. The column for the trace is named only where there is one, so that
// nobody pays for it otherwise.
func eventsStatement(d dialect, events []event, now time.Time) (*statement, error) {
	trace, traced := "", slices.ContainsFunc(events, event.traced)
	if traced {
		trace = ", trace_parent"
	}
	s := newStatement("INSERT INTO outbox_event"+
		" (event_id, biz_type, biz_id, version, payload, next_retry_time, created_at, updated_at"+trace+") VALUES ", 160*len(events))
	at := d.time(now)
	for _, e := range events {
		payload, err := e.Payload()
		if err != nil {
			return nil, err
		}
		s.row().int(int64(e.id)).str(string(e.Type)).int(int64(e.OrderID)).int(int64(e.Version)).str(payload).raw(at).raw(at).raw(at)
		switch {
		case e.traced():
			s.str(e.trace)
		case traced:
			s.raw("NULL")
		}
		s.end()
	}
	return s, nil
}
