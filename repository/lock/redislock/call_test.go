package redislock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/repository/repotest/redistest"
)

// sendTo has requests answered by a server, all in one batch, and returns how many scripts it took.
func sendTo(t *testing.T, client *redis.Client, batch ...*request) (scripts int) {
	t.Helper()
	for _, r := range batch {
		r.fence, r.done = any(fenceKey), make(chan struct{})
	}
	l := &lane{client: client}
	defer l.drop()
	l.exec(batch)
	for _, r := range batch {
		<-r.done
	}
	return len(calls(batch))
}

// TestACallIsManyLocks: each lock of a call gets the answer that it would have got alone, and a key that is no lock
// fails alone.
func TestACallIsManyLocks(t *testing.T) {
	client := redistest.Start(t).Client()
	s := newScripts()
	acquire := func(key, owner string) *request {
		return &request{script: s.acquire, load: true, key: key, args: [3]any{owner, 20_000}}
	}
	release := func(key, owner string) *request {
		return &request{script: s.release, load: true, key: key, args: [3]any{owner, channel(key), "0"}}
	}
	if err := client.Set(t.Context(), "text", "no lock", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.HSet(t.Context(), "endless", "somebody", 1).Err(); err != nil {
		t.Fatal(err)
	}
	// Once with a key that exists, so that each lock is looked at, and once without any.
	for _, others := range [][]*request{{acquire("text", "a"), acquire("endless", "a")}, nil} {
		suffix := fmt.Sprint(len(others))
		free, mine, twice := acquire("free"+suffix, "a"), acquire("mine"+suffix, "a"), acquire("mine"+suffix, "a")
		theirs := acquire("mine"+suffix, "b")
		batch := append([]*request{free, mine, twice, theirs}, others...)
		if n := sendTo(t, client, batch...); n != 1 {
			t.Errorf("%d calls, want all in one", n)
		}
		for _, r := range []*request{free, mine, twice} {
			if r.err != nil || r.n <= 0 {
				t.Errorf("%s for %s: %d, %v; want a token", r.key, r.args[0], r.n, r.err)
			}
		}
		if mine.n <= free.n || twice.n <= mine.n {
			t.Errorf("tokens %d, %d, %d do not rise", free.n, mine.n, twice.n)
		}
		if theirs.err != nil || theirs.n > -19_000 || theirs.n < -20_000 {
			t.Errorf("of a lock that is held: %d, %v; want the rest of its lease, negative", theirs.n, theirs.err)
		}
		if len(others) > 0 {
			if err := others[0].err; err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
				t.Errorf("of a key that is no lock: %v", err)
			}
			if others[1].err != nil || others[1].n != 0 {
				t.Errorf("of a lock without an end: %d, %v", others[1].n, others[1].err)
			}
		}
		next := acquire("next"+suffix, "a")
		sendTo(t, client, next)
		if next.n <= twice.n {
			t.Errorf("token %d after %d: the fence was not moved", next.n, twice.n)
		}
		given, foreign, gone := release("free"+suffix, "a"), release("mine"+suffix, "b"), release("nothing", "a")
		noLock := release("text", "a")
		sendTo(t, client, given, foreign, gone, noLock)
		if given.n != 1 || foreign.n != 0 || gone.n != 0 || noLock.err == nil {
			t.Errorf("released: %d, %d, %d, %v; want 1, 0, 0, an error", given.n, foreign.n, gone.n, noLock.err)
		}
		hold := &request{script: s.hold, load: true, key: "mine" + suffix, args: [3]any{"a", "3", "0"}}
		lost := &request{script: s.hold, load: true, key: "free" + suffix, args: [3]any{"a", "0", "20000"}}
		sendTo(t, client, hold, lost)
		if hold.n != 1 || lost.n != 0 {
			t.Errorf("held: %d, %d; want 1, 0", hold.n, lost.n)
		}
		if depth := client.HGet(t.Context(), "mine"+suffix, "a").Val(); depth != "3" {
			t.Errorf("depth %s", depth)
		}
	}
}

// TestWhatSharesACall: the same script, loaded or not, in the same hash slot.
func TestWhatSharesACall(t *testing.T) {
	s := newScripts()
	batch := []*request{
		{script: s.acquire, key: "1", fence: "x", args: [3]any{"a", 1}}, {script: s.release, key: "2", fence: "x", args: [3]any{"a", "c", "0"}},
		{script: s.acquire, key: "3", fence: "x", args: [3]any{"b", 2}}, {script: s.acquire, key: "4", fence: "y", args: [3]any{"a", 3}},
		{script: s.acquire, load: true, key: "5", fence: "x", args: [3]any{"a", 4}},
	}
	var got []string
	for _, c := range calls(batch) {
		var keys []string
		for _, r := range c.requests {
			keys = append(keys, r.key)
		}
		got = append(got, strings.Join(keys, "+"))
	}
	if want := "1+3 2 4 5"; strings.Join(got, " ") != want {
		t.Errorf("calls %v, want %s", got, want)
	}
}
