package handler

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	limiterShards = 16
	limiterKeys   = 100_000 // remembered at most, over all shards; about 200 bytes each
)

// limiter has a token bucket for each key and forgets those that nobody uses.
//
// A shard has two generations, like the cache in package token. A generation lasts at least until a bucket that was
// empty is full again, so that forgetting it changes nothing; only if more keys come in that time than the limiter
// holds, the idle ones among them are forgiven early.
type limiter[K comparable] struct {
	rate   rate.Limit
	burst  int
	age    time.Duration // of a generation
	seed   maphash.Seed
	shards [limiterShards]limiterShard[K]
}

type limiterShard[K comparable] struct {
	mu         sync.Mutex
	young, old map[K]*rate.Limiter
	since      time.Time // of young
}

// newLimiter returns nil if there is no limit.
func newLimiter[K comparable](r Rate) *limiter[K] {
	if r.PerSecond <= 0 {
		return nil
	}
	l := &limiter[K]{rate: rate.Limit(r.PerSecond), burst: max(1, r.Burst), seed: maphash.MakeSeed()}
	refill := float64(l.burst) / r.PerSecond
	l.age = time.Duration(min(refill, math.MaxInt32)*float64(time.Second)) + time.Second
	return l
}

// wait takes a token and returns 0, or tells how long it will take until there is one.
func (l *limiter[K]) wait(key K, now time.Time) time.Duration {
	bucket := l.bucket(key, now)
	if bucket.AllowN(now, 1) {
		return 0
	}
	missing := (1 - bucket.TokensAt(now)) / float64(l.rate)
	return max(time.Millisecond, time.Duration(min(missing, math.MaxInt32)*float64(time.Second)))
}

func (l *limiter[K]) bucket(key K, now time.Time) *rate.Limiter {
	s := &l.shards[maphash.Comparable(l.seed, key)%limiterShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) > l.age || len(s.young) >= limiterKeys/limiterShards/2 {
		if now.Sub(s.since) > 2*l.age {
			s.young = nil // nobody came for a whole generation
		}
		s.old, s.young, s.since = s.young, map[K]*rate.Limiter{}, now
	}
	bucket := s.young[key]
	if bucket == nil {
		if bucket = s.old[key]; bucket == nil {
			bucket = rate.NewLimiter(l.rate, l.burst)
		}
		s.young[key] = bucket
	}
	return bucket
}
