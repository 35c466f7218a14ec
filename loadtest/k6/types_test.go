package k6_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The scripts have the types that k6's functions ask for. What checks that is pinned in package-lock.json.
func TestTypes(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		missing(t, "npm is not here")
	}
	dir := t.TempDir() // so that nothing is installed into the repository
	for _, pattern := range []string{"*.js", "*.json", ".npmrc", "lib/*"} {
		copyFiles(t, dir, pattern)
	}
	run := func(name string, args ...string) ([]byte, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	if out, err := run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if out, err := run(npm, "run", "--silent", "check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// What would a check be worth that lets everything through?
	if err := os.WriteFile(filepath.Join(dir, "wrong.js"), []byte("import http from 'k6/http';\nhttp.post(1);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(npm, "run", "--silent", "check"); err == nil {
		t.Errorf("a mistake was not found\n%s", out)
	}
}

func copyFiles(t *testing.T, dir, pattern string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no file %s: %v", pattern, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
