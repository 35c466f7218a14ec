package redisstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
		oldest, err := s.oldest(ctx, g)
		if err != nil {
			return err
		}
		keep = keep.lower(oldest)
	}
	for _, group := range s.opts.Groups {
		if !present[group] { // it has not had anything yet
			return nil
		}
	}
	return s.client.XTrimMinIDApprox(ctx, s.opts.Stream, keep.String(), 0).Err()
}

// oldest returns the lowest entry that a group still needs.
func (s *subscription) oldest(ctx context.Context, g redis.XInfoGroup) (entryID, error) {
	last, err := parseEntryID(g.LastDeliveredID)
	if err != nil || g.Pending == 0 {
		return last, err
	}
	pending, err := s.client.XPending(ctx, s.opts.Stream, g.Name).Result()
	if err != nil || pending.Count == 0 {
		return last, err
	}
	lowest, err := parseEntryID(pending.Lower)
	return last.lower(lowest), err
}

// retire removes the consumer from its group, unless entries are pending with it: those would be lost.
func (s *subscription) retire() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	pending, err := s.client.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: s.opts.Stream, Group: s.group, Consumer: s.consumer, Start: "-", End: "+", Count: 1,
	}).Result()
	if err == nil && len(pending) == 0 {
		_ = s.client.XGroupDelConsumer(ctx, s.opts.Stream, s.group, s.consumer).Err() // an idle consumer costs a few bytes
	}
}

// entryID is the id of an entry of a stream: milliseconds and a sequence number.
type entryID struct{ millis, sequence uint64 }

func parseEntryID(s string) (id entryID, err error) {
	millis, sequence, _ := strings.Cut(s, "-")
	if id.millis, err = strconv.ParseUint(millis, 10, 64); err == nil {
		id.sequence, err = strconv.ParseUint(sequence, 10, 64)
	}
	if err != nil {
		return id, fmt.Errorf("redisstream: entry id %q: %w", s, err)
	}
	return id, nil
}

func (id entryID) lower(other entryID) entryID {
	if other.millis < id.millis || other.millis == id.millis && other.sequence < id.sequence {
		return other
	}
	return id
}

func (id entryID) String() string { return fmt.Sprintf("%d-%d", id.millis, id.sequence) }
