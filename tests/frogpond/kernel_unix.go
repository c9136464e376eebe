//go:build unix

package main

import "syscall"

// Objects of the kernel. Each holds descriptors, which the collector knows
// nothing of, so each type is declared with a finalizer.

// LogFile is a file that lines are appended to.
type LogFile struct {
	fd     int
	buffer [160]byte
}

func (f *LogFile) open(name string) (err error) {
	const flags = syscall.O_WRONLY | syscall.O_APPEND | syscall.O_CREAT | syscall.O_CLOEXEC
	if f.fd, err = syscall.Open(name, flags, 0o644); err != nil {
		return &badFile{"-log", name, err}
	}
	return nil
}

// write may fail, as on a full disk: the game goes on without the line.
func (f *LogFile) write(text []byte) { syscall.Write(f.fd, text) }

func (f *LogFile) close() error {
	f.line("log", "closed by process", uint64(syscall.Getpid()))
	return syscall.Close(f.fd)
}

// Lock is a pipe with one byte in it: who has read the byte holds the lock.
type Lock struct{ pipe [2]int }

func (l *Lock) open() error {
	if err := syscall.Pipe(l.pipe[:]); err != nil {
		return err
	}
	syscall.CloseOnExec(l.pipe[0])
	syscall.CloseOnExec(l.pipe[1])
	l.give()
	return nil
}

func (l *Lock) take() {
	var token [1]byte
	for {
		if _, err := syscall.Read(l.pipe[0], token[:]); err != syscall.EINTR {
			return
		}
	}
}

func (l *Lock) give() {
	var token [1]byte
	syscall.Write(l.pipe[1], token[:])
}

func (l *Lock) close() error {
	err := syscall.Close(l.pipe[1])
	if err2 := syscall.Close(l.pipe[0]); err == nil {
		err = err2
	}
	return err
}
