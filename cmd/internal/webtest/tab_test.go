package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// pageTimeout bounds every wait; it is long because the machine may be busy.
const pageTimeout = 60 * time.Second

// look is how somebody looks at a page.
type look struct {
	language string // as in Accept-Language; "en" by default
	dark     bool
	phone    bool
	still    bool   // without anything that moves
	script   string // runs in the page before its own scripts
}

// tab is a page in a browser that has not been here before. Whatever goes wrong in it fails the test: an error or an
// exception on its console, a part that is missing, a breach of its policy.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// watch has the page tell what breaks its policy, and what moves without having been touched.
const watch = `
  window.breaches = []; window.jumps = []
  document.addEventListener('securitypolicyviolation', e => breaches.push(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample))
  new PerformanceObserver(list => {
    for (const e of list.getEntries()) if (!e.hadRecentInput)
      jumps.push({ value: e.value, what: e.sources.map(s => (s.node?.outerHTML ?? String(s.node?.nodeValue)).slice(0, 200)) })
  }).observe({ type: 'layout-shift', buffered: true })`

// open shows a page.
func open(t testing.TB, url string, how look) *tab {
	t.Helper()
	p := &tab{t: t}
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(p.hear))
	t.Cleanup(cancel)
	p.ctx = ctx
	if err := chromedp.Do(ctx); err != nil { // opens the tab, which lasts as long as this context
		t.Fatal(err)
	}
	p.behave(how)
	p.visit(url)
	t.Cleanup(p.verdict)
	return p
}

// behave sets up how the page is looked at.
func (p *tab) behave(how look) {
	p.t.Helper()
	width, height := int64(1280), int64(900)
	if how.phone {
		width, height = 390, 844
	}
	p.do(chromedp.EmulateViewport(width, height))
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}
	if how.dark {
		features[0].Value = "dark"
	}
	if how.still {
		features = append(features, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	if how.language == "" {
		how.language = "en"
	}
	call(p, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
		UserAgent: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", AcceptLanguage: how.language,
	})
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch + "\n" + how.script})
}

func (p *tab) visit(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
}

// hear collects complaints. It is called by the browser's connection and must not block.
func (p *tab) hear(event any) {
	complaint := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			text, _ := json.Marshal(e.Args)
			complaint = "console: " + string(text)
		}
	case *runtime.EventExceptionThrown:
		complaint = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			complaint += " " + e.ExceptionDetails.Exception.Description
		}
	case *cdplog.EventEntryAdded:
		complaint = loggedBy(e.Entry)
	}
	if complaint != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.complaints = append(p.complaints, complaint)
	}
}

// loggedBy leaves out what Chromium says about answers of the API: refusals are the shop's business, and connections that
// break are part of some tests.
func loggedBy(e *cdplog.Entry) string {
	if e.Source == cdplog.EntrySourceNetwork && strings.Contains(e.URL, "/api/") {
		return ""
	}
	return fmt.Sprintf("log: %s %s: %s", e.Source, e.URL, e.Text)
}

// verdict fails the test if there were complaints.
func (p *tab) verdict() {
	if !p.t.Failed() {
		for _, breach := range value[[]string](p, "breaches") {
			p.t.Error("the page breaks its policy: " + breach)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, complaint := range p.complaints {
		p.t.Error(complaint)
	}
}

// do performs steps, all of which have to succeed in time.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%v\n%s", err, p.state())
	}
}

// call sends a command of the protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], parameters P) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, parameters); err != nil {
		p.t.Fatal(err)
	}
}

// value evaluates an expression in the page.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for a condition of the page.
func (p *tab) until(condition string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+condition+")"))
		if err == nil && holds {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("timed out waiting for %s (%v)\n%s", condition, err, p.state())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// state is what the page shows, for messages.
func (p *tab) state() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return "the page does not tell what it shows: " + err.Error()
	}
	return "the page shows:\n" + text
}

// click is one of a mouse, in the middle of what the selector finds.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// shows is the condition that an element's text contains text.
func shows(selector, text string) string {
	return fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text)
}

// in is the condition that a ticket or an order is in a state.
func in(state, selector string) string {
	return fmt.Sprintf("document.querySelector(%q)?.dataset.state === %q", selector, state)
}
