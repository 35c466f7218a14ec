package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"seckill/loadtest"
)

// onTerminal tells whether a person watches what is written to w.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// showProgress draws a bar of the recorder's requests on a terminal until stop is called; elsewhere it does nothing.
// total is how many requests there will be, -1 if nobody knows.
func showProgress(w io.Writer, what string, total int64, r *loadtest.Recorder) (stop func()) {
	if !onTerminal(w) {
		return func() {}
	}
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			c := r.Counts()
			bar.Describe(fmt.Sprintf("%s: %s requests/s", what, perSecond(float64(c.Sent)/c.Elapsed.Seconds())))
			if total >= 0 {
				c.Sent = min(c.Sent, total)
			}
			_ = bar.Set64(c.Sent) // a terminal that is gone is no reason to stop
		}
	}()
	return func() {
		cancel()
		<-done
		_ = bar.Finish()
	}
}
