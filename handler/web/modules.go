package web

import (
	"regexp"
	"slices"
	"strings"
)

var (
	script   = regexp.MustCompile(`<script type="module" src="` + partsPath + `([^"]+)"`)
	imported = regexp.MustCompile(`(?m)^import [^\n]* from '\./([^']+)'`)
)

// preload is a Link header that names every module that a page's script imports, directly or not. Browsers then ask for
// all of them together with the script, instead of finding them one import after the other.
func preload(page []byte, contents map[string][]byte, version string) string {
	var modules []string
	follow := func(matches [][][]byte) {
		for _, match := range matches {
			if name := string(match[1]); !slices.Contains(modules, name) {
				modules = append(modules, name)
			}
		}
	}
	follow(script.FindAllSubmatch(page, -1))
	for i := 0; i < len(modules); i++ {
		follow(imported.FindAllSubmatch(contents[modules[i]], -1))
	}
	links := make([]string, len(modules))
	for i, name := range modules {
		links[i] = "<" + partsPath + version + "/" + name + ">; rel=modulepreload"
	}
	return strings.Join(links, ", ")
}
