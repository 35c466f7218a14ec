package shop_test

import (
	"testing"

	"go.uber.org/goleak"
)

// A closed shop leaves no goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
