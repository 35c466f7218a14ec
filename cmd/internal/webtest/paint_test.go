package webtest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"seckill/handler/token"
)

// mostBytes is what the page may weigh in all, before compression.
const mostBytes = 60_000

func TestShop_PageIsSmall(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket) + " && document.readyState === 'complete'")
	var sizes map[string]struct{ Plain, Sent int }
	text := value[string](p, `JSON.stringify(Object.fromEntries(performance.getEntries()
	  .filter(e => e.decodedBodySize > 0 && !e.name.includes('/api/'))
	  .map(e => [e.name.replace(/.*\//, '/'), { Plain: e.decodedBodySize, Sent: e.encodedBodySize }])))`)
	if err := json.Unmarshal([]byte(text), &sizes); err != nil {
		t.Fatal(err)
	}
	plain, sent := 0, 0
	for _, size := range sizes {
		plain, sent = plain+size.Plain, sent+size.Sent
	}
	t.Logf("%d parts, %d bytes, %d as sent", len(sizes), plain, sent)
	if len(sizes) < 10 || plain > mostBytes || sent >= plain/2 {
		t.Errorf("%d parts of %d bytes in all, %d as sent: %v", len(sizes), plain, sent, sizes)
	}
	if foreign := value[[]string](p, `performance.getEntriesByType('resource').map(e => e.name).filter(name => !name.startsWith(location.origin))`); len(foreign) > 0 {
		t.Errorf("loaded from elsewhere: %q", foreign)
	}
}

// What is painted first stays where it is when the shop's answers come, however late.
func TestShop_LayoutIsStable(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	s.sell(offer{title: "Another one, whose title is so long that it does not fit into a single line of the ticket"})
	_, gone := s.sell(offer{units: 1, title: "Gone"})
	s.sell(offer{title: "Later", opensIn: 20 * time.Minute})
	s.user(7, token.User).order(gone)
	for name, how := range map[string]look{"desk": {}, "phone": {phone: true}, "Chinese": {language: "zh-CN"}} {
		t.Run(name, func(t *testing.T) {
			painted := make(chan struct{})
			s.breaks(func(r *http.Request) fault {
				if r.Method == http.MethodGet && r.URL.Path == "/api/v1/vouchers" {
					return fault{hold: painted}
				}
				return fault{}
			})
			p := open(t, s.url, how)
			p.until("performance.getEntriesByName('first-contentful-paint').length && document.querySelector('.blank')")
			close(painted)
			p.until(in("open", ticket) + " && document.querySelectorAll('[data-voucher]').length === 4")
			p.click(ticket + buyButton)
			p.until(in("mine", ticket) + " && " + in("pending", firstOrder))
			value[bool](p, "new Promise(painted => requestAnimationFrame(() => requestAnimationFrame(() => painted(true))))")
			if moved := value[float64](p, "jumps.reduce((sum, jump) => sum + jump.value, 0)"); moved > 0.01 {
				t.Errorf("the layout shifted by %.4f: %s", moved, value[string](p, "JSON.stringify(jumps)"))
			}
		})
	}
}

// The measure is of use only if it finds what jumps.
func TestLayoutShift_IsDetected(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	value[bool](p, `(() => { const e = document.createElement('p'); e.textContent = 'x'; document.querySelector('main').before(e); return true })()`)
	p.until("jumps.reduce((sum, jump) => sum + jump.value, 0) > 0.01")
}

// What is not there is a page for people, and a problem for programs.
func TestShop_UnknownPaths(t *testing.T) {
	s := openShop(t)
	for path, want := range map[string]string{
		"/nothing": "text/html; charset=utf-8", "/static/nothing.js": "text/html; charset=utf-8",
		"/api/nothing": "application/problem+json", "/api/v1/vouchers/x/y": "application/problem+json",
	} {
		response, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusNotFound || got != want {
			t.Errorf("%s: %d, %s", path, response.StatusCode, got)
		}
	}
}
