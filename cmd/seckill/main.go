// Command seckill is the shop: it serves it, shows it, and maintains its database. Each command has its own file;
// `seckill --help` lists them. Experiments and measurements are in cmd/lab.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"seckill/cmd/internal/cli"
)

// commands are the commands of the program.
type commands struct {
	Demo    demoCmd    `cmd:"" help:"Sell a voucher out over HTTP and check that nothing went wrong. Needs nothing but this program."`
	Serve   serveCmd   `cmd:"" help:"Run a shop."`
	Consume consumeCmd `cmd:"" help:"Run only the consumers of events."`
	Migrate migrateCmd `cmd:"" help:"Bring the tables of the database up to date, or list pending migrations."`
	Audit   auditCmd   `cmd:"" help:"Check every invariant over the database."`
	Outbox  outboxCmd  `cmd:"" help:"List events, and retry those that failed."`
	IDs     idsCmd     `cmd:"" name:"ids" help:"Decode ids, and restore a lost id counter."`
	Token   tokenCmd   `cmd:"" help:"Sign a token for development."`
	Health  healthCmd  `cmd:"" help:"Ask a shop whether it is ready; for health checks of containers."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

const description = `A flash-sale (秒杀) shop that never oversells and never loses an order.

  seckill demo                         a whole sale on this machine, and its verdict
  seckill serve                        an embedded shop at http://127.0.0.1:8080
  seckill serve --mysql-dsn=… --redis-addrs=… --jwt-key=…
                                       a shop on real servers; up to 16 instances for each --data-center

Every flag is also a variable: --mysql-dsn is SECKILL_MYSQL_DSN.`

func program() cli.Program {
	return cli.Program{Name: "seckill", Description: description, Commands: new(commands)}
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(_ context.Context, out *cli.Output) error {
	fmt.Fprintf(out.Stdout, "seckill %s %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func main() {
	os.Exit(program().Main(os.Args[1:], os.Stdout, os.Stderr))
}
