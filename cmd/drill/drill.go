package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// drill breaks one thing that people fear, and shows that the shop survives it.
type drill struct {
	name        string
	expectation string // what it shows
	risk        string // what could go wrong, by the textbook
	locks       []string
	fixedLock   string // the lock that the drill is about; it runs with this one only
	needs       needs
	// duration is the expected length of the load: at the steady rate, half of the units are sold by then.
	duration, shortDuration time.Duration
	// script breaks and repairs things while the load goes on. It asserts that each fault took effect, and returns when the
	// shop has recovered.
	script func(c *drillCase)
	// control repeats the drill with a shop that was built without its guard, to see that the verdict finds the damage.
	control bool
	// repeat makes buyers send a request again that failed or has an unknown outcome.
	repeat bool
}

// needs say what has to be up. Drills with the same needs share a cluster.
type needs struct {
	env     map[string]string // of the shop's containers
	tags    string            // build tags of the shop
	overlay string            // YAML that is laid over docker-compose.yml
}

// allLocks are the locks of a drill that makes sense with each of them.
var allLocks = []string{"none", "redis", "redlock", "zookeeper"}

// profiles returns the compose profiles that a lock needs.
func profiles(lock string) []string {
	if lock == "redlock" || lock == "zookeeper" {
		return []string{lock}
	}
	return nil
}

// drills returns all drills, in the order of the table.
func drills() []drill {
	return slices.Concat(redisDrills(), holderDrills(), mysqlDrills(), brokerDrills(), instanceDrills(),
		redlockDrills(), zookeeperDrills(), partitionDrills(), slowDrills(), clockDrills())
}

// choose returns the drills of these names, in the order of the table; "all" stands for all of them.
func choose(names []string) (chosen []drill, err error) {
	known := map[string]bool{"all": true}
	for _, d := range drills() {
		known[d.name] = true
		if slices.Contains(names, d.name) || slices.Contains(names, "all") {
			chosen = append(chosen, d)
		}
	}
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("there is no drill %q; `drill list` shows all of them", name)
		}
	}
	return chosen, nil
}

// drillRun is a drill with one of its locks.
type drillRun struct {
	drill
	lock string
}

// clusterKey identifies what a run needs: runs with the same value share their containers.
func (t *drillRun) clusterKey() string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(t.needs.env)) {
		env = append(env, name+"="+t.needs.env[name])
	}
	return strings.Join([]string{t.lock, strings.Join(env, ","), t.needs.tags, t.needs.overlay}, " ")
}

// drillRuns orders the chosen drills so that those with the same needs follow each other. It skips locks to which a drill does
// not apply.
func drillRuns(chosen []drill, locks []string) (all []drillRun, skipped []string) {
	for i, lock := range locks {
		for _, d := range chosen {
			switch {
			case d.fixedLock != "" && i == 0:
				all = append(all, drillRun{d, d.fixedLock})
			case d.fixedLock != "":
			case slices.Contains(d.locks, lock):
				all = append(all, drillRun{d, lock})
			default:
				skipped = append(skipped, fmt.Sprintf("%s does not apply to --lock %s", d.name, lock))
			}
		}
	}
	first := map[string]int{}
	for i, t := range all {
		if _, seen := first[t.clusterKey()]; !seen {
			first[t.clusterKey()] = i
		}
	}
	slices.SortStableFunc(all, func(a, b drillRun) int { return first[a.clusterKey()] - first[b.clusterKey()] })
	return all, skipped
}

// list prints every drill.
func list(w io.Writer) {
	for _, d := range drills() {
		fmt.Fprintf(w, "%s\n    %s\n    Risk: %s\n", d.name, d.expectation, d.risk)
		switch {
		case d.fixedLock != "":
			fmt.Fprintf(w, "    only with --lock %s\n", d.fixedLock)
		case len(d.locks) != len(allLocks):
			fmt.Fprintf(w, "    only with --lock %s\n", strings.Join(d.locks, ", "))
		}
	}
}
