package ids

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/cli/clitest"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// The refill experiment on real servers, as a page and as JSON. experiments_test.go has the others.
func TestCommand_RefillOnServers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		cfg, err := mysql.ParseDSN(target.DSN)
		if err != nil || target.Engine != "mysql" {
			t.Skip("one engine is enough for what Redis does")
		}
		page := filepath.Join(t.TempDir(), "lab.html")
		var result Result
		program := cli.Program{Name: "lab ids", Commands: new(Command)}
		if code := clitest.RunJSON(t, program, &result, "--only=refill", "--html="+page,
			"--mysql-dsn="+cfg.FormatDSN(), "--redis-addrs="+redistest.Start(t).Addr); code != 0 || len(result.Refill.Runs) != 3 {
			t.Fatalf("status %d, %+v", code, result.Refill)
		}
		if single, double := result.Refill.Runs[1], result.Refill.Runs[2]; single.Waits == 0 || double.Waits >= single.Waits {
			t.Errorf("calls waited %d times for a single buffer and %d times for a double one", single.Waits, double.Waits)
		}
		text, err := os.ReadFile(page)
		if err != nil || !strings.Contains(string(text), "<svg") || !strings.Contains(string(text), "double buffer") {
			t.Errorf("the page has no plot (%v)", err)
		}
	})
}

// Only the refill experiment uses Redis. Nothing listens at the address of the database.
func TestCommand_RedisOnlyForRefill(t *testing.T) {
	program := cli.Program{Name: "lab ids", Commands: new(Command)}
	for only, needed := range map[string]bool{"refill": true, "keys,refill": true, "keys": false, "step": false} {
		code, _, stderr := clitest.Run(t, program, "--only="+only, "--mysql-dsn=root@tcp(127.0.0.1:1)/lab")
		if code != 1 || strings.Contains(stderr, "--redis-addrs is required") != needed {
			t.Errorf("--only=%s: status %d, %s", only, code, stderr)
		}
	}
}
