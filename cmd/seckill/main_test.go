package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// asProgram makes the test binary be the program, so that tests can start it in processes of their own.
const asProgram = "SECKILL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		_ = os.Unsetenv(asProgram)
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}
