// Command lab runs the experiments of the shop: they measure and compare, and none of them is part of the deployed
// program. Each experiment is a package; README.md describes them.
package main

import (
	"os"

	"seckill/cmd/internal/cli"
	"seckill/cmd/lab/compare"
	"seckill/cmd/lab/ids"
	"seckill/cmd/lab/load"
	"seckill/cmd/lab/locks"
)

// commands are the experiments.
type commands struct {
	Compare compare.Command `cmd:"" help:"Run the same sale with several locks and batch sizes, and compare."`
	Load    load.Command    `cmd:"" help:"Send load to a running shop, and check its answers."`
	Locks   locks.Command   `cmd:"" help:"Show what each lock is worth when its holder loses it."`
	IDs     ids.Command     `cmd:"" name:"ids" help:"Measure id buffers, primary keys and segment sizes on real servers."`
}

const description = `Experiments with the shop: measure, compare, and attack it.

  go run ./cmd/lab load                against a shop that runs somewhere
  go run ./cmd/lab compare             locks and batch sizes
  go run ./cmd/lab locks               what a lost lock does
  go run ./cmd/lab ids                 why ids are made the way they are

Every flag is also a variable: --mysql-dsn is SECKILL_MYSQL_DSN.`

func program() cli.Program {
	return cli.Program{Name: "lab", Description: description, Commands: new(commands)}
}

func main() {
	os.Exit(program().Main(os.Args[1:], os.Stdout, os.Stderr))
}
