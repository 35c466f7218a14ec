package repository

import (
	"context"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Consumed keeps what consumers have taken, and their effects.
type Consumed struct{ db *DB }

var _ service.PointsStore = (*Consumed)(nil)

// NewConsumed returns the consumers' side of the database.
func NewConsumed(db *DB) *Consumed { return &Consumed{db: db} }

// BookPoints books points for an event, once.
func (c *Consumed) BookPoints(ctx context.Context, eventID idgen.ID, e service.PointsEntry) (booked bool, err error) {
	return c.once(ctx, service.PointsConsumer, eventID, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO points_entry (order_id, user_id, points, created_at) VALUES (?, ?, ?, `+c.db.dialect.now+`)`,
			e.OrderID, e.UserID, e.Points).Error
	})
}

// once runs effect in a transaction that records the event first. Deliveries of the same event wait for each other at
// the record, so that the later one finds it, or finds the earlier one rolled back. A deadlock or a lost connection is
// tried again, and so is a commit whose answer was lost: the record tells then whether it stands.
func (c *Consumed) once(ctx context.Context, consumer string, eventID idgen.ID, effect func(tx *gorm.DB) error) (first bool, err error) {
	d := c.db.dialect
	record := `INSERT INTO consume_record (consumer, event_id, consumed_at) VALUES (?, ?, ` + d.now + `)` +
		d.orSkip("consume_record", "consumer")
	err = c.db.change(ctx, func(tx *gorm.DB) error {
		result := tx.Exec(record, consumer, eventID)
		first = result.RowsAffected == 1
		if result.Error != nil || !first {
			return result.Error
		}
		return effect(tx)
	})
	return first && err == nil, err
}
