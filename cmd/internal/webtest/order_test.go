package webtest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"seckill/handler/token"
)

// bought is a page whose guest has just bought the voucher.
func bought(t *testing.T, s *shop, ticket string, how look) *tab {
	t.Helper()
	p := open(t, s.url, how)
	p.until(in("open", ticket))
	p.click(ticket + buyButton)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder))
	return p
}

func TestOrder_CancelReturnsTheUnit(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{units: 1})
	p := bought(t, s, ticket, look{})
	p.click(cancelButton)
	p.until("document.querySelector('#sure').open && " + shows("#sure", "Dinner for two"))
	p.click("#sure-no")
	p.until("!document.querySelector('#sure').open && " + in("pending", firstOrder))
	if got := s.totals(); got.Closed != 0 {
		t.Errorf("the order was cancelled although its buyer kept it: %+v", got)
	}
	p.click(cancelButton)
	p.until("document.querySelector('#sure').open")
	p.click("#sure-yes")
	p.until(in("cancelled", firstOrder) + " && " + shows("#status", "Dinner for two: Cancelled"))
	p.until(in("open", ticket))
	if got := s.totals(); got.Closed != 1 || got.Live != 0 {
		t.Errorf("the database says %+v", got)
	}
	p.click(ticket + buyButton)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder) + " && document.querySelectorAll('#order-list > li').length === 2")
}

// A payment whose answer is lost is sent again, and is one payment.
func TestOrder_LostPaymentIsResolved(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := bought(t, s, ticket, look{})
	payments := make(chan string, 100)
	s.breaks(func(r *http.Request) fault {
		if !strings.HasSuffix(r.URL.Path, "/pay") {
			return fault{}
		}
		payments <- r.URL.Path
		return fault{lose: len(payments) == 1}
	})
	p.click(payButton)
	p.until(in("paid", firstOrder))
	if n := len(payments); n < 2 {
		t.Errorf("the payment was sent %d times", n)
	}
	if got := s.totals(); got.Paid != 1 || got.RefundsDue != 0 {
		t.Errorf("the database says %+v", got)
	}
}

// What was done elsewhere meanwhile is shown, and is no error.
func TestOrder_PayAfterCancelElsewhere(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := bought(t, s, ticket, look{})
	guest := &user{s, value[string](p, `JSON.parse(localStorage.getItem('seckill.session')).token`)}
	order := value[string](p, `document.querySelector('`+firstOrder+`').dataset.order`)
	guest.do(http.MethodPost, "/api/v1/orders/"+order+"/cancel", nil)
	p.click(payButton)
	p.until(in("cancelled", firstOrder))
	if got := s.totals(); got.Paid != 0 || got.Closed != 1 {
		t.Errorf("the database says %+v", got)
	}
}

// Without a network the page says so, waits, and continues automatically.
func TestShop_Offline(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	call(p, network.Enable, network.EnableParams{})
	offline := func(off bool) {
		call(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: off, DownloadThroughput: -1, UploadThroughput: -1}},
		})
		call(p, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: off, DownloadThroughput: -1, UploadThroughput: -1})
	}
	offline(true)
	p.click(ticket + buyButton)
	p.until(in("offline", ticket) + " && " + shows(ticket, "No connection"))
	p.until(shows("#notice", "The shop does not answer"))
	offline(false)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder) + " && document.querySelector('#notice').hidden")
	if got := s.totals(); got.Orders != 1 {
		t.Errorf("the database says %+v", got)
	}
}

// A shop without guests asks for a token. The token is forgotten with the tab, and each kind of wrong token has its message.
func TestSession_Token(t *testing.T) {
	s := openShop(t)
	s.breaks(func(r *http.Request) fault {
		if r.URL.Path == "/api/v1/session/guest" {
			return fault{answer: refusal(http.StatusNotFound, "not-found")}
		}
		return fault{}
	})
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("sign-in", ticket) + " && " + shows(ticket, "Enter a token to buy") + " && " + shows("#who", "no guests"))
	p.click(ticket + buyButton)
	p.until("document.activeElement.id === 'token'")
	p.do(chromedp.KeyEvent("nonsense\r"))
	p.until(shows("#token-wrong", "This is not a token.") + " && document.querySelector('#token').getAttribute('aria-invalid') === 'true'")
	p.do(chromedp.SetValue(chromedp.ID("token"), s.user(42, token.User).token))
	p.do(chromedp.KeyEvent("\r"))
	p.until(in("open", ticket) + " && " + shows("#who", "You are user 42"))
	outlives := func(when string) {
		t.Helper()
		if value[bool](p, `JSON.stringify(localStorage).includes('eyJ')`) {
			t.Errorf("the token outlives its tab, %s", when)
		}
	}
	outlives("when it was entered")
	s.breaks(func(r *http.Request) fault { return fault{lose: isOrder(r)} })
	p.click(ticket + buyButton)
	p.until(in("settling", ticket))
	outlives("while an order is settled")
	s.breaks(nil)
	p.until(in("mine", ticket))
}

// A guest whose session has expired sees a message, and is a new guest at the next try.
func TestSession_Ends(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket) + " && " + shows("#who", "You are guest"))
	refused := false
	s.breaks(func(r *http.Request) fault {
		if !isOrder(r) || refused {
			return fault{}
		}
		refused = true
		return fault{answer: refusal(http.StatusUnauthorized, "unauthenticated")}
	})
	before := value[string](p, `localStorage.getItem('seckill.session')`)
	p.click(ticket + buyButton)
	p.until(shows(ticket, "Your session had ended. Please try again."))
	p.click(ticket + buyButton)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder))
	if after := value[string](p, `localStorage.getItem('seckill.session')`); after == before {
		t.Error("the guest is still the same")
	}
}
