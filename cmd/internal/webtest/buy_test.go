package webtest

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"seckill/handler/token"
)

const (
	buyButton    = " .buy"
	firstOrder   = "#order-list > li"
	payButton    = firstOrder + " [id^=pay-]"
	cancelButton = firstOrder + " [id^=cancel-]"
)

func TestShop_BuyAndPay(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	p.click(ticket + buyButton)
	p.until(in("mine", ticket))
	p.until(in("pending", firstOrder))
	p.until(shows(firstOrder, "Dinner for two") + " && " + shows(firstOrder, "14:") + " && " + shows("#order-count", "1"))
	p.until(shows("#status", "You got it: Dinner for two. Pay within 15 minutes."))
	p.click(payButton)
	p.until(in("paid", firstOrder))
	p.until(shows("#status", "Dinner for two: Paid"))
	p.until(shows(ticket, "It is paid"))
	if got := s.totals(); got.Orders != 1 || got.Paid != 1 {
		t.Errorf("the database says %+v", got)
	}
	p.visit(s.url) // the guest is still the same
	p.until(in("paid", firstOrder) + " && " + in("mine", ticket))
}

// However often one clicks while the order is on its way, it is one request; and the second click of a double click pays
// nothing.
func TestShop_DoubleClickIsOneOrder(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	answer := make(chan struct{})
	s.breaks(func(r *http.Request) fault {
		if isOrder(r) {
			return fault{hold: answer}
		}
		return fault{}
	})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	p.do(chromedp.DoubleClick(chromedp.CSS(ticket + buyButton)))
	p.until(in("buying", ticket) + " && " + shows(ticket, "Buying"))
	p.do(chromedp.DoubleClick(chromedp.CSS(ticket + buyButton)))
	close(answer)
	p.until(in("mine", ticket))
	p.do(chromedp.DoubleClick(chromedp.CSS(ticket + buyButton)))
	p.until(in("pending", firstOrder))
	if sent := s.sent(); len(sent) != 1 {
		t.Errorf("orders were sent with the keys %v", sent)
	}
	if got := s.totals(); got.Orders != 1 || got.Paid != 0 {
		t.Errorf("the database says %+v", got)
	}
}

func TestShop_SoldOutWhileOpen(t *testing.T) {
	s := openShop(t)
	ticket, voucher := s.sell(offer{units: 1})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	other := s.user(7, token.User)
	taken := other.order(voucher)
	p.until(in("sold-out", ticket) + " && " + shows("#status", "Dinner for two: Sold out"))
	p.click(ticket + buyButton) // does nothing any more
	other.do(http.MethodPost, taken+"/cancel", nil)
	p.until(in("open", ticket) + " && " + shows("#status", "Dinner for two is available again."))
	p.click(ticket + buyButton)
	p.until(in("mine", ticket))
	if sent := s.sent(); len(sent) != 1 {
		t.Errorf("orders were sent with the keys %v", sent)
	}
}

// A click on a voucher that has sold out meanwhile shows "sold out".
func TestShop_SoldOutBeforeClick(t *testing.T) {
	s := openShop(t)
	ticket, voucher := s.sell(offer{units: 1})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	s.breaks(func(r *http.Request) fault {
		if r.URL.Path == "/api/v1/vouchers" {
			return fault{hold: never}
		}
		return fault{}
	})
	s.user(7, token.User).order(voucher)
	p.click(ticket + buyButton)
	p.until(in("sold-out", ticket) + " && " + shows("#status", "Sold out"))
	if got := s.totals(); got.Orders != 1 {
		t.Errorf("the database says %+v", got)
	}
}

func TestShop_AlreadyOrdered(t *testing.T) {
	s := openShop(t)
	ticket, voucher := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	s.breaks(func(r *http.Request) fault {
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/orders" {
			return fault{hold: never} // the page does not learn of it
		}
		return fault{}
	})
	(&user{s, value[string](p, `JSON.parse(localStorage.getItem('seckill.session')).token`)}).order(voucher)
	p.click(ticket + buyButton)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder) + " && " + shows("#status", "Dinner for two: Yours"))
	if got := s.totals(); got.Orders != 1 {
		t.Errorf("the database says %+v", got)
	}
}

// An answer that is lost is asked for again, with the same key: one order, however often.
func TestShop_LostAnswerIsResolved(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	s.breaks(func(r *http.Request) fault { return fault{lose: isOrder(r)} })
	p.click(ticket + buyButton)
	p.until(in("settling", ticket) + " && " + shows(ticket, "never ordering twice"))
	s.breaks(nil)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder))
	mustBeOneKey(t, s.sent(), 2)
	if got := s.totals(); got.Orders != 1 {
		t.Errorf("the database says %+v", got)
	}
}

// Also when the page was closed before the answer came.
func TestShop_LostAnswerIsResolvedByTheNextPage(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	s.breaks(func(r *http.Request) fault { return fault{lose: isOrder(r)} })
	p.click(ticket + buyButton)
	p.until(in("settling", ticket))
	p.visit(s.url)
	p.until(in("settling", ticket)) // the new page has taken it over
	s.breaks(nil)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder))
	p.until(`localStorage.getItem('seckill.attempts') === '{}'`) // nothing is left to settle
	mustBeOneKey(t, s.sent(), 3)
	if got := s.totals(); got.Orders != 1 {
		t.Errorf("the database says %+v", got)
	}
}

func mustBeOneKey(t *testing.T, keys []string, least int) {
	t.Helper()
	if slices.Sort(keys); len(keys) < least || keys[0] == "" || len(slices.Compact(keys)) != 1 {
		t.Errorf("orders were sent with the keys %q; want one, at least %d times", keys, least)
	}
}

// A shop that is too busy is asked again when it said, and not before.
func TestShop_BusyIsRetried(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	var sent []time.Time
	s.breaks(func(r *http.Request) fault {
		if !isOrder(r) {
			return fault{}
		}
		sent = append(sent, time.Now())
		return fault{answer: refusal(http.StatusServiceUnavailable, "busy")}
	})
	p.click(ticket + buyButton)
	p.until(in("waiting", ticket) + " && " + shows(ticket, "Busy, again in"))
	s.breaks(nil)
	p.until(in("mine", ticket))
	for i := 1; i < len(sent); i++ {
		if wait := sent[i].Sub(sent[i-1]); wait < 2*time.Second {
			t.Errorf("it was asked again after %s, although it had said to come back after 2 s", wait)
		}
	}
	mustBeOneKey(t, s.sent(), 2)
}

func TestShop_InProgressIsRetried(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	held, release := 0, make(chan struct{})
	s.breaks(func(r *http.Request) fault {
		switch {
		case !isOrder(r):
			return fault{}
		case held == 0:
			held++
			return fault{answer: refusal(http.StatusConflict, "in-progress")}
		}
		return fault{hold: release}
	})
	p.click(ticket + buyButton)
	p.until(in("in-progress", ticket) + " && " + shows(ticket, "Already being placed"))
	close(release)
	p.until(in("mine", ticket))
	mustBeOneKey(t, s.sent(), 2)
}

// What the shop refuses for a reason that the page does not know is shown, and may be tried again.
func TestShop_RefusalIsShown(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	s.breaks(func(r *http.Request) fault {
		if isOrder(r) {
			return fault{answer: refusal(http.StatusUnprocessableEntity, "invalid")}
		}
		return fault{}
	})
	p.click(ticket + buyButton)
	p.until(shows(ticket, "The shop refused: as the test wants it") + " && " + shows(ticket, "Try again"))
	s.breaks(nil)
	p.click(ticket + buyButton)
	p.until(in("mine", ticket))
}
