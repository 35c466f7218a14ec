package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// failoverTime is how long locks may be away after their master has died.
const failoverTime = 5 * time.Second

func redisDrills() []drill {
	return []drill{
		{
			name:  "redis-failover",
			shows: "The master of Redis dies with locks that no replica has heard of, and a replica becomes master: two holders of one lock, one order.",
			fears: "Replication is asynchronous: a lock that was granted is forgotten by a failover and granted again (martin.kleppmann.com, 2016).",
			locks: []string{"redis"}, span: 20 * time.Second, shortSpan: 12 * time.Second,
			do: redisFailover, control: redisFailover,
		},
		{
			name:  "redis-down",
			shows: "All of Redis is gone: the shop sells with its database alone, and takes locks again when Redis is back.",
			fears: "Whoever keeps stock or locks in Redis sells nothing without it, or sells what is not there.",
			locks: []string{"redis"}, span: 20 * time.Second, shortSpan: 12 * time.Second,
			do: redisDown,
		},
	}
}

// redisFailover loses the locks of some witnesses by a failover while their orders are held up. Orders give up after a
// while: where the failover takes longer than that, as it may on a machine that is much too busy, it is done again.
func redisFailover(ctx context.Context, r *run) error {
	const attempts = 4
	for range attempts {
		w, err := r.newWitnesses(ctx, 20)
		if err != nil {
			return err
		}
		err = r.failover(ctx, w)
		w.close()
		switch {
		case !errors.Is(err, errAnswered):
			return err
		case r.guardOff: // the books will tell, whoever held which lock
			return nil
		}
		r.note("the failover took longer than an order waits for its commit, so the first holders had given up: once more")
	}
	return fmt.Errorf("%d times the failover took longer than an order waits: two holders at work could not be shown", attempts)
}

// failover shows that locks are granted a second time while those who had them first are at work. It is errAnswered if
// they were not any more; everything is whole again then.
func (r *run) failover(ctx context.Context, w *witnesses) error {
	master, replicas, err := r.redisRoles(ctx)
	if err != nil {
		return err
	}
	before, err := r.loneHolders(ctx, w, master, replicas)
	unseen := errors.Is(err, errAnswered)
	if err != nil && !unseen {
		return err
	}
	if err := r.lose(ctx, master, replicas); err != nil {
		return err
	}
	w.ask(shop2, "second")
	after, promoted, err := r.owners(ctx, w, 2*w.n)
	switch unseen = unseen || errors.Is(err, errAnswered); {
	case unseen:
	case err != nil:
		return err
	default:
		if err := r.twoHolders(w, before, after, master, promoted); err != nil {
			return err
		}
	}
	if err := w.release(); err != nil {
		return err
	}
	if err := w.judge(ctx); err != nil {
		return err
	}
	if err := r.start(ctx, master); err != nil || !unseen {
		return err
	}
	return errors.Join(errAnswered, r.follows(ctx, master))
}

// follows waits until a server that was the master has become a replica.
func (r *run) follows(ctx context.Context, old string) error {
	return r.until(ctx, old+" is a replica", func(ctx context.Context) (bool, error) {
		text, err := r.exec(ctx, old, "redis-cli", "info", "replication")
		return strings.Contains(text, "master_link_status:up"), err
	})
}

// loneHolders cuts the replicas off and has the witnesses take their locks, of which no replica can hear. The replicas
// are stopped and their links are cut, so that nothing waits for them either. They keep their addresses: on another one,
// Sentinel would take a replica for its neighbour.
func (r *run) loneHolders(ctx context.Context, w *witnesses, master string, replicas []string) (owners map[string]string, err error) {
	if err := w.hold(ctx); err != nil {
		return nil, err
	}
	if err := r.pause(ctx, replicas...); err != nil {
		return nil, err
	}
	cut, err := r.exec(ctx, master, "redis-cli", "client", "kill", "type", "replica")
	if err != nil {
		return nil, err
	}
	if err := r.assert(cut == strconv.Itoa(len(replicas)), "the links of %s to its replicas are cut: %s", master, cut); err != nil {
		return nil, err
	}
	w.ask(shop1, "first")
	r.note("%d buyers ask at %s; their commit is held up, so that they hold their locks", w.n, shop1)
	owners, _, err = r.owners(ctx, w, w.n)
	return owners, err
}

