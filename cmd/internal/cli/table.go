package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"seckill/loadtest"
)

// meanings explain outcomes in a table.
var meanings = map[loadtest.Outcome]string{
	loadtest.Placed:      "a new order, durable",
	loadtest.Replayed:    "the order that an earlier copy of the request placed",
	loadtest.Done:        "done",
	"sold-out":           "no unit was left",
	"in-progress":        "another copy of the request was being served",
	"already-ordered":    "the user has an order already",
	"sale-not-started":   "too early",
	"sale-ended":         "too late",
	"busy":               "too many requests were waiting; nothing was done",
	"unavailable":        "a server was not available; nothing was done",
	"rate-limited":       "too many requests; nothing was done",
	"outcome-unknown":    "repeat the same request to resolve it",
	loadtest.Timeout:     "no answer in time; repeat the same request to resolve it",
	loadtest.Broken:      "the connection broke; repeat the same request to resolve it",
	loadtest.Gateway:     "a proxy answered; repeat the same request to resolve it",
	loadtest.Unreachable: "no connection; nothing was sent",
	loadtest.Unexpected:  "an answer that the API does not define",
}

// PrintOutcomes writes a line for each kind of answer.
func PrintOutcomes(w io.Writer, r *loadtest.Report) error {
	rows := [][]string{{"answer", "requests", "p50", "p99"}}
	for _, o := range r.Outcomes {
		name := string(o.Outcome)
		if o.Op != loadtest.OpPlace {
			name = string(o.Op) + ": " + name
		}
		rows = append(rows, []string{name, humanize.Comma(o.Count), Short(o.P50), Short(o.P99), meanings[o.Outcome]})
	}
	return PrintTable(w, rows)
}

// Short rounds a duration to about three digits.
func Short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		switch {
		case d >= 100*unit:
			return d.Round(unit).String()
		case d >= 10*unit:
			return d.Round(unit / 10).String()
		case d >= unit:
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// PerSecond writes a rate without digits that mean nothing.
func PerSecond(rate float64) string {
	if rate < 100 {
		return fmt.Sprintf("%.1f", rate)
	}
	return humanize.Comma(int64(rate + 0.5))
}

// PrintTable writes rows in columns; the first row has the titles. The first column is aligned to the left, the others to
// the right. A row may have one cell more than there are titles: a note.
func PrintTable(w io.Writer, rows [][]string) error {
	width, columns := 0, len(rows[0])
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row[0]))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintf(table, "%-*s\t%s\t", width, row[0], strings.Join(row[1:columns], "\t"))
		if len(row) > columns {
			fmt.Fprint(table, "  ", row[columns])
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
