package loadtest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestClient_Outcomes(t *testing.T) {
	for _, c := range []struct {
		status  int
		body    string
		outcome Outcome
		class   Class
		order   string
		key     string
	}{
		{201, `{"id":"12","status":"pending"}`, Placed, Accepted, "12", ""},
		{200, `{"status":"paid","id":"12"}`, Replayed, Accepted, "12", ""}, // the order of fields is not guaranteed
		{201, `{"id":""}`, Unexpected, Failed, "", ""},
		{201, `nonsense`, Unexpected, Failed, "", ""},
		{204, ``, Unexpected, Failed, "", ""},
		{409, `{"code":"sold-out","status":409}`, "sold-out", Refused, "", ""},
		{409, `{"code":"already-ordered","order":{"id":"9"}}`, "already-ordered", Refused, "9", ""},
		{409, `{"code":"in-progress"}`, "in-progress", Refused, "", ""},
		{422, `{"code":"invalid"}`, "invalid", Refused, "", ""},
		{429, `{"code":"rate-limited"}`, "rate-limited", Refused, "", ""},
		{503, `{"code":"busy"}`, "busy", Refused, "", ""},
		{503, `{"code":"outcome-unknown","request_id":"5"}`, "outcome-unknown", Unknown, "", "5"},
		{500, `{"code":"internal"}`, "internal", Failed, "", ""},
		{502, `<html>Bad Gateway</html>`, Gateway, Unknown, "", ""},
		{504, ``, Gateway, Unknown, "", ""},
		{403, `<html>no</html>`, Unexpected, Failed, "", ""},
	} {
		t.Run(fmt.Sprint(c.status, c.body), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			defer server.Close()
			client, err := NewClient(server.URL, ClientOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for range 2 { // the second time from memory
				a := client.Place(1, "7", "k")
				if a.Outcome != c.outcome || a.Outcome.Class() != c.class || a.Order != c.order || a.RequestID != c.key || a.Status != c.status {
					t.Errorf("got %+v of class %s", a, a.Outcome.Class())
				}
			}
		})
	}
}

func TestClient_Requests(t *testing.T) {
	got := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 100)
		n, _ := r.Body.Read(body)
		r.Header.Set("Body", string(body[:n]))
		got <- r
		w.WriteHeader(201)
		fmt.Fprint(w, `{"id":"1"}`)
	}))
	defer server.Close()
	client, err := NewClient(server.URL+"/", ClientOptions{Token: func(user int64) string { return fmt.Sprintf("token-of-%d", user) }})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.Place(42, "7340239048704001", "a-key")
	r := <-got
	for header, want := range map[string]string{
		"Authorization": "Bearer token-of-42", "Idempotency-Key": "a-key", "Content-Type": "application/json", "Body": `{"voucher_id":"7340239048704001"}`,
	} {
		if r.Header.Get(header) != want {
			t.Errorf("%s: %q, want %q", header, r.Header.Get(header), want)
		}
	}
	if r.Method != "POST" || r.URL.Path != "/api/v1/orders" {
		t.Errorf("%s %s", r.Method, r.URL.Path)
	}
	client.Place(42, "7", "")
	if r := <-got; r.Header["Idempotency-Key"] != nil {
		t.Errorf("a request without a key was sent with %q", r.Header["Idempotency-Key"])
	}
}

func TestClient_Failures(t *testing.T) {
	release := make(chan struct{})
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Idempotency-Key") == "slow" {
			<-release
			return
		}
		hangUp(w)
	}))
	defer server.Close()
	defer close(release)
	client, err := NewClient(server.URL, ClientOptions{Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if a := client.Place(1, "7", "dropped"); a.Outcome != Broken || a.Err == nil || a.Outcome.Class() != Unknown {
		t.Errorf("a dropped connection: %+v", a)
	}
	if requests.Load() != 1 {
		t.Errorf("the request was sent %d times: a repeat was hidden", requests.Load())
	}
	if a := client.Place(1, "7", "slow"); a.Outcome != Timeout || a.Outcome.Class() != Unknown {
		t.Errorf("no answer: %+v", a)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	nobody, err := NewClient("http://"+listener.Addr().String(), ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a := nobody.Place(1, "7", ""); a.Outcome != Unreachable || a.Outcome.Class() != Failed {
		t.Errorf("nobody there: %+v", a)
	}
}

func TestClient_Abort(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	defer server.Close()
	defer close(release)
	client, err := NewClient(server.URL, ClientOptions{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer := make(chan Answer)
	go func() { answer <- client.Place(1, "7", "k") }()
	<-arrived
	client.Abort()
	if a := <-answer; a.Outcome.Class() != Unknown {
		t.Errorf("an aborted request: %+v", a)
	}
}

func TestClient_InvalidURL(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:8080", "ftp://host", "http://", "http://a b/"} {
		if _, err := NewClient(url, ClientOptions{}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}
