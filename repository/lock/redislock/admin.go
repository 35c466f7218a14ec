package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Break takes the lock named key from whoever holds it, without telling. It is for an operator who knows that the holder
// is gone, and for showing what a failover that forgets the lock does.
func Break(ctx context.Context, client redis.UniversalClient, key string) error {
	return client.Del(ctx, key).Err()
}

// Requests returns how many requests the Locker has sent, subscriptions not counted. Under load many of them share one
// command.
func (l *Locker) Requests() int64 { return l.backend.pipe.sent.Load() }
