package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// A proxy's block ends with two words: the owner's id above the number of bytes by which what was asked for was rounded
// up, and a digest of that word, of the size and of the place. The words lie behind the bytes and not before them, so that
// the address is the heap's own, whatever its alignment: the heap says that it is live before anything is read there.
const (
	tailSize  = 16
	tailSlack = 3 // bits
)

// tailed is the size of the heap's block for size bytes.
func tailed(size uint64) uint64 { return (size+7)&^7 + tailSize }

func digest(h *arena_c.Heap, offset, size, owner uint64) uint64 {
	m := (offset^h.Epoch<<42)*0x9E3779B97F4A7C15 + owner
	m = (m ^ m>>32 + size) * 0xBF58476D1CE4E5B9
	m = (m ^ m>>29) * 0x94D049BB133111EB
	return m ^ m>>32
}

func (x *Proxy) offset(p unsafe.Pointer) uint64 {
	return uint64(uintptr(p) - uintptr(unsafe.Pointer(x.heap)))
}

// seal writes the words of a block that the heap has given for size bytes, and hides them.
func (x *Proxy) seal(p unsafe.Pointer, size uint64) {
	total := tailed(size)
	owner := x.id<<tailSlack | (total - tailSize - size)
	words := (*[2]uint64)(unsafe.Add(p, total-tailSize))
	words[0], words[1] = owner, digest(x.heap, x.offset(p), total, owner)
	x.heap.Hide(unsafe.Add(p, size), total-size)
}

// unseal clears the words, so that they are not found in a block that the heap gives to another.
func (x *Proxy) unseal(p unsafe.Pointer, size uint64) {
	total := tailed(size)
	x.heap.Show(unsafe.Add(p, size), total-size)
	*(*[2]uint64)(unsafe.Add(p, total-tailSize)) = [2]uint64{}
}

// tail reads the words of a live block of the heap: the owner's id, 0 when there are none, and the size that was asked
// of it.
func tail(h *arena_c.Heap, offset, total uint64) (id, size uint64) {
	if total < tailSize || total%8 != 0 {
		return 0, 0
	}
	owner := h.Word(offset + total - tailSize)
	slack := owner & (1<<tailSlack - 1)
	if h.Word(offset+total-8) != digest(h, offset, total, owner) || slack > total-tailSize {
		return 0, 0
	}
	return owner >> tailSlack, total - tailSize - slack
}

// look is the size of a live block; wrong says why it isn't one.
func (x *Proxy) look(p unsafe.Pointer) (size uint64, wrong string) {
	if x.closed {
		return 0, arena_c.Stale.String()
	}
	total, code := x.heap.SizeOf(p)
	if code != arena_c.OK {
		return 0, code.String()
	}
	id, size := tail(x.heap, x.offset(p), total)
	switch id {
	case x.id:
		return size, ""
	case 0:
		return 0, "a block of the heap itself, or written past its end"
	}
	return 0, "a block of another proxy"
}

func (h Heap) look(p unsafe.Pointer) (size uint64, wrong string) {
	size, code := h.header.SizeOf(p)
	if code != arena_c.OK {
		return 0, code.String()
	}
	return size, ""
}
