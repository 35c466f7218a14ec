//go:build !linux

package orphan

import "os/exec"

// Prevent does nothing: only Linux can tie a process to its parent.
func Prevent(*exec.Cmd) {}
