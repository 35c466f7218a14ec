//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package app

import (
	"errors"
	"os"
	"syscall"
)

func init() { tryLock = flock }

// flock locks a file until its last descriptor is closed.
func flock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
