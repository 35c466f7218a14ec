package main

import (
	"errors"
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "seckill"

// rule lists what packages may import beside the standard library. Tests may import anything.
type rule struct {
	packages string // "x" or "x/..."
	may      []string
}

// rules is the import table of the design. The first rule that matches a package applies. Direct imports are enough to
// look at, since every package has a rule: service cannot reach gorm through another package.
var rules = []rule{
	{"service/lock/locktest", testSuite},
	{"service/idgen/idgentest", testSuite},
	{"service/outbox/brokertest", testSuite},
	{"service/outbox/integration", nil}, // tests only
	{"service/lock/lockcore", []string{"seckill/service/lock"}},
	{"service/lock", nil},
	{"service/idgen", nil},
	{"service/outbox", nil},
	{"service", []string{"seckill/service/..."}},

	{"handler/apitest", []string{"seckill/service/...", "seckill/handler/...", "github.com/getkin/kin-openapi/...", "github.com/gin-gonic/gin/..."}},
	{"handler/...", []string{
		"seckill/service/...", "seckill/handler/...",
		"github.com/gin-gonic/gin/...",
		"github.com/golang-jwt/jwt/...",
		"github.com/hashicorp/golang-lru/v2",
		"github.com/prometheus/client_golang/...", "github.com/prometheus/client_model/go",
		"github.com/swaggest/swgui/...",
		"golang.org/x/time/rate",
	}},

	// A backend imports its driver and no other backend.
	{"repository/repotest/...", []string{"..."}},
	{"repository/lock/redislock", []string{"seckill/service/...", "github.com/redis/go-redis/v9/..."}},
	{"repository/lock/redlock", []string{"seckill/service/...", "github.com/redis/go-redis/v9/...", "github.com/go-redsync/redsync/v4/..."}},
	{"repository/lock/zklock", []string{"seckill/service/...", "github.com/go-zookeeper/zk"}},
	{"repository/ids/redisids", []string{"seckill/service/idgen", "github.com/redis/go-redis/v9/..."}},
	{"repository/ids/zkids", []string{"seckill/service/idgen", "github.com/go-zookeeper/zk"}},
	{"repository/broker/rabbitmq", []string{"seckill/service/outbox", "github.com/rabbitmq/amqp091-go"}},
	{"repository/broker/kafka", []string{"seckill/service/outbox", "github.com/twmb/franz-go/pkg/..."}},
	{"repository/broker/rocketmq", []string{"seckill/service/outbox", "github.com/apache/rocketmq-client-go/v2/..."}},
	{"repository/broker/redisstream", []string{"seckill/service/outbox", "github.com/redis/go-redis/v9/..."}},
	{"repository/broker/inproc", []string{"seckill/service/..."}},
	{"repository/webhook", nil},
	{"repository", []string{
		"seckill/service/...", "seckill/migrations",
		"github.com/go-sql-driver/mysql",
		"github.com/libtnb/sqlite",
		"github.com/pressly/goose/v3/...",
		"gorm.io/...",
		"modernc.org/sqlite/...",
	}},
	{"migrations", nil},

	// The load generator uses the shop over HTTP, as clients do.
	{"loadtest/...", []string{"seckill/loadtest/...", "github.com/HdrHistogram/hdrhistogram-go", "github.com/valyala/fasthttp"}},

	{"cmd/...", []string{"..."}},
}

// testSuite is for conformance suites, which only tests import.
var testSuite = []string{"seckill/service/...", "go.uber.org/goleak"}

// onlyForTests are the packages that no program may contain.
var onlyForTests = []string{
	"seckill/service/lock/locktest", "seckill/service/idgen/idgentest", "seckill/service/outbox/brokertest",
	"seckill/handler/apitest", "seckill/repository/repotest/...", "seckill/cmd/internal/cli/clitest",
}

// laboratory are the packages that only the laboratory and the drills may contain: they are not in the shop's image.
var laboratory = []string{"seckill/cmd/lab/...", "seckill/cmd/internal/report"}

func TestImportTable(t *testing.T) {
	imports := readImports(t, filepath.Join("..", ".."))
	if len(imports) < 5 {
		t.Fatalf("found only %d packages: is this the repository?", len(imports))
	}
	for _, violation := range violations(imports) {
		t.Error(violation)
	}
}

// The negative control: the table must reject forbidden imports.
func TestImportTable_RejectsForbiddenImports(t *testing.T) {
	for _, forbidden := range []struct{ pkg, imported string }{
		{"service", "seckill/repository"},
		{"service", "gorm.io/gorm"},
		{"service/lock", "github.com/redis/go-redis/v9"},
		{"service/lock", "seckill/service"},
		{"service/outbox", "net/http"},
		{"service/idgen", "seckill/service/idgen/idgentest"},
		{"handler", "seckill/repository"},
		{"handler/consumer", "seckill/repository/lock/redislock"},
		{"handler", "gorm.io/gorm"},
		{"repository", "seckill/handler"},
		{"repository", "seckill/repository/lock/redislock"},
		{"repository/lock/zklock", "seckill/repository/lock/redislock"},
		{"repository/lock/redislock", "gorm.io/gorm"},
		{"repository/lock/redislock", "github.com/redis/go-redis/v9000"},
		{"loadtest", "seckill/service"},
		{"cmd/seckill", "seckill/repository/repotest/dbserver"},
		{"cmd/seckill", "seckill/cmd/lab/compare"},
		{"cmd/internal/app", "seckill/cmd/internal/report"},
		{"cmd/seckill", "seckill/cmd/internal/cli/clitest"},
		{"elsewhere", "fmt"},
	} {
		if len(violations(map[string][]string{forbidden.pkg: {forbidden.imported}})) == 0 {
			t.Errorf("%s may import %s", forbidden.pkg, forbidden.imported)
		}
	}
}

// violations compares the imports of each package, by its path inside the module, with the rules.
func violations(imports map[string][]string) (found []string) {
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		i := slices.IndexFunc(rules, func(r rule) bool { return matches(r.packages, pkg) })
		if i < 0 {
			found = append(found, pkg+" has no rule in the import table: add one")
			continue
		}
		for _, imported := range imports[pkg] {
			if !allowed(rules[i], pkg, imported) {
				found = append(found, pkg+" must not import "+imported)
			}
		}
	}
	return found
}

