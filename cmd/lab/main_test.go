package main

import (
	"testing"

	"seckill/cmd/internal/cli/clitest"
)

func TestCommands_HaveHelp(t *testing.T) {
	clitest.EveryCommandHasHelp(t, program())
}
