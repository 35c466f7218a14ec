package outbox

import "time"

// Observer is told what a Relay does, for metrics and logs. Its methods must not block and must be safe for use by many
// goroutines.
type Observer interface {
	// Claimed is called after each claim that found something.
	Claimed(events int, took time.Duration)
	// Published is called after each batch, with the number of events by what became of them.
	Published(Outcome, time.Duration)
	// Sent is called for each event that was marked as sent, with the time since its commit. That time is from the
	// application's clock and the database's, so it is as exact as these two agree.
	Sent(e Event, age time.Duration)
	// GaveUp is called for each event that will not be tried again unless somebody asks for it.
	GaveUp(e Event, err error)
	// Paused is called when the broker is found to be away, with the time until it is tried again, and with 0 when it
	// is back.
	Paused(d time.Duration)
	// Failed is called when the store could not be reached; the relay goes on.
	Failed(err error)
}

// Outcome counts the events of one batch.
type Outcome struct {
	Sent    int // confirmed by the broker
	Refused int // given up, since the broker never takes them or attempts are used up
	Unknown int // to be sent again later, at the cost of an attempt
	Away    int // to be sent again later, at no cost: the broker is away
}

// NoObserver looks away.
type NoObserver struct{}

func (NoObserver) Claimed(int, time.Duration)       {}
func (NoObserver) Published(Outcome, time.Duration) {}
func (NoObserver) Sent(Event, time.Duration)        {}
func (NoObserver) GaveUp(Event, error)              {}
func (NoObserver) Paused(time.Duration)             {}
func (NoObserver) Failed(error)                     {}

var _ Observer = NoObserver{}
