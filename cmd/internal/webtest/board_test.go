package webtest

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"seckill/handler/token"
)

// reads waits for an element to have a text.
func (p *tab) reads(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%q)?.textContent.trim() === %q", selector, text))
}

// The board follows a sale to its end without a reload, in figures, words and charts.
func TestBoard_FollowsASale(t *testing.T) {
	const units = 40
	s := openShop(t)
	_, voucher := s.sell(offer{title: "Dinner for two", units: units})
	p := open(t, s.url+"/board", look{script: `
	  window.shown = new Set()
	  addEventListener('DOMContentLoaded', () => new MutationObserver(() =>
	    shown.add(document.querySelector('#left').textContent)).observe(document.querySelector('#left'), { childList: true, characterData: true, subtree: true }))`})
	p.reads("#link", "live")
	p.reads("#title", "Dinner for two")
	p.reads("#left", fmt.Sprint(units))
	blank := value[int](p, inked)
	for unit := range units {
		s.user(int64(100+unit), token.User).order(voucher)
		if unit%10 == 9 {
			p.until(fmt.Sprintf("+document.querySelector('#left').textContent <= %d", units-unit-1))
		}
	}
	p.reads("#left", "0")
	p.reads("#state", "sold out")
	p.reads("#tiles dd", fmt.Sprint(units))
	p.until("document.querySelector('#events').textContent.includes('sold out: Dinner for two')")
	p.until(fmt.Sprintf("%s > %d", inked, blank+100))
	p.click("summary")
	p.until(fmt.Sprintf("[...document.querySelectorAll('#figures tr')].some(row => row.textContent === 'placed%d')", units))
	weight := value[int](p, `performance.getEntries().filter(e => !e.name.includes('/api/')).reduce((sum, e) => sum + (e.decodedBodySize ?? 0), 0)`)
	if weight < 20_000 || weight > mostBytes {
		t.Errorf("the page weighs %d bytes", weight)
	}
	if shown := value[int](p, "shown.size"); shown < 5 {
		t.Errorf("of %d units sold, %d readings were seen", units, shown)
	}
}

// inked counts the points of the first curve that have a colour.
const inked = `(() => {
  const chart = document.querySelector('#charts canvas')
  const copy = new OffscreenCanvas(chart.width, chart.height).getContext('2d', { willReadFrequently: true })
  copy.drawImage(chart, 0, 0)
  return copy.getImageData(0, 0, chart.width, chart.height).data.filter((v, i) => i % 4 === 3 && v > 0).length
})()`

// A stream that breaks is taken up again where it was; one that is refused says why.
func TestBoard_Reconnects(t *testing.T) {
	s := openShop(t)
	_, voucher := s.sell(offer{title: "First"})
	var mu sync.Mutex
	var ids []string
	var full atomic.Bool
	s.breaks(func(r *http.Request) fault {
		if !strings.HasSuffix(r.URL.Path, "/board/stream") {
			return fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, r.Header.Get("Last-Event-ID"))
		if full.Load() {
			return fault{answer: refusal(http.StatusServiceUnavailable, "busy")}
		}
		return fault{}
	})
	front := breakable(t, s.url)
	p := open(t, front.URL+"/board", look{})
	p.reads("#left", "5")
	full.Store(true)
	front.CloseClientConnections()
	p.reads("#link", "too many viewers")
	s.user(7, token.User).order(voucher)
	full.Store(false)
	p.reads("#link", "live")
	p.reads("#left", "4")
	mu.Lock()
	defer mu.Unlock()
	if len(ids) < 3 || ids[0] != "" || ids[len(ids)-1] == "" {
		t.Errorf("the streams were asked for with %q", ids)
	}
}

// breakable is a front whose connections can be cut.
func breakable(t *testing.T, url string) *httptest.Server {
	t.Helper()
	target, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // of what is cut
	})
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front
}

func TestBoard_ForAdmins(t *testing.T) {
	s := openShop(t)
	s.sell(offer{title: "Secret"})
	s.breaks(func(r *http.Request) fault {
		if strings.HasSuffix(r.URL.Path, "/board/stream") && r.Header.Get("Authorization") != "Bearer "+s.admin.token {
			return fault{answer: refusal(http.StatusUnauthorized, "unauthenticated")}
		}
		return fault{}
	})
	p := open(t, s.url+"/board", look{still: true})
	p.until("!document.querySelector('#token-form').hidden")
	p.accessible("without a token")
	p.do(chromedp.SendKeys(chromedp.ID("token"), s.admin.token+"\r"))
	p.reads("#title", "Secret")
	p.until("document.querySelector('#token-form').hidden")
	p.visit(s.url + "/board") // the tab remembers it
	p.reads("#title", "Secret")
}

func TestBoard_Accessible(t *testing.T) {
	s := openShop(t)
	_, gone := s.sell(offer{title: strings.Repeat("A title as long as titles get to be ", 3), units: 1})
	s.user(7, token.User).order(gone)
	for name, how := range map[string]look{
		"desk, light, English": {}, "phone, dark, English": {phone: true, dark: true},
		"desk, dark, Chinese": {dark: true, language: "zh-CN"}, "phone, light, Chinese": {phone: true, language: "zh-CN"},
	} {
		t.Run(name, func(t *testing.T) {
			how.still = true
			p := open(t, s.url+"/board", how)
			state, other := "sold out", "已售罄"
			if how.language != "" {
				state, other = other, state
			}
			p.reads("#state", state)
			p.until("document.querySelectorAll('#instances tbody tr').length === 1 && document.querySelectorAll('#events li').length > 0")
			p.click("summary")
			p.until("document.querySelectorAll('#figures tr').length > 20")
			p.accessible("of a sale that is over")
			p.click("[data-language]")
			p.reads("#state", other)
		})
	}
}
