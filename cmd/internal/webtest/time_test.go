package webtest

import (
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"
)

// wrongClock sets the browser's clock an hour ahead, and keeps the right time as realNow.
const wrongClock = `
  const Right = Date
  window.realNow = () => Right.now()
  window.Date = class extends Right {
    constructor(...parts) { parts.length ? super(...parts) : super(Right.now() + 3_600_000) }
    static now() { return Right.now() + 3_600_000 }
  }`

// said records what screen readers announce.
const said = `
  window.said = []
  addEventListener('DOMContentLoaded', () => {
    const region = document.getElementById('status')
    new MutationObserver(() => { if (region.textContent) said.push(region.textContent) }).observe(region, { childList: true })
  })`

// A sale opens by the shop's clock, whatever the browser's says; and the countdown is not read out.
func TestCountdown_Opening(t *testing.T) {
	s := openShop(t)
	ticket, voucher := s.sell(offer{opensIn: 50 * time.Minute})
	p := open(t, s.url, look{script: wrongClock + said})
	p.until(in("soon", ticket) + " && " + shows(ticket, "Opens in"))
	timer := value[string](p, `document.querySelector('`+ticket+` .timer').textContent`)
	if !regexp.MustCompile(`^(49|50):\d\d$`).MatchString(timer) {
		t.Errorf("50 minutes before the opening the countdown says %q", timer)
	}
	p.until(`document.querySelector('` + ticket + ` .timer').textContent !== '` + timer + `'`)
	p.click(ticket + buyButton)
	if sent := s.sent(); len(sent) != 0 {
		t.Errorf("orders were sent before the opening: %v", sent)
	}
	value[bool](p, `new MutationObserver(() => { window.openedAt ??= realNow() })
	  .observe(document.querySelector('`+ticket+`'), { attributes: true, attributeFilter: ['data-state'] }), true`)
	opening := time.Now().Add(6 * time.Second).UTC()
	s.admin.do(http.MethodPatch, "/api/v1/admin/vouchers/"+voucher, map[string]any{"starts_at": opening})
	p.until(in("open", ticket))
	early := opening.Sub(time.UnixMilli(int64(value[float64](p, "openedAt"))))
	if early > time.Second { // half of the slowest round trip may be missing
		t.Errorf("the page opened the sale %s early", early)
	}
	p.click(ticket + buyButton)
	p.until(in("mine", ticket))
	p.until("said.join().includes('You got it')")
	all := regexp.MustCompile(`^(Dinner for two opens in \d+ seconds\. )?Dinner for two is open\. You got it: Dinner for two\. Pay within 15 minutes\.$`)
	if words := value[string](p, "said.join(' ')"); !all.MatchString(words) {
		t.Errorf("screen readers were told %q", words)
	}
}

// Who clicks when the sale is open here but not yet there, is served at the opening, with the same request.
func TestCountdown_EarlyClick(t *testing.T) {
	s := openShop(t)
	ticket, voucher := s.sell(offer{})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	later := s.admin.do(http.MethodGet, "/api/v1/vouchers/"+voucher, nil)
	opening := make(chan time.Time, 1)
	s.breaks(func(r *http.Request) fault {
		if !isOrder(r) || len(opening) > 0 {
			return fault{}
		}
		now := time.Now().UTC()
		opening <- now.Add(2 * time.Second)
		later["server_time"], later["starts_at"] = now, now.Add(2*time.Second)
		return fault{answer: refusal(http.StatusConflict, "sale-not-started", map[string]any{"voucher": later})}
	})
	value[bool](p, `window.states = [], new MutationObserver(changes => states.push(changes[0].target.dataset.state))
	  .observe(document.querySelector('`+ticket+`'), { attributes: true, attributeFilter: ['data-state'] }), true`)
	p.click(ticket + buyButton)
	p.until(in("mine", ticket))
	if states := value[[]string](p, "states"); !slices.Contains(states, "opening") {
		t.Errorf("the ticket never said that the sale is opening: %q", states)
	}
	if early := time.Until(<-opening); early > 0 {
		t.Errorf("the order was sent again %s before the opening", early)
	}
	mustBeOneKey(t, s.sent(), 2)
	if got := s.totals(); got.Orders != 1 {
		t.Errorf("the database says %+v", got)
	}
}

// An order that is not paid in time is closed, the page shows it without a reload, and its unit can be bought again.
func TestCountdown_Expiry(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{units: 1, paySeconds: 2})
	p := open(t, s.url, look{script: said})
	p.until(in("open", ticket))
	p.click(ticket + buyButton)
	p.until(in("expired", firstOrder) + " && " + shows(firstOrder, "Expired"))
	p.until(`said.some(words => words.includes('Dinner for two: Expired'))`)
	p.until(`document.querySelector('` + payButton + `').checkVisibility() === false`)
	p.until(in("open", ticket))
	if got := s.totals(); got.Closed != 1 || got.Live != 0 {
		t.Errorf("the database says %+v", got)
	}
}
