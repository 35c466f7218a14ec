// Package report draws charts and HTML pages for the results of the lab's experiments and of the drills. A page is one
// file: it contains its style and its SVG charts, runs no script and loads nothing.
//
//	page := report.Page{Title: "Failover drills", Sections: []report.Section{{
//		Title:  "redis-failover",
//		Text:   []string{"The master of Redis dies."},
//		Charts: []report.Chart{{Title: "Answers", Unit: "per second", Series: []report.Series{
//			report.Timeline("accepted", slots, report.Rate(func(s *loadtest.Slot) int64 { return s.Accepted })),
//		}}},
//		Table: [][]string{{"drill", "orders"}, {"redis-failover", "20,080"}},
//	}}}
//	err := page.WriteFile("drill.html")
package report

import (
	_ "embed"
	"errors"
	"html/template"
	"io"
	"os"
	"unicode"
	"unicode/utf8"
)

// Page is a report in one HTML file.
type Page struct {
	Title    string
	Sections []Section
}

// Section is a part of a page. Its contents appear in the order of the fields; empty fields are left out.
type Section struct {
	ID       string   // anchor, for links from elsewhere
	Title    string   // heading
	Sub      bool     // the heading is one level below that of the section before
	Text     []string // paragraphs
	Problems []string // a list in bold
	Charts   []Chart
	Table    [][]string // the first row has the titles of the columns
	Notes    []string   // paragraphs in small letters
}

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"isNumber": isNumber}).Parse(pageHTML))

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return pageTemplate.Execute(w, p) }

// WriteFile writes the page to a file.
func (p *Page) WriteFile(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(p.Write(file), file.Close())
}

// isNumber reports whether a cell is aligned to the right.
func isNumber(cell string) bool {
	first, _ := utf8.DecodeRuneInString(cell)
	return unicode.IsDigit(first) || cell == "–"
}
