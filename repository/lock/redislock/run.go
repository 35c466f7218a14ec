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

// result is what came of running a script.
type result struct {
	value     int64
	uncertain bool            // an attempt whose reply was lost may have taken effect
	running   <-chan struct{} // closed when the last attempt has ended; nil if it has
}

// run runs a script until the server answers, the deadline passes or ctx ends. It repeats failed attempts. The error wraps
// lock.ErrUnavailable, is that of ctx, or is one that repeating cannot change.
func (b *backend) run(ctx context.Context, deadline time.Time, script *redis.Script, keys []string, args ...any) (r result, err error) {
	load := false
	for attempt := 0; ; attempt++ {
		call := &scriptCall{script: script, keys: keys, args: args, load: load}
		if r.running, err = b.batcher.do(ctx, call, deadline); r.running != nil {
			r.uncertain = true
			return r, err
		}
		switch {
		case err == nil:
			r.value = call.value
			return r, nil
		case redis.HasErrorPrefix(err, "NOSCRIPT") && !load:
			load = true
			continue
		case isPermanent(err):
			return r, fmt.Errorf("redislock: %w", err)
		}
		r.uncertain = r.uncertain || !neverSent(err)
		if err := waitToRepeat(ctx, attempt, deadline, err); err != nil {
			return r, err
		}
	}
}

// waitToRepeat waits before the next attempt, or returns an error if there is no time, or no use, for another one. It does
// not wait before the second attempt: the usual cause is a pooled connection that the server has closed long ago.
func waitToRepeat(ctx context.Context, attempt int, deadline time.Time, cause error) error {
	if err := lockcore.Ended(ctx); err != nil {
		return err
	}
	wait := time.Duration(attempt) * 20 * time.Millisecond
	if attempt > 0 && dialFailed(cause) || time.Until(deadline) <= wait {
		return fmt.Errorf("%w: %w", lock.ErrUnavailable, cause)
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return lockcore.Ended(ctx)
	}
}

// isPermanent reports whether err is an answer that repeating cannot change: the key is of another type, or the script is
// not allowed. All other errors count as unavailable, including those of a failover (LOADING, READONLY, MASTERDOWN,
// CLUSTERDOWN …).
func isPermanent(err error) bool {
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

// dialFailed reports whether no connection could be made.
func dialFailed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// neverSent reports whether err means that the command did not leave this process.
func neverSent(err error) bool {
	return dialFailed(err) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
}
