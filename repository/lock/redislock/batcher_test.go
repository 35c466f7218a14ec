package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/repotest/redistest"
)

// scriptRig runs scripts on a server in batches.
type scriptRig struct {
	client *redis.Client
}

// newScriptRig has a server with one key that is not a lock, and a lock whose lease has no end.
func newScriptRig(t *testing.T) *scriptRig {
	t.Helper()
	r := &scriptRig{redistest.Start(t).Client()}
	if err := r.client.Set(t.Context(), "text", "no lock", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.client.HSet(t.Context(), "endless", "somebody", 1).Err(); err != nil {
		t.Fatal(err)
	}
	return r
}

func newCall(script *redis.Script, keys []string, args ...any) *scriptCall {
	return &scriptCall{script: script, keys: keys, args: args, load: true, done: make(chan struct{})}
}

func acquireCall(key, owner string) *scriptCall {
	return newCall(acquireScript, []string{key, fenceKey}, owner, 20_000)
}

func renewCall(key, owner string, depth, lease int) *scriptCall {
	return newCall(updateScript, []string{key}, owner, depth, lease)
}

func releaseCall(key, owner string) *scriptCall {
	return newCall(releaseScript, []string{key}, owner, channel(key), "0")
}

// send sends one batch and waits for its results.
func (r *scriptRig) send(batch ...*scriptCall) {
	newBatcher(r.client).send(batch)
	for _, call := range batch {
		<-call.done
	}
}

func TestScripts_Acquire(t *testing.T) {
	r := newScriptRig(t)
	free, mine, again, theirs := acquireCall("free", "a"), acquireCall("mine", "a"), acquireCall("mine", "a"), acquireCall("mine", "b")
	text, endless := acquireCall("text", "a"), acquireCall("endless", "a")
	r.send(free, text, mine, again, theirs, endless)
	for _, call := range []*scriptCall{free, mine, again} {
		if call.err != nil || call.value <= 0 {
			t.Errorf("%s for %s: %d, %v; want a token", call.keys[0], call.args[0], call.value, call.err)
		}
	}
	if mine.value <= free.value || again.value <= mine.value {
		t.Errorf("tokens %d, %d, %d do not rise", free.value, mine.value, again.value)
	}
	if theirs.err != nil || theirs.value > -19_000 || theirs.value < -20_000 {
		t.Errorf("a lock that is held: %d, %v; want the rest of its lease, negative", theirs.value, theirs.err)
	}
	if text.err == nil || !strings.HasPrefix(text.err.Error(), "WRONGTYPE") {
		t.Errorf("a key that is not a lock: %v", text.err)
	}
	if endless.err != nil || endless.value != 0 {
		t.Errorf("a lock without an end: %d, %v", endless.value, endless.err)
	}
}

func TestScripts_TokensFollowTheFence(t *testing.T) {
	r := newScriptRig(t)
	const future = 1 << 52 // the clock went back since
	if err := r.client.Set(t.Context(), fenceKey, future, 0).Err(); err != nil {
		t.Fatal(err)
	}
	one, other := acquireCall("one", "a"), acquireCall("other", "a")
	if r.send(one, other); one.value != future+1 || other.value != future+2 {
		t.Errorf("tokens %d (%v), %d (%v)", one.value, one.err, other.value, other.err)
	}
}

func TestScripts_FenceThatIsNoNumberIsOverwritten(t *testing.T) {
	r := newScriptRig(t)
	if err := r.client.Set(t.Context(), fenceKey, "junk", 0).Err(); err != nil {
		t.Fatal(err)
	}
	one, other := acquireCall("one", "a"), acquireCall("other", "a")
	if r.send(one, other); one.err != nil || other.value <= one.value {
		t.Errorf("%d (%v), %d (%v)", one.value, one.err, other.value, other.err)
	}
}

func TestScripts_RenewAndReleaseOnlyForTheOwner(t *testing.T) {
	r := newScriptRig(t)
	r.send(acquireCall("one", "a"), acquireCall("other", "a"))
	own, foreign, gone, noLock := renewCall("one", "a", 3, 0), renewCall("one", "b", 4, 0), renewCall("nothing", "a", 0, 20000), renewCall("text", "a", 0, 1)
	r.send(own, foreign, gone, noLock)
	if own.value != 1 || foreign.value != 0 || gone.value != 0 || noLock.err == nil {
		t.Errorf("renewed: %d, %d, %d, %v; want 1, 0, 0, an error", own.value, foreign.value, gone.value, noLock.err)
	}
	if depth := r.client.HGet(t.Context(), "one", "a").Val(); depth != "3" {
		t.Errorf("depth %s", depth)
	}
	own, foreign, gone, noLock = releaseCall("one", "a"), releaseCall("other", "b"), releaseCall("nothing", "a"), releaseCall("text", "a")
	r.send(own, foreign, gone, noLock)
	if own.value != 1 || foreign.value != 0 || gone.value != 0 || noLock.err == nil {
		t.Errorf("released: %d, %d, %d, %v; want 1, 0, 0, an error", own.value, foreign.value, gone.value, noLock.err)
	}
	if n := r.client.Exists(t.Context(), "one", "other", "text").Val(); n != 2 {
		t.Errorf("%d keys are left, want the other lock and the text", n)
	}
}

// asGuest returns a client of a user with the given ACL rules (https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/).
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

func TestScripts_ReleaseWithoutPermissionToPublish(t *testing.T) {
	r := &scriptRig{asGuest(t, redistest.Start(t), "~lock:*", "+@all")}
	r.send(acquireCall("lock:1", "a"))
	release := releaseCall("lock:1", "a")
	if r.send(release); release.err != nil || release.value != 1 {
		t.Errorf("released: %d (%v)", release.value, release.err)
	}
}

// TestBatcher_ErrorsBelongToOneLock puts a lock that may be taken and one that may not into the same batch.
func TestBatcher_ErrorsBelongToOneLock(t *testing.T) {
	b := newBatcher(asGuest(t, redistest.Start(t), "~lock:*", "&*", "+@all"))
	b.idle = 0 // so that both wait for the same batch
	ours, forbidden := acquireCall("lock:1", "a"), acquireCall("other:1", "a")
	deadline := time.Now().Add(10 * time.Second)
	errs := make(chan error)
	for _, call := range []*scriptCall{ours, forbidden} {
		go func() {
			_, err := b.do(t.Context(), call, deadline)
			errs <- err
		}()
	}
	for waiting := 0; waiting < 2; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		waiting = len(b.queue)
		b.mu.Unlock()
	}
	go b.work()
	<-errs
	<-errs
	if ours.err != nil || ours.value <= 0 {
		t.Errorf("a lock that may be taken: %d, %v", ours.value, ours.err)
	}
	if forbidden.err == nil || !strings.Contains(forbidden.err.Error(), "NOPERM") {
		t.Errorf("a lock that may not be taken: %v", forbidden.err)
	}
}

// TestBatcher_LeavesADemotedMaster: the answer READONLY ends the connection, so that the next one leads to the new master.
func TestBatcher_LeavesADemotedMaster(t *testing.T) {
	server := redistest.Start(t)
	r := &scriptRig{server.Client()}
	r.send(acquireCall("lock:1", "a"))
	if err := server.Client().Do(t.Context(), "replicaof", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	look := server.Client()
	connections := func() (n string) {
		_, after, _ := strings.Cut(look.Info(t.Context(), "stats").Val(), "total_connections_received:")
		n, _, _ = strings.Cut(after, "\r")
		return n
	}
	before := connections()
	for range 2 { // the second call needs a new connection
		call := releaseCall("lock:1", "a")
		if r.send(call); call.err == nil || !strings.Contains(call.err.Error(), "READONLY") {
			t.Fatalf("answered %d, %v", call.value, call.err)
		}
	}
	if connections() == before {
		t.Error("the connection was kept")
	}
}
