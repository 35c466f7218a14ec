package webtest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"seckill/handler/token"
)

var updateScreenshots = flag.Bool("update-screenshots", false, "write the README's pictures of shop and board again")

const (
	screenshots                       = "../../../handler/web/screenshots"
	screenshotWidth, screenshotHeight = 1280, 900 // as tab.behave sets the window
	mostScreenshotBytes               = 300_000
)

// The README shows pictures of the shop and of the board during a sale. With -update-screenshots this test takes them.
func TestScreenshots(t *testing.T) {
	if *updateScreenshots {
		s := openShop(t)
		writeScreenshot(t, "shop.png", shopDuringSale(t, s))
		board, endSale := boardDuringSale(t, s)
		writeScreenshot(t, "board.png", board)
		endSale()
	}
	for _, name := range []string{"shop.png", "board.png"} {
		content, err := os.ReadFile(filepath.Join(screenshots, name))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.DecodeConfig(bytes.NewReader(content))
		if err != nil || picture.Width != screenshotWidth || picture.Height != screenshotHeight || len(content) > mostScreenshotBytes {
			t.Errorf("%s: %d × %d pixels, %d bytes, %v", name, picture.Width, picture.Height, len(content), err)
		}
	}
}

func writeScreenshot(t *testing.T, name string, p *tab) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(screenshots, name), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// shopDuringSale shows vouchers in different states, and an order that was placed by a click.
func shopDuringSale(t *testing.T, s *shop) *tab {
	s.sell(offer{title: "Concert ticket", opensIn: 20 * time.Minute})
	_, gone := s.sell(offer{title: "Weekend by the sea", units: 1})
	s.user(7, token.User).order(gone)
	ticket, _ := s.sell(offer{title: "Dinner for two", units: 40})
	p := open(t, s.url, look{})
	p.until(in("open", ticket))
	p.click(ticket + buyButton)
	p.until(in("mine", ticket) + " && " + in("pending", firstOrder))
	return p
}

// boardDuringSale shows a sale of which two thirds are sold.
func boardDuringSale(t *testing.T, s *shop) (p *tab, end func()) {
	const units, seconds = 3000, 60
	_, voucher := s.sell(offer{title: "Dinner for two, again", units: units})
	p = open(t, s.url+"/board", look{})
	p.reads("#link", "live")
	ctx, cancel := context.WithCancel(t.Context())
	var buyers sync.WaitGroup
	buyers.Go(func() { s.rush(ctx, voucher, units/seconds) })
	p.reads("#title", "Dinner for two, again")
	p.until(fmt.Sprintf("+document.querySelector('#left').textContent.replace(',', '') < %d", units/3))
	return p, func() {
		cancel()
		buyers.Wait()
	}
}

// rush sends buyers, so many a second, until ctx ends. Each sends its request twice.
func (s *shop) rush(ctx context.Context, voucher string, perSecond int) {
	var requests sync.WaitGroup
	defer requests.Wait()
	pace := time.NewTicker(time.Second / time.Duration(perSecond))
	defer pace.Stop()
	for id := int64(10_000); ctx.Err() == nil; id++ {
		<-pace.C
		buyer := s.user(id, token.User)
		for range 2 {
			requests.Go(func() { buyer.try(voucher) })
		}
	}
}

// try asks for an order, with any outcome.
func (u *user) try(voucher string) {
	request, err := http.NewRequestWithContext(u.s.t.Context(), http.MethodPost, u.s.app.URL()+"/api/v1/orders",
		strings.NewReader(fmt.Sprintf(`{"voucher_id":%q}`, voucher)))
	if err != nil {
		u.s.t.Error(err)
		return
	}
	request.Header.Set("Authorization", "Bearer "+u.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		u.s.t.Error(err)
		return
	}
	_ = response.Body.Close()
}
