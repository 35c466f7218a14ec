package idgen

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Layout defines the bits of a Snowflake id, from the highest to the lowest: a zero sign, TimeBits of milliseconds since
// Epoch, DataCenterBits, WorkerBits, SequenceBits. Ids are unique only among generators with the same layout, so it must
// never change while ids are in use. Lease stores refuse a layout that differs from the stored one.
type Layout struct {
	Epoch          time.Time // with millisecond precision
	TimeBits       int       // at least 32, so that an epoch lasts for seven weeks or more
	DataCenterBits int       // may be 0
	WorkerBits     int       // at least 1: workers are leased in pairs
	SequenceBits   int       // at least 1
}

// ErrLayout means that a layout is invalid, that a number does not fit in its bits, or that a layout differs from that of
// earlier ids in the same store.
var ErrLayout = errors.New("idgen: unusable layout")

// DefaultLayout is Twitter's split, 41 + 5 + 5 + 12 bits, with an epoch of 2025: 4,096 ids a millisecond for each of
// 1,024 workers until September 2094.
func DefaultLayout() Layout {
	return Layout{
		Epoch:          time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		TimeBits:       41,
		DataCenterBits: 5,
		WorkerBits:     5,
		SequenceBits:   12,
	}
}

// Parts are the parts of an id.
type Parts struct {
	Time       time.Time `json:"time"` // UTC, in whole milliseconds
	DataCenter int       `json:"data_center"`
	Worker     int       `json:"worker"`
	Sequence   int       `json:"sequence"`
}

// Validate returns an error that wraps ErrLayout unless ids of this layout are positive and cannot overlap.
func (l Layout) Validate() error {
	total := l.TimeBits + l.DataCenterBits + l.WorkerBits + l.SequenceBits
	switch {
	case l.TimeBits < 32, l.DataCenterBits < 0, l.WorkerBits < 1, l.SequenceBits < 1:
		return fmt.Errorf("%w: want time >= 32, data centre >= 0, worker >= 1, sequence >= 1 bits, got %s", ErrLayout, l)
	case total > 63:
		return fmt.Errorf("%w: %d bits do not fit in the 63 of a positive number", ErrLayout, total)
	case !l.Epoch.Equal(l.Epoch.Truncate(time.Millisecond)):
		return fmt.Errorf("%w: the epoch %s is not a whole millisecond", ErrLayout, l.Epoch)
	case l.Epoch.Year() < 1970 || l.Epoch.Year() > 9999:
		return fmt.Errorf("%w: the epoch %s is not in the years 1970 to 9999", ErrLayout, l.Epoch)
	}
	return nil
}

// String returns the layout as text, which differs for different layouts. Lease stores keep it.
func (l Layout) String() string {
	return fmt.Sprintf("%d/%d-%d-%d-%d", l.Epoch.UnixMilli(), l.TimeBits, l.DataCenterBits, l.WorkerBits, l.SequenceBits)
}

// End returns the first moment after the layout's time.
func (l Layout) End() time.Time {
	return time.UnixMilli(l.Epoch.UnixMilli() + l.maxMillis() + 1).UTC()
}

// Decode returns the parts of an id of this layout. It cannot detect that an id has another layout.
func (l Layout) Decode(id ID) Parts {
	field := func(shift, bits int) int64 { return int64(id) >> shift & (1<<bits - 1) }
	ms := field(l.machineBits()+l.SequenceBits, l.TimeBits)
	return Parts{
		Time:       time.UnixMilli(l.Epoch.UnixMilli() + ms).UTC(),
		DataCenter: int(field(l.WorkerBits+l.SequenceBits, l.DataCenterBits)),
		Worker:     int(field(l.SequenceBits, l.WorkerBits)),
		Sequence:   int(field(0, l.SequenceBits)),
	}
}

func (l Layout) machineBits() int { return l.DataCenterBits + l.WorkerBits }

// maxMillis is the last millisecond since the epoch that TimeBits can hold.
func (l Layout) maxMillis() int64 { return 1<<l.TimeBits - 1 }

// millis turns milliseconds into a duration. Too many become the longest duration.
func millis(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}