// lose kills the master, and returns when the shop takes its locks from another, which knows nothing of those.
func (r *run) lose(ctx context.Context, master string, replicas []string) error {
	killed := time.Now()
	if err := r.kill(ctx, master); err != nil {
		return err
	}
	granted, err := r.granted(ctx)
	if err != nil {
		return err
	}
	if err := r.unpause(ctx, replicas...); err != nil {
		return err
	}
	promoted, err := r.promoted(ctx, master)
	if err != nil {
		return err
	}
	r.note("%s is master now, %s after %s was killed", promoted, short(time.Since(killed)), master)
	if err := r.locksAreBack(ctx, granted); err != nil {
		return err
	}
	r.measure("locks again after the master was killed", time.Since(killed), failoverTime)
	return nil
}

// twoHolders asserts that the same locks were granted twice while both who got them are at work.
func (r *run) twoHolders(w *witnesses, before, after map[string]string, master, promoted string) error {
	both, example := 0, ""
	for key, owner := range before {
		if other := after[key]; other != "" && other != owner {
			both, example = both+1, fmt.Sprintf("%s: %s on %s, %s on %s", key, owner, master, other, promoted)
		}
	}
	if err := r.assert(both == w.n, "%d of %d locks have two holders, and both are placing an order", both, w.n); err != nil {
		return err
	}
	r.note("such as %s", example)
	return nil
}

func redisDown(ctx context.Context, r *run) error {
	down := time.Now()
	if err := r.kill(ctx, redisServers...); err != nil {
		return err
	}
	if err := r.until(ctx, "both instances go without their lock", r.breakers(1)); err != nil {
		return err
	}
	r.note("both instances have found out and go on with the database alone, %s later", short(time.Since(down)))
	away := r.between(6*time.Second, 9*time.Second)
	if r.short {
		away = 4 * time.Second
	}
	if err := r.let(ctx, away); err != nil {
		return err
	}
	n, err := r.placedSince(ctx, down)
	if err != nil {
		return err
	}
	r.note("%d orders were placed without Redis", n)
	granted, err := r.granted(ctx)
	if err != nil {
		return err
	}
	back := time.Now()
	if err := r.start(ctx, redisServers...); err != nil {
		return err
	}
	if err := r.locksAreBack(ctx, granted); err != nil {
		return err
	}
	r.measure("locks again after Redis was started", time.Since(back), 0)
	return nil
}

// redisRoles asks a Sentinel which server is the master.
func (r *run) redisRoles(ctx context.Context) (master string, replicas []string, err error) {
	for _, s := range sentinels {
		var text string
		if text, err = r.exec(ctx, s, "redis-cli", "-p", "26379", "sentinel", "get-master-addr-by-name", sentinelMaster); err == nil {
			master, _, _ = strings.Cut(text, "\n")
			break
		}
	}
	for _, s := range redisServers {
		if s != strings.TrimSpace(master) {
			replicas = append(replicas, s)
		}
	}
	if err == nil && len(replicas) != len(redisServers)-1 {
		err = fmt.Errorf("the Sentinels name a master %q that is none of %s", master, strings.Join(redisServers, ", "))
	}
	return strings.TrimSpace(master), replicas, err
}

// promoted waits until a server other than the old master says of itself that it is the master.
func (r *run) promoted(ctx context.Context, old string) (promoted string, err error) {
	err = r.until(ctx, "a replica becomes master", func(ctx context.Context) (bool, error) {
		for _, s := range redisServers {
			if s == old {
				continue
			}
			role, err := r.exec(ctx, s, "redis-cli", "role")
			if err != nil {
				return false, err
			}
			if strings.HasPrefix(role, "master") {
				promoted = s
				return true, nil
			}
		}
		return false, errors.New("the others are replicas")
	})
	return promoted, err
}

// locksAreBack waits until both instances are granted locks again. granted is how many each was granted before.
func (r *run) locksAreBack(ctx context.Context, granted map[string]float64) error {
	return r.until(ctx, "both instances are granted locks again", func(ctx context.Context) (bool, error) {
		now, err := r.granted(ctx)
		if err != nil {
			return false, err
		}
		for instance, n := range granted {
			if now[instance] <= n {
				return false, fmt.Errorf("%s was granted none", instance)
			}
		}
		return r.breakers(0)(ctx)
	})
}

// granted counts the locks that each instance was granted so far.
func (r *run) granted(ctx context.Context) (map[string]float64, error) {
	n := map[string]float64{}
	for _, instance := range []string{shop1, shop2} {
		value, err := r.metric(ctx, instance, locksGranted)
		if err != nil {
			return nil, err
		}
		n[instance] = value
	}
	return n, nil
}
