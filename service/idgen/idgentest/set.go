package idgentest

import (
	"testing"

	"seckill/service/idgen"
)

// Set collects ids and fails the test on one that it has seen before. The zero Set is ready for use. It is
// not safe for concurrent use.
type Set struct{ seen map[idgen.ID]struct{} }

// Add puts ids into the set. They have to be valid and new; the first one that is not fails the test.
func (s *Set) Add(t testing.TB, ids ...idgen.ID) {
	t.Helper()
	if s.seen == nil {
		s.seen = make(map[idgen.ID]struct{}, len(ids))
	}
	for _, id := range ids {
		if id <= 0 {
			t.Errorf("id %d is not positive", int64(id))
			return
		}
		if _, again := s.seen[id]; again {
			t.Errorf("id %d was handed out twice", id)
			return
		}
		s.seen[id] = struct{}{}
	}
}

// Len returns the number of ids in the set.
func (s *Set) Len() int { return len(s.seen) }
