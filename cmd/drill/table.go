package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// list prints every drill.
func list(w io.Writer) {
	for _, d := range drills() {
		fmt.Fprintf(w, "%s\n    %s\n    The textbook fears: %s\n", d.name, d.shows, d.fears)
		if len(d.locks) != len(everyLock) {
			fmt.Fprintf(w, "    with --lock %s\n", strings.Join(d.locks, ", "))
		}
	}
}

// table prints a line for each drill that was played.
func table(out io.Writer, results []*result) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "  drill\tlock\torders\topen\tlost\tover\tunder\tdupl.\tids\tevents\teffects\tlongest pause\trecovery\tverdict\t")
	for _, r := range results {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", r.Name, r.Lock, r.cells())
		if r.Control != nil {
			fmt.Fprintf(w, "  … guard off\t%s\t%s\n", r.Control.Lock, r.Control.cells())
		}
	}
	_ = w.Flush() // whatever is wrong with a terminal is seen there
}

func (r *result) cells() string {
	verdict, recovery := "passed", "–"
	switch {
	case r.OK && r.guardOff:
		verdict = "found out"
	case !r.OK:
		verdict = "FAILED"
	case r.Skipped != "":
		verdict = "SKIPPED"
	}
	if len(r.Figures) > 0 {
		recovery = short(r.Figures[0].Took)
	}
	v := r.Verdict
	if v == nil {
		return strings.Repeat("–\t", 11) + verdict + "\t"
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t", humanize.Comma(v.Acknowledged), v.Unresolved, v.Lost, v.Oversold,
		v.Undersold, v.Duplicates, v.DuplicateIDs, humanize.Comma(v.Events), humanize.Comma(v.Effects), short(r.Pause), recovery, verdict)
}
