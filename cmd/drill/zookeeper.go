package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var zookeeperServers = []string{"zookeeper-1", "zookeeper-2", "zookeeper-3"}

// lockSession is how long a session of ZooKeeper outlives its client here. The servers know whole seconds.
const lockSession = 4 * time.Second

func zookeeperDrills() []drill {
	zookeeper := func(d drill) drill {
		d.own, d.locks = "zookeeper", []string{"zookeeper"}
		d.needs = needs{env: map[string]string{"SECKILL_COMMIT_TIMEOUT": longCommit, "SECKILL_LOCK_SESSION": lockSession.String(), "SECKILL_LOCK_TIMEOUT": "500ms"}}
		d.span, d.shortSpan = 25*time.Second, 20*time.Second
		return d
	}
	return []drill{
		zookeeper(drill{
			name:  "zookeeper-leader",
			shows: "The leader of ZooKeeper is killed while buyers hold locks: the others elect another, and it knows every lock.",
			fears: "What the leader had promised is gone with it; or everybody loses the session, and with it the lock, at the same time.",
			do:    zookeeperLeader,
		}),
		zookeeper(drill{
			name:  "zookeeper-session",
			shows: "An instance is cut off from ZooKeeper while it places orders: its session ends and its locks are given to others: two at work on the same, one order.",
			fears: "The session expires in the middle of the work, and the worker learns of it last.",
			do:    zookeeperSession,
		}),
		zookeeper(drill{
			name:  "zookeeper-majority",
			shows: "Two of three are killed: no lock can be had, and the shop sells with its database alone until they are back.",
			fears: "A lock that is consistent is not available: the shop stands still with it.",
			do:    zookeeperMajority,
		}),
	}
}

func zookeeperLeader(ctx context.Context, r *run) error {
	return r.attempts(ctx, func(ctx context.Context, w *witnesses) (shown bool, err error) {
		old, err := r.zookeeperLeads(ctx)
		if err != nil {
			return false, err
		}
		if err := w.hold(ctx); err != nil {
			return false, err
		}
		w.ask(shop1, "first")
		if err := r.let(ctx, time.Second); err != nil { // as long as it takes to be granted a lock
			return false, err
		}
		if err := r.loseLeader(ctx, old); err != nil {
			return false, err
		}
		if shown, err = r.stillHeld(ctx, w, "the locks outlived the leader: each of the %d second requests was refused"); err != nil {
			return false, err
		}
		if err := w.finish(ctx); err != nil {
			return false, err
		}
		if err := r.start(ctx, old); err != nil {
			return false, err
		}
		return shown, r.until(ctx, old+" follows", func(ctx context.Context) (bool, error) {
			mode, err := r.zookeeperMode(ctx, old)
			return mode == "follower", err
		})
	})
}

// loseLeader kills the leader and returns when both instances get their locks from another.
func (r *run) loseLeader(ctx context.Context, old string) error {
	killed := time.Now()
	if err := r.kill(ctx, old); err != nil {
		return err
	}
	granted, err := r.granted(ctx)
	if err != nil {
		return err
	}
	leader := ""
	if err := r.until(ctx, "another leads", func(ctx context.Context) (bool, error) {
		leader, err = r.zookeeperLeads(ctx)
		return leader != "" && leader != old, err
	}); err != nil {
		return err
	}
	r.note("found: %s leads, %s after %s was killed", leader, short(time.Since(killed)), old)
	if err := r.locksAreBack(ctx, granted); err != nil {
		return err
	}
	r.measure("locks again after the leader was killed", time.Since(killed), 0)
	return nil
}

func zookeeperSession(ctx context.Context, r *run) error {
	hit, other := r.instance()
	return r.attempts(ctx, func(ctx context.Context, w *witnesses) (shown bool, err error) {
		if err := w.hold(ctx); err != nil {
			return false, err
		}
		w.ask(hit, "first")
		if err := r.let(ctx, time.Second); err != nil { // as long as it takes to be granted a lock
			return false, err
		}
		if err := r.disconnect(ctx, hit, "zookeeper"); err != nil {
			return false, err
		}
		if err := r.let(ctx, lockSession+1500*time.Millisecond); err != nil { // the servers look once a second
			return false, err
		}
		if shown, err = r.grantedToOther(ctx, w, hit, other); err != nil {
			return false, err
		}
		if err := w.finish(ctx); err != nil {
			return false, err
		}
		granted, err := r.granted(ctx)
		if err != nil {
			return false, err
		}
		back := time.Now()
		if err := r.connect(ctx, hit, "zookeeper"); err != nil {
			return false, err
		}
		if err := r.locksAreBack(ctx, granted); err != nil {
			return false, err
		}
		r.measure("locks again after the instance was back on the network", time.Since(back), 0)
		return shown, nil
	})
}

// grantedToOther has the witnesses ask the other instance, and tells whether their requests are being served twice: the
// other instance does have its locks, so it was granted those that the first has lost.
func (r *run) grantedToOther(ctx context.Context, w *witnesses, hit, other string) (bool, error) {
	away, err := r.metric(ctx, hit, lockBreaker)
	if err != nil {
		return false, err
	}
	if err := r.assert(away == 1, "%s has found out that it gets no locks any more", hit); err != nil {
		return false, err
	}
	w.ask(other, "second")
	if err := r.let(ctx, time.Second); err != nil {
		return false, err
	}
	open, err := r.metric(ctx, other, lockBreaker)
	if err != nil || open != 0 || w.waiting() < 2*w.n {
		return false, err
	}
	r.note("found: each of the %d locks was granted to another by %s, while %s is still at work", w.n, other, hit)
	return true, nil
}

func zookeeperMajority(ctx context.Context, r *run) error {
	gone, _ := r.draw(zookeeperServers, 2)
	return r.lockAway(ctx, gone)
}

// zookeeperLeads names the leader; "" for none.
func (r *run) zookeeperLeads(ctx context.Context) (leader string, err error) {
	var errs []error
	for _, s := range zookeeperServers {
		mode, err := r.zookeeperMode(ctx, s)
		if err == nil && mode == "leader" {
			return s, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(append(errs, errors.New("no server of ZooKeeper leads"))...)
}

// zookeeperMode asks a server what it is: leader, follower; "" while it is neither.
func (r *run) zookeeperMode(ctx context.Context, server string) (string, error) {
	text, err := r.exec(ctx, server, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/2181 && echo srvr >&3 && cat <&3")
	if err != nil {
		return "", fmt.Errorf("%s: %w", server, err)
	}
	for line := range strings.Lines(text) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode), nil
		}
	}
	return "", nil
}
