package platform

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"syscall"
)

// Shared is a file of fixed size in memory: this process writes the file by writing to memory. If
// the process is killed, the file keeps each byte that was written. It must not be copied.
type Shared struct {
	file  *os.File
	bytes []byte
}

// OpenShared opens the file of that name, locks it for this process, reserves its space, and maps
// it. A new file has mode 0600 and size bytes, and begins with head. isNew reports this. A file
// that is empty, or begins with exactly head, counts as new, because its maker was interrupted. So
// the caller changes the first bytes when the file is complete. For any other file OpenShared calls
// check with the file's first bytes, at most as many as head has, and its size. If check returns
// nil, the file is mapped with its size and bytes. Otherwise OpenShared returns an error that wraps
// check's, and the file is as before.
//
// All pages of the file are present on return, so a write to them needs no page fault on a tmpfs or
// memfd. On a disk, the system writes pages back now and then; the next write to such a page faults
// and may wait. For a file passed as a descriptor, such as a memfd, the name is /proc/self/fd/3.
// If the file permits it (memfd_create with MFD_ALLOW_SEALING), OpenShared seals its size. The size
// of any other file can be changed by a process of the same user: see [OnLoss].
//
// The lock (flock) ends with Close or with the process. A program that this process starts doesn't
// inherit it. If another process or this one has the file open, the error wraps
// syscall.EWOULDBLOCK. OpenShared also fails if the file is a directory or a device, if another
// user owns it or may access it, if its file system is read-only or full, and beyond
// RLIMIT_FSIZE. A new file that fails stays with 0 bytes. Off Linux the error wraps
// errors.ErrUnsupported.
func OpenShared(name string, size uint64, head []byte, check func(first []byte, size uint64) error) (
	s *Shared, isNew bool, err error) {
	if size < uint64(len(head)) || len(head) == 0 || size > math.MaxInt {
		return nil, false, fmt.Errorf("platform: BUG: a shared file of %d bytes, with a head of %d", size, len(head))
	}
	s, isNew, err = openShared(name, size, head, check)
	if err != nil {
		return nil, false, fmt.Errorf("platform: a shared file of %d bytes: %w", size, err)
	}
	return s, isNew, nil
}

// Bytes returns the bytes of the file, or nil after Close. They are valid until Close.
func (s *Shared) Bytes() []byte { return s.bytes }

// Sync returns when the file's bytes are on its disk. On a tmpfs or memfd it does nothing.
func (s *Shared) Sync() error {
	if s.bytes == nil {
		return errors.New("platform: BUG: Sync of a closed shared file")
	}
	return s.sync()
}

// Identity returns a value that only this file has, and only until the machine restarts. If the
// value is the same as at an earlier time, each byte written since is in the file. Identity fails
// if the system doesn't provide such a value.
func (s *Shared) Identity() (id [32]byte, err error) {
	if id, err = s.identity(); err != nil {
		err = fmt.Errorf("platform: a restart of the machine can't be seen: %w", err)
	}
	return id, err
}

// Close unmaps and unlocks the file. A second Close returns nil.
func (s *Shared) Close() error {
	if s.bytes == nil {
		return nil
	}
	err := s.unmap()
	if err != nil {
		err = fmt.Errorf("platform: unmap a shared file of %d bytes: %w", len(s.bytes), err)
	}
	s.bytes = nil
	return errors.Join(err, s.file.Close())
}

// OnLoss runs fn, which accesses bytes of a mapped file. If another process made the file shorter,
// the access would end this process by SIGBUS. Instead OnLoss returns an error. It makes no Go
// allocation if fn makes none and returns nil.
func OnLoss(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(interface{ Addr() uintptr })
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("platform: a mapped file has no page at %#x any more: it was made shorter, or its disk "+
				"failed: %w", fault.Addr(), syscall.EIO)
		}
	}()
	return fn()
}
