package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// offsets tracks which events of each partition are handled. Events finish in any order, but Kafka stores one offset for
// each partition, below which every event must be handled.
type offsets struct {
	mu         sync.Mutex
	partitions map[int32]*partition
}

// partition holds the events of one partition that are not committed yet, oldest first.
type partition struct {
	epoch  int32
	events []tracked
}

type tracked struct {
	offset int64
	done   bool
}

func newOffsets() *offsets { return &offsets{partitions: map[int32]*partition{}} }

// add tracks an event that was read. An offset that is not higher than the last one means that the partition was assigned
// to another member in between: the older events belong to that member now, or are read again.
func (o *offsets) add(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.partitions[r.Partition]
	if p == nil || len(p.events) > 0 && r.Offset <= p.events[len(p.events)-1].offset {
		p = &partition{}
		o.partitions[r.Partition] = p
	}
	p.epoch = r.LeaderEpoch
	p.events = append(p.events, tracked{offset: r.Offset})
}

// handled records that an event is done, and marks the partition's offset up to the oldest event that is not.
func (o *offsets) handled(r *kgo.Record, mark func(map[string]map[int32]kgo.EpochOffset)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.partitions[r.Partition]
	if p == nil {
		return
	}
	for i := range p.events {
		if p.events[i].offset == r.Offset {
			p.events[i].done = true
			break
		}
	}
	next := int64(-1)
	for len(p.events) > 0 && p.events[0].done {
		next = p.events[0].offset + 1
		p.events = p.events[1:]
	}
	if next >= 0 {
		mark(map[string]map[int32]kgo.EpochOffset{r.Topic: {r.Partition: {Epoch: p.epoch, Offset: next}}})
	}
}
