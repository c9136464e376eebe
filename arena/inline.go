package arena

import (
	"encoding/binary"
	"unsafe"
)

// Inline is a short text stored in place: an Inline[[16]byte] stores up to 16 bytes. It holds no
// pointer and needs no [Base], so it may be copied, saved, and used as a map key. Two Inlines are
// == exactly when their texts are equal. The zero Inline is the empty text. For longer texts use
// [String].
//
// The sizes are 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192 and 256 bytes.
//
// Zero bytes fill the array after the text, and the length isn't stored. So a text may contain a
// NUL, but not at its end. Each call of String or Bytes searches for the end of the text. If you
// read a text very often, keep its length in a field next to it.
type Inline[A inlineBytes] struct{ text A }

type inlineBytes interface {
	~[4]byte | ~[8]byte | ~[12]byte | ~[16]byte | ~[24]byte | ~[32]byte | ~[48]byte | ~[64]byte | ~[96]byte |
		~[128]byte | ~[192]byte | ~[256]byte
}

// Set copies text into t. It returns false, and changes nothing, if the text is too long or ends in
// a NUL. Cost: a copy; no Go allocation.
func (t *Inline[A]) Set(text string) bool {
	room := t.room()
	if len(text) > len(room) || len(text) > 0 && text[len(text)-1] == 0 {
		return false
	}
	clear(room[copy(room, text):])
	return true
}

// SetBytes is Set for a text in a slice of bytes, such as one from the network. It copies the
// bytes, which may be part of t itself.
func (t *Inline[A]) SetBytes(text []byte) bool {
	return t.Set(unsafe.String(unsafe.SliceData(text), len(text)))
}

// String returns the text, a view that Set changes and that lives as long as t. In a map, an error
// or a log record keep a copy from strings.Clone instead of the view. Cost: a test of the zero
// bytes after the text, eight at a time; no Go allocation.
func (t *Inline[A]) String() string {
	text := t.Bytes()
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Bytes returns the text as a view with cap == len: see String.
func (t *Inline[A]) Bytes() []byte {
	room := t.room()
	n := len(room)
	// sizes are multiples of 4, not all of 8
	for n >= 8 && binary.LittleEndian.Uint64(room[n-8:]) == 0 {
		n -= 8
	}
	for n > 0 && room[n-1] == 0 {
		n--
	}
	return room[:n:n]
}

func (t *Inline[A]) room() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&t.text)), unsafe.Sizeof(t.text))
}
