package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

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
