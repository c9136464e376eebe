//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed or the process ends. It fails if another process has the
// lock.
func lockFile(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		err = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another server has it")
	}
	if err = errors.Join(failed, err); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// syncFolder syncs the names of a folder's files to the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
