package redislock

import (
	"testing"

	"seckill/repository/repotest/redistest"
)

// FuzzSlot compares with what a real cluster node says, for the seeds in a plain test run.
func FuzzSlot(f *testing.F) {
	for _, key := range []string{"", "123456789", "foo{bar}baz", "foo{}{bar}", "foo{{bar}}zap", "{", "}{", "a{b", "订单{用户}"} {
		f.Add(key)
	}
	look := redistest.Client(f, redistest.StartCluster(f)[0])
	fences := &fences{cluster: true}
	f.Fuzz(func(t *testing.T, key string) {
		want, err := look.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := slotOf(key); int64(got) != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
		if fence := fences.of(key); slotOf(fence) != slotOf(key) {
			t.Errorf("the fence %q of %q is in another slot", fence, key)
		}
	})
}

func TestFences_OfASingleServer(t *testing.T) {
	f := new(fences)
	if a, b := f.of("a"), f.of("b"); a != b || a != fenceKey {
		t.Errorf("fences %v and %v", a, b)
	}
}
