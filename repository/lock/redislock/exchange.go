package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// answer is what came of running a script.
type answer struct {
	n int64
	// maybe: an attempt whose reply was lost may have taken effect.
	maybe bool
	// pending is closed when the last attempt is over, if it is not.
	pending <-chan struct{}
}

// exchange has r answered, unless the deadline passes or ctx ends before. It sends the request again when an attempt
// fails, which is safe, see script. Its error wraps lock.ErrUnavailable, is ctx's, or is fatal.
func (b *backend) exchange(ctx context.Context, r request, deadline time.Time) (a answer, err error) {
	r.fence = b.fences.of(r.key)
	for attempt := 0; ; attempt++ {
		if a.pending, err = b.pipe.do(ctx, &r, deadline); a.pending != nil {
			a.maybe = true
			return a, err
		}
		if err == nil {
			a.n = r.n
			return a, nil
		}
		if redis.HasErrorPrefix(err, "NOSCRIPT") && !r.load {
			r.load = true
			continue
		}
		if fatal(err) && r.shared {
			r.alone = true // it may be another's fault
			continue
		}
		if fatal(err) {
			return a, fmt.Errorf("redislock: %w", err)
		}
		a.maybe = a.maybe || !neverSent(err)
		if err := pause(ctx, attempt, deadline, err); err != nil {
			return a, err
		}
	}
}

// pause waits before the next attempt. The first one follows at once: the usual cause is a pooled connection that the
// server closed long ago. It returns an error if there is no time, or no point, for another.
func pause(ctx context.Context, attempt int, deadline time.Time, cause error) error {
	if err := lockcore.Ended(ctx); err != nil {
		return err
	}
	wait := time.Duration(attempt) * 20 * time.Millisecond
	if attempt > 0 && refused(cause) || time.Until(deadline) <= wait {
		return fmt.Errorf("%w: %w", lock.ErrUnavailable, cause)
	}
	if wait == 0 {
		return nil
	}
	timer := startTimer(wait)
	defer stopTimer(timer)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return lockcore.Ended(ctx)
	}
}

// fatal reports whether err is an answer that repeating can't change: the key is of another type, or the script is not
// allowed. Everything else counts as unavailable, the many faces of a failover among them (LOADING, READONLY,
// MASTERDOWN, CLUSTERDOWN …).
func fatal(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, prefix := range []string{"WRONGTYPE", "ERR ", "CROSSSLOT", "NOPERM"} {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}

// refused reports whether there is nobody to talk to.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// neverSent reports whether err means that the command did not leave the process.
func neverSent(err error) bool {
	return refused(err) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
}
