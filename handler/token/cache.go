package token

import (
	"hash/maphash"
	"strings"
	"sync"
)

// shards keeps goroutines that look up different tokens from waiting for each other.
const shards = 16

// cache remembers the claims of verified tokens, bounded in number. A shard fills a young generation; when that is
// half of its share, the old one is dropped and the young one becomes old. What is used is carried over, so busy
// tokens stay without any list to maintain.
type cache struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu         sync.RWMutex
	young, old map[string]Claims
	max        int // of a generation
}

func newCache(size int) *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].max = max(1, size/shards/2)
		c.shards[i].young = map[string]Claims{}
	}
	return c
}

func (c *cache) shard(token string) *shard { return &c.shards[maphash.String(c.seed, token)%shards] }

func (c *cache) get(token string) (Claims, bool) {
	s := c.shard(token)
	s.mu.RLock()
	claims, young := s.young[token]
	if young {
		s.mu.RUnlock()
		return claims, true
	}
	claims, old := s.old[token]
	s.mu.RUnlock()
	if old {
		c.put(token, claims)
	}
	return claims, old
}

func (c *cache) put(token string, claims Claims) {
	s := c.shard(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= s.max {
		s.old, s.young = s.young, make(map[string]Claims, s.max)
	}
	s.young[strings.Clone(token)] = claims // the token is a part of a whole header
}