func allowed(r rule, pkg, imported string) bool {
	matchesImport := func(pattern string) bool { return matches(pattern, imported) }
	if slices.ContainsFunc(onlyForTests, matchesImport) {
		return pkg == "cmd/test" || strings.HasPrefix(pkg, "repository/repotest/")
	}
	if slices.ContainsFunc(laboratory, matchesImport) {
		return strings.HasPrefix(pkg, "cmd/lab") || pkg == "cmd/drill"
	}
	first, _, _ := strings.Cut(imported, "/")
	if first != module && !strings.Contains(first, ".") {
		// The standard library: all other paths begin with a domain.
		return imported != "net/http" || !strings.HasPrefix(pkg+"/", "service/")
	}
	return slices.ContainsFunc(r.may, matchesImport)
}

// matches supports the patterns of the go command that end in "/...", and "..." for everything.
func matches(pattern, name string) bool {
	tree, isTree := strings.CutSuffix(pattern, "...")
	if !isTree {
		return name == pattern
	}
	return strings.HasPrefix(name+"/", tree)
}

// readImports reads the sources instead of running go list, so that the go command knows the files that this test depends
// on: it must not repeat an outdated result from its cache.
func readImports(t *testing.T, root string) map[string][]string {
	imports := map[string][]string{}
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := filepath.ToSlash(dir[len(root):])
		if dir != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(dir)) {
			return filepath.SkipDir
		}
		pkg, err := build.ImportDir(dir, 0)
		if err == nil {
			imports[strings.TrimPrefix(name, "/")] = pkg.Imports
		}
		if _, none := errors.AsType[*build.NoGoError](err); none {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
