package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every `lab` command in a README parses, so the flags that it shows exist.
func TestReadme_Commands(t *testing.T) {
	found := map[string]bool{}
	for _, path := range []string{"README.md", "../../README.md", "../../loadtest/README.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^go run \./cmd/lab (.*)$`).FindAllStringSubmatch(string(text), -1) {
			command, _, _ := strings.Cut(line[1], "#")
			args := strings.Fields(strings.ReplaceAll(command, "'", ""))
			parser, err := program().Parser(io.Discard, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(args); err != nil {
				t.Errorf("%s: lab %s: %v", path, command, err)
			}
			found[args[0]] = true
		}
	}
	for _, command := range []string{"compare", "load", "locks", "ids"} {
		if !found[command] {
			t.Errorf("no README shows lab %s", command)
		}
	}
}
