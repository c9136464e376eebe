package platform

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func openShared(name string, size uint64, head []byte, check func([]byte, uint64) error) (s *Shared, isNew bool,
	err error) {
	// O_NONBLOCK: a pipe of that name is an error, and not a wait.
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, false, err
	}
	s = &Shared{file: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := ownFile(f); err != nil {
		return nil, false, err
	}
	switch err := retried(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }); err {
	case nil:
	case unix.EWOULDBLOCK:
		return nil, false, fmt.Errorf("%s is open elsewhere: %w", name, err)
	default:
		return nil, false, fmt.Errorf("lock %s: %w; use a tmpfs, such as /dev/shm, or a local disk", name, err)
	}
	// The lock is of this file; another one may have its name by now.
	var now, named unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &now), unix.Stat(name, &named)); err != nil {
		return nil, false, fmt.Errorf("stat %s: %w", name, err)
	} else if now.Ino != named.Ino || now.Dev != named.Dev {
		return nil, false, fmt.Errorf("%s was replaced meanwhile: %w", name, unix.EWOULDBLOCK)
	}
	first := make([]byte, len(head))
	n, err := f.ReadAt(first, 0)
	if err != nil && err != io.EOF { // a broken disk makes no new file
		return nil, false, err
	}
	isNew = now.Size == 0 || n == len(head) && bytes.Equal(first, head)
	if !isNew {
		size = uint64(now.Size)
		if err := check(first[:n], size); err != nil {
			return nil, false, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := s.fill(size, head, isNew); err != nil {
		if isNew {
			err = errors.Join(err, f.Truncate(0))
		}
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return s, isNew, nil
}

// ownFile returns an error for a file that another user may access. A memfd has no name, and any
// mode.
func ownFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stat, mode := info.Sys().(*syscall.Stat_t), info.Mode()
	switch {
	case !mode.IsRegular():
		return fmt.Errorf("%s isn't a regular file: %v", f.Name(), mode)
	case int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, and this process to user %d", f.Name(), stat.Uid, os.Geteuid())
	case mode.Perm()&0o077 != 0 && stat.Nlink != 0:
		return fmt.Errorf("%s has mode %04o, and other users may access it: chmod 0600 it", f.Name(), mode.Perm())
	}
	return nil
}

// fill reserves the file's space and maps its pages.
func (s *Shared) fill(size uint64, head []byte, isNew bool) error {
	fd := int(s.file.Fd())
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil && limit.Cur < size {
		return fmt.Errorf("%d bytes, and the limit (RLIMIT_FSIZE) is %d: %w", size, limit.Cur, unix.EFBIG)
	}
	if isNew {
		if _, err := s.file.WriteAt(head, 0); err != nil {
			return full(fd, size, err)
		}
	}
	if err := injected(doAllocate); err != nil {
		return full(fd, size, err)
	}
	if err := retried(func() error { return unix.Fallocate(fd, 0, 0, int64(size)) }); err != nil {
		return full(fd, size, err)
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	err := injected(doMap)
	if err == nil {
		s.bytes, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return fmt.Errorf("map %d bytes: %w", size, err)
	}
	// A child of a C library's fork that doesn't exec can't write the file.
	if err = unix.Madvise(s.bytes, unix.MADV_DONTFORK); err != nil {
		err = fmt.Errorf("keep %d bytes from a fork: %w", size, err)
	} else if err = s.populate(); err != nil {
		err = full(fd, size, err)
	}
	if err != nil {
		err = errors.Join(err, s.unmap())
		s.bytes = nil
	}
	return err
}

// populate makes all pages present. Linux before 5.14 returns EINVAL, and a sandbox may refuse the
// request.
func (s *Shared) populate() error {
	if err := injected(doPopulate); err != nil {
		return err
	}
	switch err := retried(func() error { return unix.Madvise(s.bytes, unix.MADV_POPULATE_WRITE) }); err {
	case unix.EINVAL, unix.ENOSYS, unix.EPERM, unix.EAGAIN:
		return OnLoss(func() error {
			touch(unsafe.Pointer(unsafe.SliceData(s.bytes)), uint64(len(s.bytes)))
			return nil
		})
	default:
		return err
	}
}

func retried(call func() error) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = call()
	}
	return err
}

// full adds the file system's free bytes and the way to more of them.
func full(fd int, size uint64, err error) error {
	var fs unix.Statfs_t
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("reserve %d bytes: the file system can't reserve space: use a tmpfs, such as /dev/shm, "+
			"or a local disk: %w", size, err)
	case errors.Is(err, unix.EIO) || unix.Fstatfs(fd, &fs) != nil:
		return fmt.Errorf("reserve %d bytes: %w", size, err)
	}
	return fmt.Errorf("reserve %d bytes: the file system has %d bytes, %d of them free; make it larger (a "+
		"container's /dev/shm: --shm-size; a tmpfs: mount -o remount,size=), or the file smaller: %w", size,
		fs.Blocks*uint64(fs.Bsize), fs.Bavail*uint64(fs.Bsize), err)
}

func (s *Shared) sync() error  { return unix.Msync(s.bytes, unix.MS_SYNC) }
func (s *Shared) unmap() error { return unix.Munmap(s.bytes) }

// identity joins the number that Linux draws at each start, in 16 bytes, and the file's numbers. A
// hash of package crypto would link its self-tests into each program, and 32 MiB of zeroed data.
func (s *Shared) identity() (id [32]byte, err error) {
	text, err := os.ReadFile(bootFile) // as 01234567-89ab-...
	if err != nil {
		return id, err
	}
	boot, err := hex.AppendDecode(nil, bytes.ReplaceAll(bytes.TrimSpace(text), []byte("-"), nil))
	if err != nil || copy(id[:16], boot) != 16 {
		return id, fmt.Errorf("%s holds %.40q", bootFile, text)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(s.file.Fd()), &stat); err != nil {
		return id, fmt.Errorf("stat %s: %w", s.file.Name(), err)
	}
	binary.LittleEndian.PutUint64(id[16:], uint64(stat.Dev))
	binary.LittleEndian.PutUint64(id[24:], stat.Ino)
	return id, nil
}

const bootFile = "/proc/sys/kernel/random/boot_id"
