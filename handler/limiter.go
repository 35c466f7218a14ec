package handler

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// Rate is the limit of a token bucket.
type Rate struct {
	PerSecond float64 // zero: unlimited
	Burst     int     // requests that may come at the same time; at least 1
}

// limitUser limits the requests of one user.
func (h *Handler) limitUser(c *gin.Context) error {
	if h.users == nil {
		return nil
	}
	return h.users.take("you", userOf(c))
}

// limitAddress limits the requests of one network.
func (h *Handler) limitAddress(c *gin.Context) error {
	if h.addresses == nil {
		return nil
	}
	return h.addresses.take("your address", networkOf(c.ClientIP()))
}

// network is one IPv4 address, or the /64 network that an IPv6 client usually has to itself.
type network = netip.Prefix

func networkOf(clientIP string) network {
	addr, _ := netip.ParseAddr(clientIP)
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.Prefix(bits) // clients without an address share one bucket
	return prefix
}

// limiterKeys is the number of token buckets that a limiter keeps; about 200 bytes each.
const limiterKeys = 100_000

// limiter has a token bucket for each key. It keeps those that were used last.
type limiter[K comparable] struct {
	limit   Rate
	buckets *lru.Cache[K, *rate.Limiter]
}

// newLimiter returns nil if there is no limit.
func newLimiter[K comparable](limit Rate) *limiter[K] {
	if limit.PerSecond <= 0 {
		return nil
	}
	buckets, _ := lru.New[K, *rate.Limiter](limiterKeys) // fails only for a negative size
	return &limiter[K]{limit, buckets}
}

// take takes one token from the bucket of key, or returns a problem that says when to try again.
func (l *limiter[K]) take(who string, key K) error {
	wait := l.wait(key, time.Now())
	if wait == 0 {
		return nil
	}
	p := newProblem(codeRateLimited, fmt.Sprintf("too many requests from %s; try again later", who))
	p.RetryAfter = wholeSeconds(wait)
	return p
}

// wait takes one token and returns 0, or returns the time until the next token.
func (l *limiter[K]) wait(key K, now time.Time) time.Duration {
	bucket, ok := l.buckets.Get(key)
	if !ok {
		bucket = rate.NewLimiter(rate.Limit(l.limit.PerSecond), max(1, l.limit.Burst))
		if existing, found, _ := l.buckets.PeekOrAdd(key, bucket); found { // a concurrent request added it
			bucket = existing
		}
	}
	if bucket.AllowN(now, 1) {
		return 0
	}
	missing := (1 - bucket.TokensAt(now)) / l.limit.PerSecond
	return max(time.Millisecond, time.Duration(min(missing, math.MaxInt32)*float64(time.Second)))
}
