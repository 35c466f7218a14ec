package loadtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fakeShop answers as a shop does, with a map instead of everything. Faults are planted by request number.
type fakeShop struct {
	mu       sync.Mutex
	stock    int
	orders   map[string]string // user/key → order
	live     map[string]string // user → order
	closed   map[string]bool   // orders
	requests int               // to place an order
	fault    func(n int, w http.ResponseWriter) (answered bool)
	after    func(n int, w http.ResponseWriter) (answered bool) // after the order was placed
}

func newFakeShop(stock int) *fakeShop {
	return &fakeShop{stock: stock, orders: map[string]string{}, live: map[string]string{}, closed: map[string]bool{}}
}

func (f *fakeShop) start(t *testing.T) *Client {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	client, err := NewClient(server.URL, ClientOptions{Token: func(user int64) string { return fmt.Sprint(user) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close) // before the server, which would wait for its connections
	return client
}

func refuse(w http.ResponseWriter, status int, code string, more ...any) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	document := map[string]any{"status": status, "code": code, "detail": code}
	for i := 0; i < len(more); i += 2 {
		document[more[i].(string)] = more[i+1]
	}
	_ = json.NewEncoder(w).Encode(document)
}

func (f *fakeShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	user := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	switch {
	case r.Method == "POST" && r.URL.Path == "/api/v1/orders":
		f.place(w, r, user)
	case r.Method == "GET" && r.URL.Path == "/api/v1/orders":
		type row struct {
			ID        string `json:"id"`
			VoucherID string `json:"voucher_id"`
		}
		list := []row{}
		if id := f.live[user]; id != "" {
			list = append(list, row{id, "7"})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"orders": list})
	case len(path) == 3 && path[2] == "cancel" && f.live[user] == path[1]:
		f.stock++
		f.closed[path[1]] = true
		delete(f.live, user)
		fmt.Fprintf(w, `{"id":%q,"status":"closed"}`, path[1])
	case len(path) >= 2 && path[0] == "orders" && (f.live[user] == path[1] || f.closed[path[1]]):
		fmt.Fprintf(w, `{"id":%q,"status":"paid"}`, path[1])
	default:
		refuse(w, 404, "not-found")
	}
}

func (f *fakeShop) place(w http.ResponseWriter, r *http.Request, user string) {
	f.requests++
	n := f.requests
	if f.fault != nil && f.fault(n, w) {
		return
	}
	name := user + "/" + r.Header.Get("Idempotency-Key")
	id, replay := f.orders[name]
	switch {
	case replay && r.Header.Get("Idempotency-Key") != "":
		fmt.Fprintf(w, `{"id":%q,"user_id":%q}`, id, user)
		return
	case f.live[user] != "":
		refuse(w, 409, "already-ordered", "order", map[string]string{"id": f.live[user]})
		return
	case f.stock == 0:
		refuse(w, 409, "sold-out")
		return
	}
	f.stock--
	id = fmt.Sprint(1000 + n)
	f.orders[name], f.live[user] = id, id
	if f.after != nil && f.after(n, w) {
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":%q,"user_id":%q}`, id, user)
}

// hangUp drops the connection without an answer.
func hangUp(w http.ResponseWriter) bool {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		panic(err)
	}
	return true
}

// collector keeps entries.
type collector struct {
	mu      sync.Mutex
	entries []Entry
}

func (c *collector) add(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, *e)
}
