package game

import (
	"bytes"
	"cmp"
	"syscall"
)

// These types own file descriptors, which the garbage collector doesn't close. So each type has a
// finalizer.

// logFile is a file that lines are appended to.
type logFile struct {
	fd     int64
	failed uint64    // the syscall.Errno of the first failed write, or 0
	name   [256]byte // truncated if too long
	buffer [160]byte
}

func (f *logFile) open(name string) error {
	const flags = syscall.O_WRONLY | syscall.O_APPEND | syscall.O_CREAT | syscall.O_CLOEXEC
	fd, err := syscall.Open(name, flags, 0o644)
	if err != nil {
		return &badFile{"-log", name, err}
	}
	f.fd = int64(fd)
	copy(f.name[:], name)
	return nil
}

// write appends text. If it fails, as on a full disk, the game goes on without the line, and close
// returns the error.
func (f *logFile) write(text []byte) {
	for len(text) > 0 {
		n, err := syscall.Write(handle(f.fd), text)
		if err == syscall.EINTR {
			continue
		}
		if failed, _ := err.(syscall.Errno); failed != 0 {
			f.failed = cmp.Or(f.failed, uint64(failed))
			return
		}
		text = text[n:]
	}
}

func (f *logFile) close() error {
	f.line("log", "closed by process", uint64(syscall.Getpid()))
	err := syscall.Close(handle(f.fd))
	if f.failed != 0 {
		err = syscall.Errno(f.failed)
	}
	if err != nil {
		return &badFile{"-log", string(bytes.TrimRight(f.name[:], "\x00")), err}
	}
	return nil
}

// lock is a pipe with one byte in it. The reader of the byte holds the lock.
type lock struct{ pipe [2]int64 }

func (l *lock) open() error {
	var ends [2]handle
	if err := syscall.Pipe(ends[:]); err != nil {
		return err
	}
	for i, fd := range ends {
		syscall.CloseOnExec(fd)
		l.pipe[i] = int64(fd)
	}
	l.give()
	return nil
}

func (l *lock) take() {
	var token [1]byte
	for {
		if _, err := syscall.Read(handle(l.pipe[0]), token[:]); err != syscall.EINTR {
			return
		}
	}
}

func (l *lock) give() {
	var token [1]byte
	syscall.Write(handle(l.pipe[1]), token[:])
}

func (l *lock) close() error {
	err := syscall.Close(handle(l.pipe[1]))
	if err2 := syscall.Close(handle(l.pipe[0])); err == nil {
		err = err2
	}
	return err
}
