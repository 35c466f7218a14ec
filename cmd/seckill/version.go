package main

import (
	"context"
	"fmt"
	"runtime"

	"seckill/cmd/internal/cli"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(_ context.Context, out *cli.Output) error {
	fmt.Fprintf(out.Stdout, "seckill %s %s %s/%s\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
