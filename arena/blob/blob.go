package blob

import "unsafe"

// Blob is verified bytes, for Get.
type Blob struct{ base unsafe.Pointer }

// Moved is b for a copy of its bytes, which begins at a multiple of 8.
func (b Blob) Moved(copied []byte) Blob { return Blob{unsafe.Pointer(unsafe.SliceData(copied))} }

// at is the address of an offset that Verify has seen.
func (b Blob) at(offset uint32) unsafe.Pointer { return unsafe.Add(b.base, offset) }

// Link names one node of the same blob. The zero Link is nil. 4 bytes.
type Link[T any] struct{ offset uint32 }

// Get is the node; nil for nil. Cost: a comparison and an addition. Only links that lie in b may be
// asked: another blob's leads anywhere.
func (l Link[T]) Get(b Blob) *T {
	if l.offset == 0 {
		return nil
	}
	return (*T)(b.at(l.offset))
}

// Array names nodes of one type that lie side by side. The zero Array is empty. 8 bytes.
type Array[T any] struct{ offset, count uint32 }

// Get is the nodes, with cap == len; nil for none. Only arrays that lie in b may be asked.
func (a Array[T]) Get(b Blob) []T {
	if a.count == 0 {
		return nil
	}
	return unsafe.Slice((*T)(b.at(a.offset)), a.count)
}

// Len is the number of nodes.
func (a Array[T]) Len() int { return int(a.count) }

// At is the link to one of them; outside it is a caller's bug and panics.
func At[T any](a Array[T], i int) Link[T] {
	var zero T
	if i < 0 || i >= int(a.count) {
		panic(bug("At %d of an Array of %d", i, a.count))
	}
	return Link[T]{a.offset + uint32(i)*uint32(unsafe.Sizeof(zero))}
}

// Str is a text of the same blob. The zero Str is empty. 8 bytes.
type Str struct{ bytes Array[byte] }

// Get is the text: a view of the blob, which lives as long. Nothing says that it is UTF-8.
func (s Str) Get(b Blob) string {
	if s.bytes.count == 0 {
		return ""
	}
	return unsafe.String((*byte)(b.at(s.bytes.offset)), s.bytes.count)
}

// Len is the length in bytes.
func (s Str) Len() int { return s.bytes.Len() }

// header is what a blob begins with.
type header struct {
	magic uint32
	size  uint32 // of all
	types uint64 // fingerprint of their text
	root  uint32
	text  uint32 // where the types' text begins: past the last node
	nodes uint32 // how many links Verify will follow
	sum   uint32 // CRC-32C of all but this word
}

const (
	magic      = 0x31424c42 // "BLB1"
	headerSize = uint32(unsafe.Sizeof(header{}))
	sumAt      = uint32(unsafe.Offsetof(header{}.sum))
	align      = 8 // the largest alignment of a node, on every target
)
