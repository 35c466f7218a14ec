package main

import (
	"os"
	"testing"

	"seckill/cmd/internal/cli/clitest"
)

// asProgram makes the test binary be the program, so that tests can start it in processes of their own.
const asProgram = "SECKILL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		_ = os.Unsetenv(asProgram)
		os.Exit(program().Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestCommands_HaveHelp(t *testing.T) {
	clitest.EveryCommandHasHelp(t, program())
}

// seckill runs the program in this process and returns its exit status and output.
func seckill(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, program(), args...)
}
