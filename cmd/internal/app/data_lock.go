//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package app

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the file's lock, which goes with its last descriptor. It returns false if another process has it.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
