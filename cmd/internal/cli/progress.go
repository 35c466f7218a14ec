package cli

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

// OnTerminal reports whether w is a terminal.
func OnTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// ShowProgress draws a progress bar of the recorder's requests until stop is called. It does nothing if w is not a
// terminal. total is the number of requests, or -1 if it is unknown.
func ShowProgress(w io.Writer, what string, total int64, r *loadtest.Recorder) (stop func()) {
	if !OnTerminal(w) {
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
			sent, elapsed := r.Sent()
			bar.Describe(fmt.Sprintf("%s: %s requests/s", what, PerSecond(float64(sent)/elapsed.Seconds())))
			if total >= 0 {
				sent = min(sent, total)
			}
			_ = bar.Set64(sent) // a closed terminal does not end the load
		}
	}()
	return func() {
		cancel()
		<-done
		_ = bar.Finish()
	}
}
