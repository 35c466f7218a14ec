package main

import (
	"strings"
	"testing"
	"time"
)

func TestTableIsAligned(t *testing.T) {
	table := newTable(0)
	table.row("name", "n", "")
	table.row("größer", "1,234", "text")
	table.row("x", "7")
	var out strings.Builder
	table.print(&out)
	want := "  name        n\n  größer  1,234  text\n  x           7\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestFiguresAreRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567 * time.Nanosecond: "1.23ms", 12345678 * time.Nanosecond: "12.3ms", 123456789 * time.Nanosecond: "123ms",
		1234 * time.Millisecond: "1.23s", 12345 * time.Microsecond: "12.3ms", 1234 * time.Nanosecond: "1.23µs", 12 * time.Nanosecond: "12ns",
		83 * time.Second: "1m23s",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%d) = %q, want %q", d, got, want)
		}
	}
	for f, want := range map[float64]string{0.0081: "0.008", 0.5: "0.50", 21.04: "21.0"} {
		if got := factor(f); got != want {
			t.Errorf("factor(%v) = %q, want %q", f, got, want)
		}
	}
	for r, want := range map[float64]string{12.34: "12.3", 15021.4: "15,021"} {
		if got := perSecond(r); got != want {
			t.Errorf("perSecond(%v) = %q, want %q", r, got, want)
		}
	}
}
