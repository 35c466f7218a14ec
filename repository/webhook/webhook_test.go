package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// receiver answers every request with the next of its status codes; without one the connection fails.
type receiver struct {
	t       *testing.T
	answers []int
	keys    []string // Idempotency-Key of each request
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	var body struct{ Text string }
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || body.Text != "hello" || req.Header.Get("Content-Type") != "application/json" {
		r.t.Errorf("got %+v (%v)", body, err)
	}
	r.keys = append(r.keys, req.Header.Get("Idempotency-Key"))
	if len(r.answers) == 0 {
		return nil, errors.New("connection refused")
	}
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(r.answers[0])
	r.answers = r.answers[1:]
	return recorder.Result(), nil
}

func TestWebhook_Post(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answers  []int
		requests int
		took     time.Duration
		ok       bool
	}{
		{"accepted after two retries", []int{503, 429, 200}, 3, 3 * time.Second, true},
		{"refused for good", []int{400}, 1, 0, false},
		{"no answer", nil, 4, 7 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := New("http://receiver.example/hook")
				if err != nil {
					t.Fatal(err)
				}
				r := &receiver{t: t, answers: tt.answers}
				w.client.Transport = r
				start := time.Now()
				err = w.Post(t.Context(), "event-7", map[string]string{"text": "hello"})
				if (err == nil) != tt.ok || len(r.keys) != tt.requests || time.Since(start) != tt.took {
					t.Errorf("%v after %d requests in %v, want success %v after %d in %v", err, len(r.keys), time.Since(start), tt.ok, tt.requests, tt.took)
				}
				for _, key := range r.keys {
					if key != "event-7" {
						t.Errorf("a request carries the key %q, want event-7", key)
					}
				}
			})
		})
	}
}

func TestWebhook_PostWithoutKey(t *testing.T) {
	r := &receiver{t: t, answers: []int{204}}
	w := &Webhook{url: "http://receiver.example/hook", client: &http.Client{Transport: r}}
	if err := w.Post(t.Context(), "", map[string]string{"text": "hello"}); err != nil || r.keys[0] != "" {
		t.Errorf("posted with key %q (%v), want none", r.keys[0], err)
	}
}

func TestNew_RefusesAddress(t *testing.T) {
	for _, address := range []string{"", "nowhere", "ftp://a/b", "http://", "http://a b/"} {
		if _, err := New(address); err == nil {
			t.Errorf("accepted %q as an address", address)
		}
	}
}
