package redislock

import (
	"strconv"
	"strings"
	"sync"
)

// fenceKey stores the highest token granted. All locks share it, so that there is one such key, and not one that outlives
// each of millions of locks.
const fenceKey = "lock:fence"

// fences names the fence of a lock. In a cluster all keys of a script must be in one hash slot, so there is a fence for
// each slot in use.
type fences struct {
	cluster bool
	once    sync.Once
	bySlot  []string
}

func (f *fences) of(key string) string {
	if !f.cluster {
		return fenceKey
	}
	f.once.Do(f.fill)
	return f.bySlot[slotOf(key)]
}

// fill finds a short hash tag for every slot.
func (f *fences) fill() {
	f.bySlot = make([]string, slotCount)
	for n, found := 0, 0; found < slotCount; n++ {
		tag := strconv.Itoa(n)
		if slot := crc16(tag) % slotCount; f.bySlot[slot] == "" {
			f.bySlot[slot] = fenceKey + ":{" + tag + "}"
			found++
		}
	}
}

const slotCount = 16384

// slotOf returns the hash slot of a key. Only the part between the first "{" and the next "}" counts, unless it is empty.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
func slotOf(key string) uint16 {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	return crc16(key) % slotCount
}

// crc16 is CRC-16/XMODEM, as in the cluster specification.
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
