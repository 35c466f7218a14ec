package orphan

import (
	"os/exec"
	"syscall"
)

// Prevent has the kernel kill cmd's process when this one ends, also by a panic or a test's timeout. It is called before
// cmd starts.
func Prevent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
