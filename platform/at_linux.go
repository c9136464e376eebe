//go:build !race

package platform

import (
	"bytes"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// placeable tells whether ReserveAt can succeed.
const placeable = true

// mapAt maps size bytes without access at base. What /proc tells is asked first, so that a number that lies in the Go
// heap never becomes a pointer; but the system decides.
func mapAt(base uintptr, size uint64) (unsafe.Pointer, error) {
	if err := taken(base, size); err != nil {
		return nil, err
	}
	p, err := mapExactly(base, size)
	if err != nil {
		if owner := taken(base, size); owner != nil { // since the first look
			err = owner
		}
		return nil, err
	}
	return p, nil
}

// mapExactly replaces nothing. Linux before 4.17, and some emulators, take MAP_FIXED_NOREPLACE for a mere wish: an
// address that is not base goes back.
func mapExactly(base uintptr, size uint64) (unsafe.Pointer, error) {
	if err := injected(doMap); err != nil {
		return nil, err
	}
	p, err := unix.MmapPtr(-1, 0, unsafe.Add(nil, base), uintptr(size), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		return nil, err
	}
	if uintptr(p) == base {
		return p, nil
	}
	err = fmt.Errorf("%w: the system gives %p instead", unix.EEXIST, p)
	if refused := unmap(p, size); refused != nil {
		spare.put(block{base: p, size: size})
		err = fmt.Errorf("%w, and does not take it back: %w", err, refused)
	}
	return nil, err
}

// taken is the error that says who has some of the bytes; nil when nobody has, or /proc does not tell.
func taken(base uintptr, size uint64) error {
	maps, _ := os.ReadFile("/proc/self/maps")
	if line, found := collision(maps, uint64(base), uint64(base)+size); found {
		return fmt.Errorf("%w: /proc/self/maps has %q there", unix.EEXIST, line)
	}
	return nil
}

// collision gives the first line of /proc/self/maps that shares an address with [first, end).
//
//	7f435bf60000-7f435c100000 rw-p 00000000 00:00 0     [heap]
func collision(maps []byte, first, end uint64) (line string, found bool) {
	for line := range bytes.Lines(maps) {
		span, _, _ := bytes.Cut(line, []byte(" "))
		from, to, separated := bytes.Cut(span, []byte("-"))
		low, lowError := strconv.ParseUint(string(from), 16, 64)
		high, highError := strconv.ParseUint(string(to), 16, 64)
		if separated && lowError == nil && highError == nil && low < end && first < high {
			return string(bytes.Join(bytes.Fields(line), []byte(" "))), true
		}
	}
	return "", false
}

// addressBits is how many bits the program's addresses have, 0 when it is not known. The stack is the highest of all
// that is mapped; 16 random bytes for the C library lie on it.
func addressBits() int {
	const randomBytes = 25 // AT_RANDOM
	vector, _ := unix.Auxv()
	for _, entry := range vector {
		if entry[0] == randomBytes {
			return bits.Len64(uint64(entry[1]))
		}
	}
	return 0
}
