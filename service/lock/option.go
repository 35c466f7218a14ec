package lock

import "time"

// Settings is what the options of one Acquire amount to. Callers use the options; backends read the Settings.
type Settings struct {
	// Try: do not wait for a lock that is held.
	Try bool
	// Lease is an explicit lease, which is not renewed. Zero: the backend's own lease, renewed for as long as the
	// lease's context lives.
	Lease time.Duration
	// Wait bounds the wait for a holder. Zero: only the context does.
	Wait time.Duration
	// Timeout bounds the time that the backend may take to answer, waiting for a holder not included. Zero: the
	// backend's own limit.
	Timeout time.Duration
}

// Option changes how one lock is acquired.
type Option func(*Settings)

// NewSettings applies opts.
func NewSettings(opts []Option) Settings {
	if len(opts) == 0 {
		return Settings{} // apart from apply, whose argument lives on the heap
	}
	return apply(opts)
}

func apply(opts []Option) Settings {
	var s Settings
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// Try makes Acquire return ErrHeld instead of waiting.
func Try() Option { return try }

func try(s *Settings) { s.Try = true }

// WithLease makes the lease end after d, without renewal, whether or not the holder is done. When acquiring deepens a
// hold, d is ignored: the outermost lease governs.
func WithLease(d time.Duration) Option { return func(s *Settings) { s.Lease = d } }

// WithWait makes Acquire return ErrHeld when the lock was not granted within d. Unlike a deadline on the context, it
// does not reach into the lease.
func WithWait(d time.Duration) Option { return func(s *Settings) { s.Wait = d } }

// WithTimeout makes Acquire return ErrUnavailable when the backend does not answer within d. Waiting for a holder does
// not count.
func WithTimeout(d time.Duration) Option { return func(s *Settings) { s.Timeout = d } }
