package arena

import (
	"encoding/binary"
	"unsafe"
)

// Inline is a text that lies where it is declared, in so many bytes: Inline[[16]byte] has room for 16. It is plain data,
// without an offset and without a base, so it may be copied, saved, and be a key of a map: two are == exactly when their
// texts are. The zero Inline is the empty text. What is longer is a [String].
//
// The sizes are 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192 and 256 bytes.
//
// Behind the text are zero bytes, and nothing else says where it ends; so a text may have a NUL inside, and none at its end.
// String and Bytes look for that end each time. Keep the length of a text that is read very often in
// a field next to it.
type Inline[A inlineBytes] struct{ text A }

// inlineBytes are the sizes.
type inlineBytes interface {
	~[4]byte | ~[8]byte | ~[12]byte | ~[16]byte | ~[24]byte | ~[32]byte | ~[48]byte | ~[64]byte | ~[96]byte | ~[128]byte |
		~[192]byte | ~[256]byte
}

// Set makes it the text, a copy. False: the text has more bytes than there are, or ends in a NUL; nothing has changed. Cost:
// a copy; no Go allocation.
func (t *Inline[A]) Set(text string) bool {
	room := t.room()
	if len(text) > len(room) || len(text) > 0 && text[len(text)-1] == 0 {
		return false
	}
	clear(room[copy(room, text):])
	return true
}

// SetBytes is Set of a text that lies in bytes, as what comes from the network does. The bytes are the caller's again when
// it returns, and may be those of the Inline itself.
func (t *Inline[A]) SetBytes(text []byte) bool {
	return t.Set(unsafe.String(unsafe.SliceData(text), len(text)))
}

// String is the text. It is a view, not a copy: Set changes it, and it dies with the bytes of the Inline, so don't keep it in
// a map, an error or a log record; strings.Clone gives one to keep. Cost: a look at the zero bytes behind the text, eight
// at a time; no Go allocation.
func (t *Inline[A]) String() string {
	text := t.Bytes()
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Bytes is the text as String gives it; cap is len.
func (t *Inline[A]) Bytes() []byte {
	room := t.room()
	n := len(room)
	for n >= 8 && binary.LittleEndian.Uint64(room[n-8:]) == 0 { // all sizes are multiples of 4, not of 8
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
