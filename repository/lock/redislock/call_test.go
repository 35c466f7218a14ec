package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/repotest/redistest"
)

// caller sends requests to a server in one batch.
type caller struct {
	scripts
	client *redis.Client
}

// newCaller has a server with one key that is no lock, and a lock that has no end.
func newCaller(t *testing.T) *caller {
	t.Helper()
	c := &caller{newScripts(), redistest.Start(t).Client()}
	if err := c.client.Set(t.Context(), "text", "no lock", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.client.HSet(t.Context(), "endless", "somebody", 1).Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *caller) take(key, owner string) *request {
	return &request{script: c.acquire, load: true, key: key, args: [3]any{owner, 20_000}}
}

func (c *caller) give(key, owner string) *request {
	return &request{script: c.release, load: true, key: key, args: [3]any{owner, channel(key), "0"}}
}

func (c *caller) keep(key, owner, depth, lease string) *request {
	return &request{script: c.hold, load: true, key: key, args: [3]any{owner, depth, lease}}
}

// send fails the test unless the batch is one call.
func (c *caller) send(t *testing.T, batch ...*request) {
	t.Helper()
	for _, r := range batch {
		r.fence, r.done = any(fenceKey), make(chan struct{})
	}
	if n := len(group(batch)); n != 1 {
		t.Fatalf("%d calls, want all in one", n)
	}
	l := &lane{client: c.client}
	defer l.drop()
	l.exec(batch)
	for _, r := range batch {
		<-r.done
	}
}

// TestACallTakesManyLocks: each gets the answer that it would have got alone, and a key that is no lock fails alone.
func TestACallTakesManyLocks(t *testing.T) {
	c := newCaller(t)
	text, endless := c.take("text", "a"), c.take("endless", "a")
	// Once with keys that exist, so that each lock is looked at, and once without any.
	for suffix, others := range map[string][]*request{" among others": {text, endless}, " alone": nil} {
		free, mine, twice, theirs := c.take("free"+suffix, "a"), c.take("mine"+suffix, "a"), c.take("mine"+suffix, "a"), c.take("mine"+suffix, "b")
		c.send(t, append([]*request{free, mine, twice, theirs}, others...)...)
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
		next := c.take("next"+suffix, "a")
		if c.send(t, next); next.n <= twice.n {
			t.Errorf("token %d after %d: the fence was not moved", next.n, twice.n)
		}
	}
	if text.err == nil || !strings.HasPrefix(text.err.Error(), "WRONGTYPE") {
		t.Errorf("of a key that is no lock: %v", text.err)
	}
	if endless.err != nil || endless.n != 0 {
		t.Errorf("of a lock without an end: %d, %v", endless.n, endless.err)
	}
}

// TestAFenceThatIsNoNumber is written over: it keeps nobody from a lock.
func TestAFenceThatIsNoNumber(t *testing.T) {
	c := newCaller(t)
	if err := c.client.Set(t.Context(), fenceKey, "junk", 0).Err(); err != nil {
		t.Fatal(err)
	}
	one, other := c.take("one", "a"), c.take("other", "a")
	if c.send(t, one, other); one.err != nil || other.n <= one.n {
		t.Errorf("%d (%v), %d (%v)", one.n, one.err, other.n, other.err)
	}
}

// TestACallKeepsAndGivesBackManyLocks: only to their owners.
func TestACallKeepsAndGivesBackManyLocks(t *testing.T) {
	c := newCaller(t)
	c.send(t, c.take("one", "a"), c.take("other", "a"))
	kept, foreign, gone, noLock := c.keep("one", "a", "3", "0"), c.keep("one", "b", "4", "0"), c.keep("nothing", "a", "0", "20000"), c.keep("text", "a", "0", "1")
	c.send(t, kept, foreign, gone, noLock)
	if kept.n != 1 || foreign.n != 0 || gone.n != 0 || noLock.err == nil {
		t.Errorf("kept: %d, %d, %d, %v; want 1, 0, 0, an error", kept.n, foreign.n, gone.n, noLock.err)
	}
	if depth := c.client.HGet(t.Context(), "one", "a").Val(); depth != "3" {
		t.Errorf("depth %s", depth)
	}
	given, foreign, gone, noLock := c.give("one", "a"), c.give("other", "b"), c.give("nothing", "a"), c.give("text", "a")
	c.send(t, given, foreign, gone, noLock)
	if given.n != 1 || foreign.n != 0 || gone.n != 0 || noLock.err == nil {
		t.Errorf("given back: %d, %d, %d, %v; want 1, 0, 0, an error", given.n, foreign.n, gone.n, noLock.err)
	}
	if n := c.client.Exists(t.Context(), "one", "other", "text").Val(); n != 2 {
		t.Errorf("%d keys are left, want the other lock and the text", n)
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
	for _, c := range group(batch) {
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

// asGuest returns a client of a user who may do what rules say (https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/).
func asGuest(t *testing.T, server *redistest.Server, rules ...any) *redis.Client {
	t.Helper()
	if err := server.Client().Do(t.Context(), append([]any{"acl", "setuser", "guest", "reset", "on", ">secret"}, rules...)...).Err(); err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(Config{Addrs: []string{server.Addr}, Username: "guest", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client.(*redis.Client)
}

// TestWhoMayNotPublish gives locks back all the same, all of them.
func TestWhoMayNotPublish(t *testing.T) {
	server := redistest.Start(t)
	c := &caller{newScripts(), asGuest(t, server, "~lock:*", "+@all")}
	c.send(t, c.take("lock:1", "a"), c.take("lock:fence:1", "a")) // the fence has to be among its keys
	one, other := c.give("lock:1", "a"), c.give("lock:fence:1", "a")
	if c.send(t, one, other); one.err != nil || other.err != nil || one.n+other.n != 2 {
		t.Errorf("given back: %d (%v), %d (%v)", one.n, one.err, other.n, other.err)
	}
}

// TestACallThatFailsForOneOfItsLocks: the others are asked about once more, each alone.
func TestACallThatFailsForOneOfItsLocks(t *testing.T) {
	server := redistest.Start(t)
	b := newBackend(asGuest(t, server, "~lock:*", "&*", "+@all"), Options{}.withDefaults())
	defer b.pipe.close()
	lanes := b.pipe.idle
	b.pipe.idle = nil // so that both wait for the same batch
	ask := func(key string) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := b.exchange(t.Context(), request{script: b.scripts.acquire, key: key, args: [3]any{"a", 1000}}, time.Now().Add(10*time.Second))
			done <- err
		}()
		return done
	}
	ours, forbidden := ask("lock:1"), ask("other:1")
	for waiting := 0; waiting < 2; time.Sleep(time.Millisecond) {
		b.pipe.mu.Lock()
		waiting = len(b.pipe.queue)
		b.pipe.mu.Unlock()
	}
	b.pipe.mu.Lock()
	b.pipe.idle = lanes[1:]
	b.pipe.mu.Unlock()
	go b.pipe.fly(lanes[0])
	if err := <-ours; err != nil {
		t.Errorf("of a lock that may be taken: %v", err)
	}
	if err := <-forbidden; err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("of a lock that may not be: %v", err)
	}
}

// TestAReplicaIsLeft: a release that a demoted master refuses drops the connection, as any error does that may be its own.
func TestAReplicaIsLeft(t *testing.T) {
	server := redistest.Start(t)
	c := &caller{newScripts(), server.Client()}
	c.send(t, c.take("lock:1", "a"))
	if err := c.client.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	l := &lane{client: c.client}
	defer l.drop()
	r := c.give("lock:1", "a")
	r.done = make(chan struct{})
	l.exec([]*request{r})
	if <-r.done; r.err == nil || !strings.Contains(r.err.Error(), "READONLY") {
		t.Fatalf("answered %d, %v", r.n, r.err)
	}
	if l.conn != nil {
		t.Error("the connection is kept")
	}
}
