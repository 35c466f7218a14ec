// Package wait lets tests wait for a condition of a real server.
package wait

import (
	"testing"
	"time"
)

// limit is how long Until waits. It is shorter than the long leases and sessions of the lock tests: a lock that only its
// expiry frees is too late.
const limit = 15 * time.Second

const interval = 2 * time.Millisecond

// Until waits until the condition named what holds, and fails the test after 15 seconds.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Within(t, limit, what, holds)
}

// Within is Until with another limit.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(interval) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
