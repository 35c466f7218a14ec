package handler

import (
	"testing"
	"time"
)

// A request may be over before one that ended earlier is seen: what has been admitted in a second counts all the same.
func TestSamplerIsNotSetBack(t *testing.T) {
	s := sampler{perSecond: 2}
	now, admitted := time.Now(), 0
	for range 10 {
		for _, ended := range []time.Time{now, now.Add(-3 * time.Second)} {
			if _, ok := s.admit(ended); ok {
				admitted++
			}
		}
	}
	if admitted != 2 {
		t.Errorf("%d were admitted in a second, want 2", admitted)
	}
	if skipped, ok := s.admit(now.Add(time.Second)); !ok || skipped != 18 {
		t.Errorf("the next second: %v, %d skipped", ok, skipped)
	}
}
