package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// drill is one thing that everyone fears, and how it is brought about.
type drill struct {
	name  string
	shows string // what is being shown, in a line or two
	fears string // what the textbook fears
	locks []string
	own   string // the lock that it is about, and runs with whatever else is asked for; "" for none
	needs needs
	// span is about how long the load has to last: the steady rate is such that half of the units are sold by then.
	span, shortSpan time.Duration
	// do breaks things and heals them while the load goes on. It asserts that each fault took effect, and returns when
	// the shop has recovered. An error means that the drill failed, whatever the ledger says.
	do func(ctx context.Context, r *run) error
	// control repeats the heart of the drill on a shop that was built without its guard, to see that the ledger finds
	// the damage. nil for none.
	control func(ctx context.Context, r *run) error
	// repeat has every buyer whose request failed, or was left open, send it once more at once.
	repeat bool
}

// needs says what has to be up. Drills with the same needs run on the same project, one after the other.
type needs struct {
	profiles []string
	env      map[string]string // of the shop's containers, beside the lock
	tags     string            // build tags of the shop
	overlay  string            // a file to be laid over docker-compose.yml
}

// key is the same for needs that one project meets.
func (n needs) key(lock string) string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(n.env)) {
		env = append(env, name+"="+n.env[name])
	}
	return strings.Join([]string{lock, strings.Join(n.profiles, ","), strings.Join(env, ","), n.tags, n.overlay}, " ")
}

// withLock returns the needs of a drill when the shop uses the lock.
func (n needs) withLock(lock string) needs {
	if profile := lockProfile[lock]; profile != "" && !slices.Contains(n.profiles, profile) {
		n.profiles = append(slices.Clone(n.profiles), profile)
	}
	return n
}

// everyLock is the locks of a drill that makes sense with each.
var everyLock = []string{"none", "redis", "redlock", "zookeeper"}

// drills lists every drill, in the order of the table.
func drills() []drill {
	return slices.Concat(redisDrills(), holderDrills(), mysqlDrills(), brokerDrills(), instanceDrills(),
		redlockDrills(), zookeeperDrills(), partitionDrills(), slowDrills(), clockDrills())
}

// choose returns the drills of these names, in the order of the table; "all" stands for each.
func choose(names []string) ([]drill, error) {
	all := drills()
	if slices.Contains(names, "all") {
		return all, nil
	}
	var chosen []drill
	for _, d := range all {
		if slices.Contains(names, d.name) {
			chosen = append(chosen, d)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(d drill) bool { return d.name == name }) {
			return nil, fmt.Errorf("there is no drill %q; `drill list` has them all", name)
		}
	}
	return chosen, nil
}

// turn is a drill with a lock.
type turn struct {
	drill
	lock string
}

// turns orders what is to be done so that drills that can share a project follow each other. A lock that a drill does
// not apply to is left out, and named in skipped.
func turns(chosen []drill, locks []string) (all []turn, skipped []string) {
	for i, lock := range locks {
		for _, d := range chosen {
			if d.own != "" {
				if i == 0 {
					all = append(all, turn{d, d.own})
				}
				continue
			}
			if !slices.Contains(d.locks, lock) {
				skipped = append(skipped, fmt.Sprintf("%s does not apply to --lock %s", d.name, lock))
				continue
			}
			all = append(all, turn{d, lock})
		}
	}
	first := map[string]int{}
	for i, t := range all {
		if _, seen := first[t.key()]; !seen {
			first[t.key()] = i
		}
	}
	slices.SortStableFunc(all, func(a, b turn) int { return first[a.key()] - first[b.key()] })
	return all, skipped
}

func (t *turn) key() string { return t.needs.withLock(t.lock).key(t.lock) }
