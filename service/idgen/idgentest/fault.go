package idgentest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Fault is what happens to one request on its way to a fake store and back.
type Fault int

// The faults of a network, as the caller of a store sees them.
const (
	None   Fault = iota
	Down         // refused: nothing happens, the caller is told
	Lost         // takes effect, but the answer does not arrive
	Repeat       // takes effect twice
	Hang         // nothing happens, and the caller hears nothing until its context ends
	Late         // the caller hears nothing until its context ends; a second after that it takes effect
)

// ErrFault is what a caller gets to see of a fault.
var ErrFault = errors.New("idgentest: store is in trouble")

// Faults decides about each request to a fake store and counts what it did. The zero Faults lets all pass.
type Faults struct {
	pick  atomic.Pointer[func(op, owner string) Fault]
	count [Late + 1]atomic.Int64
}

// Set replaces the decision; nil lets all pass. The function must be safe for concurrent use.
func (f *Faults) Set(pick func(op, owner string) Fault) {
	if pick == nil {
		f.pick.Store(nil)
		return
	}
	f.pick.Store(&pick)
}

// Always makes every request meet the same fault.
func (f *Faults) Always(fault Fault) { f.Set(func(string, string) Fault { return fault }) }

// Count returns how many requests met the fault so far.
func (f *Faults) Count(fault Fault) int64 { return f.count[fault].Load() }

// meet runs effect as the fault says and returns what arrives of its last result.
func meet[T any](ctx context.Context, f *Faults, op, owner string, effect func() (T, error)) (none T, err error) {
	fault := None
	if pick := f.pick.Load(); pick != nil {
		fault = (*pick)(op, owner)
	}
	f.count[fault].Add(1)
	if err := ctx.Err(); err != nil {
		return none, err
	}
	switch fault {
	case Down:
		return none, ErrFault
	case Lost:
		_, _ = effect()
		return none, ErrFault
	case Repeat:
		_, _ = effect()
	case Hang:
		<-ctx.Done()
		return none, ctx.Err()
	case Late:
		<-ctx.Done()
		time.AfterFunc(time.Second, func() { _, _ = effect() })
		return none, ctx.Err()
	}
	return effect()
}
