// Package webtest sees the pages with a real browser, in front of a real shop: what people click, type and hear, in every
// state that a sale has.
package webtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/chromedp/chromedp"

	"seckill/repository/repotest/dbserver"
)

// asChromium makes the test binary become the browser that it names.
const asChromium = "SECKILL_TEST_AS_CHROMIUM"

func TestMain(m *testing.M) {
	if path := os.Getenv(asChromium); path != "" {
		fmt.Fprintln(os.Stderr, becomeChromium(path))
		os.Exit(1)
	}
	code := m.Run()
	stopChromium()
	os.Exit(code)
}

// becomeChromium replaces this process by the browser, which can't learn then that the machine's network interfaces
// change. Whenever one does, Chromium gives up every request that is under way, those to the loopback too, with
// ERR_NETWORK_CHANGED; and here it happens all the time, since other tests start and stop containers. It asks the kernel by
// netlink sockets and takes it well if there are none, so that is what a seccomp filter refuses.
func becomeChromium(path string) error {
	const (
		setNoNewPrivs, setSeccomp, modeFilter = 38, 22, 2 // prctl(2)
		refuse, allow                         = 0x00050000 | uint32(syscall.EAFNOSUPPORT), 0x7fff0000
		systemCall, firstArgument             = 0, 16 // where seccomp_data has them
	)
	load := func(offset uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: offset}
	}
	unless := func(value uint32, skip uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: value, Jf: skip}
	}
	answer := func(value uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: value}
	}
	filter := []syscall.SockFilter{
		load(systemCall), unless(syscall.SYS_SOCKET, 3),
		load(firstArgument), unless(syscall.AF_NETLINK, 1),
		answer(refuse), answer(allow),
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // the filter is this thread's, and exec keeps it
	if _, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("prctl: %w", errno)
	}
	if _, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	_ = os.Unsetenv(asChromium)
	return syscall.Exec(path, os.Args, os.Environ())
}

// chromium is the browser of all tests; each test has its own context in it.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop []func()
	err  error
}

var errNoChromium = errors.New("neither chromium nor google-chrome is on PATH")

// browser starts Chromium for the first test that asks.
func browser(t testing.TB) context.Context {
	t.Helper()
	chromium.once.Do(func() { chromium.err = startChromium() })
	if errors.Is(chromium.err, errNoChromium) && os.Getenv("SECKILL_TEST_REQUIRED") != "1" {
		t.Skip(chromium.err)
	}
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	return chromium.ctx
}

func startChromium() error {
	path, err := dbserver.Program("chromium")
	if err != nil {
		if path, err = dbserver.Program("google-chrome"); err != nil {
			return errNoChromium
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	profile, err := os.MkdirTemp("", "seckill-chromium-")
	if err != nil {
		return err
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(self), chromedp.Env(asChromium+"="+path), chromedp.UserDataDir(profile),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true), chromedp.Flag("disable-features", "Translate"),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true),
	)
	chromium.stop = append(chromium.stop, func() { _ = os.RemoveAll(profile) }, cancel)
	chromium.ctx, cancel = chromedp.NewContext(ctx)
	chromium.stop = append(chromium.stop, cancel, func() { _ = chromedp.Cancel(chromium.ctx) })
	return chromedp.Do(chromium.ctx)
}

func stopChromium() {
	for i := len(chromium.stop) - 1; i >= 0; i-- {
		chromium.stop[i]()
	}
}
