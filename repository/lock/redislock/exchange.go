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
)

// answer is what came of running a script.
type answer struct {
	n int64
	// repeated: an attempt before the answered one may have taken effect.
	repeated bool
	// pending is set where there is no answer although an attempt may have reached, or may yet reach, the server. It is
	// closed when the last attempt is over.
	pending <-chan struct{}
}

// exchange runs s on keys until it is answered, the deadline passes or ctx ends. It sends the script again when an
// attempt fails, which is safe, see script. Its error wraps lock.ErrUnavailable, is ctx's, or is fatal.
func (b *backend) exchange(ctx context.Context, s *script, deadline time.Time, keys []any, args ...any) (a answer, err error) {
	timer := startTimer(time.Until(deadline))
	defer timer.stop()
	load := false
	for attempt := 0; ; attempt++ {
		r := b.pipe.send(s.command(load, keys, args))
		select {
		case <-r.done:
		case <-ctx.Done():
			return answer{pending: r.done}, ctx.Err()
		case <-timer.C:
			return answer{pending: r.done}, fmt.Errorf("%w: no answer in time", lock.ErrUnavailable)
		}
		if a.n, err = r.cmd.Int64(); err == nil {
			a.pending = nil
			return a, nil
		}
		if redis.HasErrorPrefix(err, "NOSCRIPT") && !load {
			load = true
			continue
		}
		if fatal(err) {
			return answer{}, fmt.Errorf("redislock: %w", err)
		}
		if !neverSent(err) {
			a.repeated, a.pending = true, r.done
		}
		if err := pause(ctx, attempt, deadline, err); err != nil {
			return a, err
		}
	}
}

// pause waits before the next attempt. The first one follows at once: the usual cause is a pooled connection that the
// server closed long ago. It returns an error if there is no time, or no point, for another.
func pause(ctx context.Context, attempt int, deadline time.Time, cause error) error {
	wait := time.Duration(attempt) * 20 * time.Millisecond
	if attempt > 0 && refused(cause) || time.Until(deadline) <= wait {
		return fmt.Errorf("%w: %w", lock.ErrUnavailable, cause)
	}
	if wait == 0 {
		return nil
	}
	timer := startTimer(wait)
	defer timer.stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
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
