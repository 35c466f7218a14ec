package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/cli"
)

// kind is what an event is about.
type kind string

const (
	noted  kind = "note"
	fault  kind = "fault"  // something was broken
	healed kind = "healed" // something was put right
)

// event is a moment of a drill.
type event struct {
	At   time.Duration `json:"at_ns"` // since the load began
	Kind kind          `json:"kind"`
	Text string        `json:"text"`
}

// timeline prints events when they happen, with the rates of the load since the line before.
type timeline struct {
	begin time.Time
	meter *meter
	out   io.Writer

	mu     sync.Mutex
	events []event
	last   time.Time // when the last line was printed
}

func newTimeline(out io.Writer, m *meter) *timeline {
	now := time.Now()
	fmt.Fprintf(out, "\n  %7s  %8s  %8s  %7s\n", "time", "orders/s", "errors/s", "p99")
	return &timeline{begin: now, meter: m, out: out, last: now}
}

// note adds a remark.
func (t *timeline) note(format string, args ...any) { t.event(noted, format, args...) }

// event adds what has just happened.
func (t *timeline) event(k kind, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := event{At: time.Since(t.begin), Kind: k, Text: fmt.Sprintf(format, args...)}
	t.events = append(t.events, e)
	t.line(e.At, e.mark()+e.Text)
}

// mark makes faults and repairs easy to see.
func (e *event) mark() string {
	switch e.Kind {
	case fault:
		return "✗ "
	case healed:
		return "✓ "
	}
	return "  "
}

// quiet is the time without events after which a line with the rates is printed.
const quiet = 2 * time.Second

// tick prints a line if there was none for a while.
func (t *timeline) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.last) >= quiet {
		t.line(now.Sub(t.begin), "")
	}
}

// line prints the rates since the last line, unless that was so recent that they mean nothing.
func (t *timeline) line(at time.Duration, text string) {
	figures := fmt.Sprintf("%8s  %8s  %7s", "", "", "")
	if now := time.Now(); now.Sub(t.last) >= 200*time.Millisecond {
		c := t.meter.take()
		span := now.Sub(t.last).Seconds()
		p99 := "–"
		if c.accepted > 0 {
			p99 = cli.Short(c.p99)
		}
		figures = fmt.Sprintf("%8s  %8s  %7s", humanize.Comma(int64(float64(c.accepted)/span+.5)), humanize.Comma(int64(float64(c.failures)/span+.5)), p99)
		t.last = now
	}
	line := fmt.Sprintf("  %6.1fs  %s  %s", at.Seconds(), figures, text)
	fmt.Fprintln(t.out, strings.TrimRight(line, " "))
}

// list returns the events so far.
func (t *timeline) list() []event {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]event(nil), t.events...)
}
