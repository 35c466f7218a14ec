package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// offsets knows up to where every event of a partition was handled. Events finish in any order, but Kafka keeps a
// single number for each partition.
type offsets struct {
	mu         sync.Mutex
	partitions map[int32]*progress
}

// progress is the events of one partition that are in hand, oldest first.
type progress struct {
	epoch  int32
	inHand []inHand
}

type inHand struct {
	offset int64
	done   bool
}

func newOffsets() *offsets { return &offsets{partitions: map[int32]*progress{}} }

// took notes an event that was read. An offset that does not follow the last one means that the partition was away and
// has come back: what was in hand before is another member's now, or comes again.
func (o *offsets) took(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.partitions[r.Partition]
	if p == nil || len(p.inHand) > 0 && r.Offset <= p.inHand[len(p.inHand)-1].offset {
		p = &progress{}
		o.partitions[r.Partition] = p
	}
	p.epoch = r.LeaderEpoch
	p.inHand = append(p.inHand, inHand{offset: r.Offset})
}

// handled notes that an event is done, and marks the partition up to the oldest one that is not.
func (o *offsets) handled(r *kgo.Record, mark func(map[string]map[int32]kgo.EpochOffset)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.partitions[r.Partition]
	if p == nil {
		return
	}
	for i := range p.inHand {
		if p.inHand[i].offset == r.Offset {
			p.inHand[i].done = true
			break
		}
	}
	next := int64(-1)
	for len(p.inHand) > 0 && p.inHand[0].done {
		next = p.inHand[0].offset + 1
		p.inHand = p.inHand[1:]
	}
	if next >= 0 {
		mark(map[string]map[int32]kgo.EpochOffset{r.Topic: {r.Partition: {Epoch: p.epoch, Offset: next}}})
	}
}
