package outbox

import "time"

// SetPauses shortens what a test would wait for.
func (w *Webhook) SetPauses(pauses ...time.Duration) { w.pauses = pauses }
