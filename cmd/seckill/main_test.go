package main

import (
	"os"
	"testing"
)

// asProgram makes the test binary be the program, so that tests can start it in processes of their own.
const asProgram = "SECKILL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		_ = os.Unsetenv(asProgram)
		os.Exit(runInterruptible(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
