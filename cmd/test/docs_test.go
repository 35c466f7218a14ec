package main

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	template = regexp.MustCompile(`/[A-Z]+(/|$)`) // as in repository/broker/NAME
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	filePath = regexp.MustCompile(`^(cmd|handler|service|repository|migrations|loadtest|\.ci|\.compose|\.github)/[\w./-]+$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
)

// Every relative link and every path in backticks of every Markdown file must exist.
func TestDocs_PathsExist(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	documents := 0
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		documents++
		text, err := fs.ReadFile(root, name)
		for _, missing := range missingPaths(root, name, string(text)) {
			t.Errorf("%s names %s, which does not exist", name, missing)
		}
		return err
	})
	if err != nil || documents == 0 {
		t.Errorf("%d documents, %v", documents, err)
	}
}

func TestDocs_MissingPathsAreFound(t *testing.T) {
	text := "[a](b.md#part) [web](https://example.org/x) [here](#part) [is](main.go) `service/none.go` `cmd/test/main.go` `service/lock/NAME` `a/b`\n" +
		"```sh\ncat `service/fenced.go`\n```\n"
	got := missingPaths(os.DirFS(filepath.Join("..", "..")), "cmd/test/README.md", text)
	if strings.Join(got, " ") != "cmd/test/b.md service/none.go" {
		t.Errorf("missing: %q", got)
	}
}

// missingPaths lists the paths that a document names and that are not in root.
func missingPaths(root fs.FS, document, text string) (missing []string) {
	text = fenced.ReplaceAllString(text, "")
	var named []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target != "" && !strings.Contains(target, ":") {
			named = append(named, path.Join(path.Dir(document), target))
		}
	}
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		if filePath.MatchString(m[1]) && !template.MatchString(m[1]) {
			named = append(named, path.Clean(m[1]))
		}
	}
	for _, name := range named {
		if _, err := fs.Stat(root, name); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

var (
	composeVariable = regexp.MustCompile(`\$\{(\w+)[:}-]|(?m)^ +(SECKILL_\w+):$`)
	exampleVariable = regexp.MustCompile(`(?m)^#(\w+)=`)
)

// SECKILL_IMAGE and SECKILL_BUILD_TAGS are for .ci/compose and cmd/drill.
func TestEnvExample_HasTheVariablesOfCompose(t *testing.T) {
	compose, example := names(t, "docker-compose.yml", composeVariable), names(t, ".env.example", exampleVariable)
	delete(compose, "SECKILL_IMAGE")
	delete(compose, "SECKILL_BUILD_TAGS")
	if !maps.Equal(compose, example) {
		t.Errorf("docker-compose.yml has %q\n.env.example has %q", slices.Sorted(maps.Keys(compose)), slices.Sorted(maps.Keys(example)))
	}
}

// names returns what the groups of a pattern match in a file of the root.
func names(t *testing.T, file string, pattern *regexp.Regexp) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
		found[strings.Join(m[1:], "")] = true
	}
	return found
}
