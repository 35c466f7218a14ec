package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns. Columns named in left are aligned there, all others to the right, as numbers are.
type table struct {
	left map[int]bool
	rows [][]string
}

func newTable(left ...int) *table {
	t := &table{left: map[int]bool{}}
	for _, column := range left {
		t.left[column] = true
	}
	return t
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the rows, indented by two, without blanks at their ends.
func (t *table) print(w io.Writer) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.left[i] {
				line.WriteString("  " + cell + blanks)
			} else {
				line.WriteString("  " + blanks + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
