package disk

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// folder is an open folder for files that are replaced.
type folder struct {
	dir *os.File
	fd  int
}

func openFolder(name string) (folder, error) {
	dir, err := os.Open(name)
	if err != nil {
		return folder{}, err
	}
	return folder{dir, int(dir.Fd())}, nil
}

// entry is a file of a folder. It keeps its name and the new file's as the system calls need them,
// since package os would copy both to the Go heap at each call.
type entry struct {
	path         string
	name, beside []byte // with a zero at the end
}

func (f *folder) entry(name string) entry {
	return entry{filepath.Join(f.dir.Name(), name), append([]byte(name), 0), append([]byte(name+".new"), 0)}
}

// replace writes a new file of head and body, syncs it, and renames it to the entry's name. If the
// program ends meanwhile, the name has the old file or the new one, whole. Cost: two syncs of the
// disk, without a Go allocation except for an error.
func (f *folder) replace(e *entry, head, body []byte) error {
	err := e.write(f.fd, head, body)
	if err == nil {
		err = e.rename(f.fd)
	}
	if err != nil {
		_, _, _ = unix.Syscall(unix.SYS_UNLINKAT, uintptr(f.fd), uintptr(unsafe.Pointer(&e.beside[0])), 0)
		return &os.PathError{Op: "write", Path: e.path, Err: err}
	}
	return unix.Fsync(f.fd)
}

// write writes and syncs the new file.
func (e *entry) write(dir int, head, body []byte) error {
	fd, err := e.create(dir)
	if err != nil {
		return err
	}
	err = writeAt(fd, head, 0)
	if err == nil {
		err = writeAt(fd, body, int64(len(head)))
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	if closed := unix.Close(fd); err == nil {
		err = closed
	}
	return err
}

func (e *entry) create(dir int) (fd int, err error) {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&e.beside[0])),
			unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o644, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			continue
		}
		return -1, errno
	}
}

func writeAt(fd int, data []byte, at int64) error {
	for len(data) > 0 {
		n, err := unix.Pwrite(fd, data, at)
		if err != nil && err != unix.EINTR {
			return err
		}
		n = max(n, 0)
		data, at = data[n:], at+int64(n)
	}
	return nil
}

func (e *entry) rename(dir int) error {
	_, _, errno := unix.Syscall6(unix.SYS_RENAMEAT2, uintptr(dir), uintptr(unsafe.Pointer(&e.beside[0])),
		uintptr(dir), uintptr(unsafe.Pointer(&e.name[0])), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (f *folder) close() error { return f.dir.Close() }
