package webtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"seckill/handler/token"
)

//go:embed access.js
var accessChecks string

// accessible checks the page as it is now: by access.js, and that everything that can be used has a name where the
// browser tells it to screen readers.
func (p *tab) accessible(when string) {
	p.t.Helper()
	for _, complaint := range append(value[[]string](p, accessChecks), p.nameless()...) {
		p.t.Errorf("%s: %s", when, complaint)
	}
}

func (p *tab) nameless() (complaints []string) {
	p.t.Helper()
	tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	named := []string{"button", "link", "textbox", "meter", "heading", "dialog", "navigation", "DisclosureTriangle", "region"}
	for _, node := range tree.Nodes {
		role := axText(node.Role)
		if !node.Ignored && slices.Contains(named, role) && axText(node.Name) == "" {
			complaints = append(complaints, fmt.Sprintf("a %s without a name (node %d)", role, node.BackendDOMNodeID))
		}
	}
	return complaints
}

func axText(v *accessibility.Value) (text string) {
	if v != nil {
		_ = json.Unmarshal(v.Value, &text)
	}
	return text
}

// Every state of the page that a test can cause, in light and dark, on phone and desktop, in both languages.
func TestShop_Accessible(t *testing.T) {
	s := openShop(t)
	mine, _ := s.sell(offer{title: "Mine"})
	out, gone := s.sell(offer{title: "Sold out", units: 1})
	soon, _ := s.sell(offer{title: "Soon", opensIn: 30 * time.Minute})
	free, _ := s.sell(offer{title: strings.Repeat("A title as long as titles get to be ", 3)})
	_, over := s.sell(offer{title: "Over"})
	s.admin.do("POST", "/api/v1/admin/vouchers/"+over+"/end", nil)
	s.user(7, token.User).order(gone)
	for name, how := range map[string]look{
		"desk, light, English": {}, "phone, dark, English": {phone: true, dark: true},
		"desk, dark, Chinese": {dark: true, language: "zh-CN"}, "phone, light, Chinese": {phone: true, language: "zh-CN"},
	} {
		t.Run(name, func(t *testing.T) {
			how.still = true
			p := open(t, s.url, how)
			p.until(in("open", mine) + "&&" + in("sold-out", out) + "&&" + in("soon", soon) + "&&" + in("open", free))
			p.accessible("at first")
			p.click(mine + buyButton)
			p.until(in("mine", mine) + "&&" + in("pending", firstOrder))
			p.accessible("with an order")
			p.click("#ended summary")
			p.click("#token-details summary")
			p.do(chromedp.SendKeys(chromedp.ID("token"), "nonsense\r"))
			p.until("document.querySelector('#token-wrong').textContent !== ''")
			p.accessible("with everything unfolded")
			p.click(cancelButton)
			p.until("document.querySelector('#sure').open")
			p.accessible("with a question")
			p.click("#sure-no")
			p.click(payButton)
			p.until(in("paid", firstOrder))
			p.accessible("when it is paid")
		})
	}
}

// The checks are of use only if they find what is wrong.
func TestAccessChecks_FindDefects(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{still: true})
	p.until(in("open", ticket))
	p.click("#token-details summary")
	p.accessible("before anything is planted")
	defects := []struct{ complaint, plant string }{
		{"two elements have the id main", `const e = document.createElement('p'); e.id = 'main'; document.body.append(e)`},
		{"a contrast of", `document.querySelector('.terms').style.color = '#bbb'`},
		{"an outline with a contrast of", `document.querySelector('[data-state=open] .buy').style.cssText = 'background: none; border-color: #ddd'`},
		{"a button without a name", `document.querySelector('[data-language]').textContent = ''`},
		{"a textbox without a name", `document.querySelector('label').remove()`},
		{"aria-describedby names", `document.querySelector('.note').id = ''`},
		{"a target of", `document.querySelector('[data-language]').style.cssText = 'min-height: 0; height: 20px; padding: 0'`},
		{"the page has no language", `document.documentElement.removeAttribute('lang')`},
		{"a heading after one of level", `document.querySelector('h1').after(document.createElement('h3')); document.querySelector('h3').textContent = 'x'`},
		{"out of the order of the page", `document.querySelector('.buy').tabIndex = 3`},
		{"wider than the window by", `document.querySelector('main').style.minWidth = '3000px'`},
		{"a nav without a label", `document.querySelector('nav').removeAttribute('aria-label')`},
		{"a navigation without a name", `document.querySelector('nav').removeAttribute('aria-label')`},
		{"the page has no title", `document.title = ''`},
		{"not 1 h1", `document.querySelector('h1').remove()`},
	}
	for _, d := range defects {
		value[bool](p, "(() => {"+d.plant+"})(), true")
	}
	found := append(value[[]string](p, accessChecks), p.nameless()...)
	for _, d := range defects {
		if !slices.ContainsFunc(found, func(c string) bool { return strings.HasPrefix(c, d.complaint) }) {
			t.Errorf("planted %q, found %q", d.plant, found)
		}
	}
}

// Everything can be done with the keyboard alone, and one always sees where one is.
func TestShop_Keyboard(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{})
	p := open(t, s.url, look{still: true})
	p.until(in("open", ticket))
	p.press(kb.Tab)
	p.focused("the link that skips", `e.matches('.skip') && e.getBoundingClientRect().top >= 0`)
	p.press(kb.Enter)
	p.until(`document.activeElement.id === 'main'`)
	p.tabTo("the button that buys", `e.matches('.buy')`)
	p.press(kb.Enter)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder))
	p.focused("the same button", `e.matches('.buy')`)
	p.tabTo("the button that cancels", `e.id.startsWith('cancel-')`)
	p.press(" ")
	p.until(`document.querySelector('#sure').open`)
	p.focused("the safe answer", `e.id === 'sure-no'`)
	p.press(kb.Escape)
	p.until(`!document.querySelector('#sure').open`)
	p.focused("the button that cancels", `e.id.startsWith('cancel-')`)
	p.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
	p.focused("the button that pays", `e.id.startsWith('pay-')`)
	p.press(kb.Enter)
	p.until(in("paid", firstOrder))
	p.focused("the order, whose buttons are gone", `e.id.startsWith('order-')`)
	p.tabTo("the place for a token", `e.matches('#token-details summary')`)
	p.press(kb.Enter)
	p.tabTo("the token", `e.id === 'token'`)
	p.tabTo("the board", `e.getAttribute('href') === '/board'`)
}

// focused wants the focus to be where the condition holds of e, and to be seen there.
func (p *tab) focused(what, condition string) {
	p.t.Helper()
	p.until("(e => " + condition + ")(document.activeElement)")
	if seen := value[string](p, `(e => { const s = getComputedStyle(e); return [s.outlineStyle, parseFloat(s.outlineWidth) >= 2, e.matches(':focus-visible')].join() })(document.activeElement)`); seen != "solid,true,true" {
		p.t.Errorf("that %s has the focus can't be seen: %s", what, seen)
	}
}

// tabTo presses Tab until the condition holds.
func (p *tab) tabTo(what, condition string) {
	p.t.Helper()
	for range 30 {
		p.press(kb.Tab)
		if value[bool](p, "(e => "+condition+")(document.activeElement)") {
			p.focused(what, condition)
			return
		}
	}
	p.t.Fatalf("Tab does not get to %s", what)
}
