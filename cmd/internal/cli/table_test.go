package cli

import (
	"strings"
	"testing"
	"time"
)

func TestPrintTable_Aligned(t *testing.T) {
	var out strings.Builder
	if err := PrintTable(&out, [][]string{{"name", "n"}, {"größer", "1,234", "text"}, {"x", "7"}}); err != nil {
		t.Fatal(err)
	}
	want := "  name        n\n  größer  1,234  text\n  x           7\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567 * time.Nanosecond: "1.23ms", 12345678 * time.Nanosecond: "12.3ms", 123456789 * time.Nanosecond: "123ms",
		1234 * time.Millisecond: "1.23s", 12345 * time.Microsecond: "12.3ms", 1234 * time.Nanosecond: "1.23µs", 12 * time.Nanosecond: "12ns",
		83 * time.Second: "1m23s",
	} {
		if got := Short(d); got != want {
			t.Errorf("Short(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestPerSecond(t *testing.T) {
	for r, want := range map[float64]string{12.34: "12.3", 15021.4: "15,021"} {
		if got := PerSecond(r); got != want {
			t.Errorf("PerSecond(%v) = %q, want %q", r, got, want)
		}
	}
}
