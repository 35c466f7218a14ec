package outbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

// Clients that lost a broker at the same moment do not return at the same moment.
func TestBackoff_SpreadsClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, attempts = 50, 6
		var mu sync.Mutex
		arrivals := map[time.Duration]int{} // by windows of 100 ms
		began := time.Now()
		var running sync.WaitGroup
		for range clients {
			running.Go(func() {
				failures := 0
				outbox.Backoff{}.Retry(t.Context(), func(context.Context) error {
					if failures == attempts {
						return nil
					}
					return errors.New("unreachable")
				}, func(error) { failures++ })
				mu.Lock()
				defer mu.Unlock()
				arrivals[time.Since(began)/(100*time.Millisecond)]++
			})
		}
		running.Wait()
		for at, n := range arrivals {
			if n > clients/4 {
				t.Errorf("%d of %d clients arrive within 100 ms, %v after they lost the broker", n, clients, at*100*time.Millisecond)
			}
		}
	})
}

func TestBackoff_RetryUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("unreachable")
		attempts, failures := 0, 0
		start := time.Now()
		ok := (outbox.Backoff{First: time.Second, Longest: 4 * time.Second}).Retry(t.Context(), func(context.Context) error {
			if attempts++; attempts <= 5 {
				return failure
			}
			return nil
		}, func(err error) {
			if failures++; !errors.Is(err, failure) {
				t.Errorf("reported %v", err)
			}
		})
		if took, longest := time.Since(start), (1+2+4+4+4)*time.Second; !ok || failures != 5 || took < longest/2 || took > longest {
			t.Errorf("%v after %d failures in %v, want success after 5 within %v", ok, failures, took, longest)
		}
	})
}

// An attempt that was connected for a while starts the pauses again, and the end of the context ends the wait.
func TestBackoff_RetryStartsAgainAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		failed := time.Now()
		ok := (outbox.Backoff{First: time.Second, Longest: time.Minute}).Retry(ctx, func(ctx context.Context) error {
			if pause := time.Since(failed); pause > time.Second {
				t.Errorf("a pause of %v, want one second at most", pause)
			}
			select {
			case <-time.After(2 * time.Minute):
			case <-ctx.Done():
			}
			return errors.New("connection lost")
		}, func(error) { failed = time.Now() })
		if ok {
			t.Error("succeeded")
		}
	})
}
