package redislock

import (
	"fmt"
	"strings"
	"sync"
)

// fenceKey is where the highest token granted is kept. Tokens rise over all locks together, so that one key is enough,
// however many locks there are: counters of their own would outlive them by the million.
const fenceKey = "lock:fence"

// fences names the fence of a lock. In a cluster a script's keys have to be in one hash slot, so there is a fence for
// each slot in use, 16,384 at most.
type fences struct {
	cluster bool
	single  any
	once    sync.Once
	slots   []any
}

func newFences(cluster bool) *fences {
	return &fences{cluster: cluster, single: fenceKey}
}

func (f *fences) of(key string) any {
	if !f.cluster {
		return f.single
	}
	f.once.Do(f.fill)
	return f.slots[slotOf(key)]
}

// fill finds a short hash tag for every slot.
func (f *fences) fill() {
	f.slots = make([]any, slotCount)
	for n, found := 0, 0; found < slotCount; n++ {
		tag := fmt.Sprint(n)
		if s := crc16(tag) % slotCount; f.slots[s] == nil {
			f.slots[s] = fenceKey + ":{" + tag + "}"
			found++
		}
	}
}

const slotCount = 16384

// slotOf returns the hash slot of a key: of what is between its first "{" and the next "}", unless that is empty.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
func slotOf(key string) uint16 {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	return crc16(key) % slotCount
}

// crc16 is CRC-16/XMODEM, which the cluster specification names.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
