package blob

import "unsafe"

// Blob is a verified block, for Get.
type Blob struct{ base unsafe.Pointer }

// Moved returns the Blob for a copy of b's bytes, which begins at a multiple of 8.
func (b Blob) Moved(copied []byte) Blob { return Blob{unsafe.Pointer(unsafe.SliceData(copied))} }

// at returns the address of an offset that Verify has checked.
func (b Blob) at(offset uint32) unsafe.Pointer { return unsafe.Add(b.base, offset) }

// Link refers to a node of the same blob, in 4 bytes. The zero Link is nil.
type Link[T any] struct{ offset uint32 }

// Get returns the node, or nil for a nil link. The link must be in b: a link of another blob leads
// anywhere. Cost: a comparison and an addition.
func (l Link[T]) Get(b Blob) *T {
	if l.offset == 0 {
		return nil
	}
	return (*T)(b.at(l.offset))
}

// Array refers to adjacent nodes of one type in the same blob, in 8 bytes. The zero Array is empty.
type Array[T any] struct{ offset, count uint32 }

// Get returns the nodes, with cap == len, or nil if there are none. The array must be in b.
func (a Array[T]) Get(b Blob) []T {
	if a.count == 0 {
		return nil
	}
	return unsafe.Slice((*T)(b.at(a.offset)), a.count)
}

// Len returns the number of nodes.
func (a Array[T]) Len() int { return int(a.count) }

// At returns the link to node i of an array. It panics if i is out of range.
func At[T any](a Array[T], i int) Link[T] {
	var zero T
	if i < 0 || i >= int(a.count) {
		panic(bug("At %d of an Array of %d", i, a.count))
	}
	return Link[T]{a.offset + uint32(i)*uint32(unsafe.Sizeof(zero))}
}

// Str refers to a text of the same blob, in 8 bytes. The zero Str is empty.
type Str struct{ bytes Array[byte] }

// Get returns the text, a view that lives as long as the blob. The text may be invalid UTF-8. The
// Str must be in b.
func (s Str) Get(b Blob) string {
	if s.bytes.count == 0 {
		return ""
	}
	return unsafe.String((*byte)(b.at(s.bytes.offset)), s.bytes.count)
}

// Len returns the length in bytes.
func (s Str) Len() int { return s.bytes.Len() }

type header struct {
	magic uint32
	size  uint32 // of the blob, in bytes
	types uint64 // fingerprint of the types' text
	root  uint32
	text  uint32 // offset of the types' text: past the last node
	nodes uint32 // number of links that Verify queues
	sum   uint32 // CRC-32C of all other bytes
}

const (
	magic      = 0x31424c42 // "BLB1"
	headerSize = uint32(unsafe.Sizeof(header{}))
	sumAt      = uint32(unsafe.Offsetof(header{}.sum))
	align      = 8 // the largest alignment of a node, on every target
)
