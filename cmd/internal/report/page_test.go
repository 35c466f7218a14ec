package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestPage_ContainsEverythingAndLoadsNothing(t *testing.T) {
	page := Page{Title: "A <title>", Sections: []Section{
		{ID: "first", Title: "First", Text: []string{"some <text>"}, Problems: []string{"a problem"}, Notes: []string{"a note"}},
		{Title: "Second", Sub: true, Charts: []Chart{sample(false)}, Table: [][]string{{"name", "n"}, {"x", "1,234"}}},
	}}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := page.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?i)(src=|href|url\(|@import|<script|https?:)`).FindString(string(text)); found != "" {
		t.Errorf("the page loads something: %q", found)
	}
	for _, want := range []string{
		"A &lt;title&gt;", `<h2 id="first">First</h2>`, "some &lt;text&gt;", "<li>a problem</li>", "a note", "<h3>Second</h3>", "<svg",
		`<th scope="col">n</th>`, "<td>x</td>", `<td class="number">1,234</td>`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not contain %q:\n%s", want, text)
		}
	}
}
