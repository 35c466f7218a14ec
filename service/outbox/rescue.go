package outbox

import (
	"context"
	"time"
)

// The bounds of one rescue.
const (
	RescueLimit    = 200
	RescueOverdue  = time.Minute
	RescueAttempts = 3
)

// Rescue publishes events that a relay should have published long ago: due for RescueOverdue, or failed RescueAttempts
// times and due again. It takes at most RescueLimit of them and needs no running relay, neither here nor elsewhere. Two
// rescues at once take different events.
func (r *Relay) Rescue(ctx context.Context) (Outcome, error) {
	batch, err := r.cfg.Store.Claim(ctx, Claim{
		Limit: RescueLimit, Lease: r.cfg.Lease, Overdue: RescueOverdue, MinAttempts: RescueAttempts,
	})
	if err != nil || len(batch.Events) == 0 {
		return Outcome{}, err
	}
	return r.send(ctx, batch), nil
}
