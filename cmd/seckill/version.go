package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints what the build knows about itself.
func (versionCmd) Run(_ context.Context, out *output) error {
	fmt.Fprintf(out.stdout, "seckill %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// buildVersion is the module's version, and the commit if the build was made in a checkout.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return version
}
