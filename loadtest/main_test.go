package loadtest

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The HTTP client's cleaner of idle connections ends some seconds after the last of them.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}
