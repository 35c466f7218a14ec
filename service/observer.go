package service

import "time"

// Observer is told what the shop does, for metrics and logs. Its methods are called on the way of every order: they
// must not block and must be safe for use by many goroutines.
type Observer interface {
	// Answered is called once for each request to place an order: with "" if an order was placed, "replayed" if an
	// earlier one was found, else with the refusal.
	Answered(code Code, took time.Duration)
	// Committed is called after each batch: how many orders it had, and how long the database took.
	Committed(orders int, took time.Duration)
	// Waiting is told how many orders wait for a batch, whenever that changes.
	Waiting(orders int)
	// Expired is called when unpaid orders were closed.
	Expired(orders int)
}

// CodeReplayed is what Observer.Answered gets for a request whose order was there already. It is never an error.
const CodeReplayed Code = "replayed"

// NoObserver ignores all events.
type NoObserver struct{}

func (NoObserver) Answered(Code, time.Duration) {}
func (NoObserver) Committed(int, time.Duration) {}
func (NoObserver) Waiting(int)                  {}
func (NoObserver) Expired(int)                  {}

var _ Observer = NoObserver{}
