package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

var table = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) uint32 { return crc32.Checksum(b, table) }

// putSum sets the last four bytes of a block to the sum of the bytes before them.
func putSum(block []byte) {
	last := len(block) - 4
	binary.LittleEndian.PutUint32(block[last:], sum(block[:last]))
}

// isSummed reports whether the sum at the end of a block is right.
func isSummed(block []byte) bool {
	last := len(block) - 4
	return binary.LittleEndian.Uint32(block[last:]) == sum(block[:last])
}

// checkHeader returns the first size bytes of a file, or an error if they aren't a whole header
// with the magic and version.
func checkHeader(data []byte, size int, magic string, version uint32) ([]byte, error) {
	if len(data) < size {
		return nil, bad(len(data), "the file ends within the header of %d bytes", size)
	}
	head := data[:size]
	if string(head[:len(magic)]) != magic {
		return nil, bad(0, "it starts with %q, not with %q", head[:len(magic)], magic)
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != version {
		return nil, bad(len(magic), "it is of version %d; this program reads %d", v, version)
	}
	if !isSummed(head) {
		return nil, bad(size-4, "the checksum of the header should be %#x", sum(head[:size-4]))
	}
	return head, nil
}

// tooLarge returns the error for a file over its largest size.
func tooLarge(size int64, what string, most int64) error {
	return fmt.Errorf("it has %d bytes: a %s has at most %d", size, what, most)
}

func bad(at int, format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", at, fmt.Sprintf(format, args...))
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
