package redisstream

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// trim removes the entries that every group has acknowledged.
func (s *subscription) trim(ctx context.Context) error {
	groups, err := s.client.XInfoGroups(ctx, s.opts.Stream).Result()
	if err != nil {
		return err
	}
	present := map[string]bool{}
	keep := entryID{^uint64(0), ^uint64(0)}
	for _, g := range groups {
		present[g.Name] = true
		oldest, err := s.oldestNeeded(ctx, g)
		if err != nil {
			return err
		}
		keep = earlier(keep, oldest)
	}
	for _, group := range s.opts.Groups {
		if !present[group] { // it needs every entry
			return nil
		}
	}
	return s.client.XTrimMinIDApprox(ctx, s.opts.Stream, keep.String(), 0).Err()
}

// oldestNeeded returns the oldest entry that a group has not acknowledged, or the last one that was delivered to it.
func (s *subscription) oldestNeeded(ctx context.Context, g redis.XInfoGroup) (entryID, error) {
	last, err := parseEntryID(g.LastDeliveredID)
	if err != nil || g.Pending == 0 {
		return last, err
	}
	pending, err := s.client.XPending(ctx, s.opts.Stream, g.Name).Result()
	if err != nil || pending.Count == 0 {
		return last, err
	}
	lowest, err := parseEntryID(pending.Lower)
	return earlier(last, lowest), err
}

// entryID is the id of a stream entry.
type entryID struct{ millis, sequence uint64 }

func parseEntryID(s string) (id entryID, err error) {
	if _, err = fmt.Sscanf(s, "%d-%d", &id.millis, &id.sequence); err != nil {
		err = fmt.Errorf("redisstream: entry id %q: %w", s, err)
	}
	return id, err
}

func (id entryID) String() string { return fmt.Sprintf("%d-%d", id.millis, id.sequence) }

func earlier(a, b entryID) entryID {
	if a.millis < b.millis || a.millis == b.millis && a.sequence < b.sequence {
		return a
	}
	return b
}
