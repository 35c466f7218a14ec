package orphan

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the parent process: it starts a child, prints its number, and exits.
func TestMain(m *testing.M) {
	if os.Getenv("SECKILL_ORPHAN") == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sleep", "60")
	Prevent(cmd)
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println(cmd.Process.Pid)
	panic("as a test's timeout does")
}

func TestPrevent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can tie a process to its parent")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "SECKILL_ORPHAN=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || zombie(string(state)) {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the process outlives its parent")
		}
	}
}

// zombie reports whether a process has ended and waits for its parent.
func zombie(stat string) bool {
	var pid int
	var name, state string
	_, _ = fmt.Sscan(stat, &pid, &name, &state)
	return state == "Z"
}
