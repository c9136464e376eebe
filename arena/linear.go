package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Linear is an aligned bump over a block. It is a small value; copies are the same arena.
type Linear struct {
	header *arena_c.Linear
	tag    uint64
}

// Mark is a position to rewind to.
type Mark uint64

// NewLinear makes a linear arena of the block. What was in the block is lost.
func NewLinear(block []byte) (Linear, error) {
	if err := checkBlock("Linear", block); err != nil {
		return Linear{}, err
	}
	header := arena_c.LinearInit(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)))
	return Linear{header, header.Tag()}, nil
}

// Alloc gives size bytes aligned to align, not zeroed; nil when the arena is full. Size 0 gives an address that is not nil.
func (l Linear) Alloc(size, align uint64) unsafe.Pointer {
	p, _ := l.header.Bump(l.tag+size, size, mask("Linear", size, align))
	return p
}

// Mark is the position now.
func (l Linear) Mark() Mark { return Mark(l.header.Cursor) }

// Rewind frees what was allocated since the mark. A mark that is newer than the arena, or never was its own, is refused
// and changes nothing.
func (l Linear) Rewind(m Mark) error {
	if code := l.header.Rewind(l.tag, uint64(m)); code != arena_c.OK {
		return fmt.Errorf("arena: BUG: Linear.Rewind to %d: %v", m, code)
	}
	return nil
}

// Reset frees everything.
func (l Linear) Reset() { l.header.Rewind(l.tag, l.header.Start) }

// Size is the room of the empty arena, Used what is allocated with its padding, Peak the highest Used.
func (l Linear) Size() uint64 { return l.header.Limit - l.tag - l.header.Start }
func (l Linear) Used() uint64 { return l.header.Cursor - l.header.Start }
func (l Linear) Peak() uint64 { return max(l.header.Peak, l.header.Cursor) - l.header.Start }
