package idgen_test

import (
	"testing"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

// The fakes have to be as good as what they stand for.
func TestFakes_Ranges(t *testing.T) {
	t.Run("ranges", func(t *testing.T) {
		idgentest.RunRanges(t, func(*testing.T) func(*testing.T) idgen.RangeStore {
			store := &idgentest.Ranges{}
			return func(*testing.T) idgen.RangeStore { return store }
		})
	})
}

func TestFakes_Leases(t *testing.T) {
	idgentest.RunLeases(t, func(*testing.T) idgentest.LeaseBackend {
		store := &idgentest.Leases{}
		return idgentest.LeaseBackend{
			Open: func(*testing.T) idgen.LeaseStore { return store },
			TTL:  100 * time.Millisecond,
		}
	})
}
