package repository

import (
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// event is a change of an order on its way into the outbox.
type event struct {
	id idgen.ID
	service.OrderEvent
}

// appendEvents writes events in the transaction of their changes, and nowhere else. They are due at once.
func appendEvents(tx *gorm.DB, events []event, now time.Time) error {
	const columns = 8
	args := make([]any, 0, columns*len(events))
	for _, e := range events {
		payload, err := e.Payload()
		if err != nil {
			return err
		}
		args = append(args, int64(e.id), string(e.Type), int64(e.OrderID), e.Version, payload, now, now, now)
	}
	return tx.Exec("INSERT INTO outbox_event"+
		" (event_id, biz_type, biz_id, version, payload, next_retry_time, created_at, updated_at) VALUES "+
		tuples(len(events), columns), args...).Error
}
