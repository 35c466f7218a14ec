package k6_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A negative control: shops that are wrong in one way each. The scripts have to tell.
func TestScriptsFindDefects(t *testing.T) {
	for name, defect := range map[string]struct {
		shop  *wrongShop
		finds string
	}{
		"none":                    {&wrongShop{}, ""},
		"more orders than units":  {&wrongShop{oversells: true}, "unaccounted"},
		"sold below zero":         {&wrongShop{oversells: true, admits: true}, "oversold"},
		"an order for each copy":  {&wrongShop{repeats: true}, "duplicates"},
		"refused with units left": {&wrongShop{miserly: true}, "undersold"},
		"fails":                   {&wrongShop{fails: true}, "unexpected"},
		"the audit says so":       {&wrongShop{auditFails: true}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defect.shop.orders = map[string]int{}
			server := httptest.NewServer(defect.shop)
			defer server.Close()
			r, status := play(t, "sale", "SECKILL_URL="+server.URL, "SECKILL_JWT_KEY=a key that no shop has, of 32 bytes", "ARRIVALS=40", "RATE=40", "EARLY=1", "USERS=40", "STOCK=10")
			if defect.finds == "" {
				if status != 0 || !r.OK {
					t.Errorf("exit status %d, %+v", status, r.Defects)
				}
				return
			}
			if status != thresholdsFailed || r.OK || r.Defects[defect.finds] == 0 {
				t.Errorf("exit status %d, %+v; want %s", status, r.Defects, defect.finds)
			}
		})
	}
}

// wrongShop is as much of a shop as the script sale asks for.
type wrongShop struct {
	oversells  bool // never says that it is sold out
	admits     bool // shows a stock below zero
	repeats    bool // gives each copy of a request an order of its own
	miserly    bool // refuses while one unit is left
	fails      bool // answers with errors of its own
	auditFails bool

	mu     sync.Mutex
	orders map[string]int // by request
	next   int            // the last order's id
	stock  int
}

func (s *wrongShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/api/v1/admin/vouchers":
		var voucher struct{ Stock int }
		_ = json.NewDecoder(r.Body).Decode(&voucher)
		s.stock = voucher.Stock
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"id":"1"}`)
	case r.URL.Path == "/api/v1/vouchers/1":
		left := s.stock - s.next
		if !s.admits {
			left = max(0, left)
		}
		_, _ = fmt.Fprintf(w, `{"total":%d,"stock":%d}`, s.stock, left)
	case r.URL.Path == "/api/v1/admin/audit":
		_, _ = fmt.Fprintf(w, `{"ok":true,"totals":{"oversold":0,"duplicates":0},"findings":[{"invariant":1,"check":"x","ok":%v}]}`, !s.auditFails)
	case r.Method == http.MethodGet:
		_, _ = fmt.Fprint(w, `{"orders":[]}`)
	default:
		s.place(w, r.Header.Get("Idempotency-Key"))
	}
}

func (s *wrongShop) place(w http.ResponseWriter, key string) {
	id, known := s.orders[key]
	switch {
	case s.fails:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(w, `{"code":"internal"}`)
	case known && !s.repeats:
		_, _ = fmt.Fprintf(w, `{"id":"%d"}`, id)
	case !s.oversells && s.next >= s.stock, s.miserly && s.next >= s.stock-1:
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprint(w, `{"code":"sold-out"}`)
	default:
		s.next++
		s.orders[key] = s.next
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"%d"}`, s.next)
	}
}
