package scope

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// ReadFile reads a whole file into s and returns its bytes, which are freed with s. If s is full,
// ReadFile unwinds before it reads a byte. It returns an error if the file isn't regular, or if the
// file has more bytes than its size says, as files in /proc have.
func ReadFile(s Scope, name string) ([]byte, error) {
	f, err := os.Open(strings.Clone(name)) // its errors outlive a name in s
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("scope: %q is not a regular file", name)
	}
	size := int(min(info.Size(), math.MaxInt)) // a larger file fits in no scope
	data, err := ReadAt(s, f, 0, size)
	if err != nil {
		return nil, err
	}
	if n, _ := f.ReadAt(make([]byte, 1), int64(size)); n != 0 {
		return nil, fmt.Errorf("scope: %q has more bytes than its size, which is %d; read it with ReadAt", name, size)
	}
	return data, nil
}

// ReadAt reads size bytes of r at offset into s and returns the bytes, which are freed with s. If s
// is full, ReadAt unwinds before it reads a byte. If r ends before size bytes, ReadAt returns an
// error that wraps io.ErrUnexpectedEOF.
func ReadAt(s Scope, r io.ReaderAt, offset int64, size int) ([]byte, error) {
	data := s.Bytes(size)
	n, err := r.ReadAt(data, offset)
	if n == size {
		return data, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("scope: read %d of %d bytes at offset %d: %w", n, size, offset, err)
}
