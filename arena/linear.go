package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Linear allocates by moving a cursor through a block. Its second end, [Linear.Far], is for
// temporary blocks.
type Linear struct {
	header *arena_c.Ends
	gen    uint64
}

var (
	_ Allocator = Linear{}
	_ Allocator = LinearFar{}
)

// Mark is a position of one end, for Rewind.
type Mark uint64

// NewLinear makes a Linear on the block, whose contents are lost. The block has at least 192 bytes;
// the header takes 128 of them.
func NewLinear(block []byte) (Linear, error) {
	room, err := roomIn(block, "Linear", arena_c.RoomEnds, 2*arena_c.LineSize)
	if err != nil {
		return Linear{}, err
	}
	header := arena_c.EndsInit(room)
	return Linear{header, header.Gen}, nil
}

// Alloc returns size bytes aligned to align, not zeroed, or nil when the arena is full. Size 0
// returns nil only if the alignment doesn't fit.
func (l Linear) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("Linear", size, align)
	return l.its().PushNear(l.gen, size, mask)
}

// Mark returns the current position.
func (l Linear) Mark() Mark { return Mark(l.its().MarkNear()) }

// Rewind frees the blocks allocated since the mark, and forgets newer marks. It returns an error,
// and changes nothing, for a mark past the newest mark, a mark of the other end, or one outside the
// arena. For a forgotten mark it returns an error until a new mark is at or past the forgotten one.
// Cost: O(1), one call into C.
func (l Linear) Rewind(m Mark) error {
	return refusedMark("Linear", m, l.its().Rewind(l.gen, uint64(m)))
}

// Resize changes the size of the newest block in place; old is the block's present size. If the
// arena is full, it returns false and changes nothing. It returns an error if p isn't the newest
// block, or if the block begins before the newest mark. Cost: O(1), one call into C.
func (l Linear) Resize(p unsafe.Pointer, old, size uint64) (bool, error) {
	code := l.its().Resize(l.gen, p, old, size)
	if code == arena_c.Full {
		return false, nil
	}
	return code == arena_c.OK, refused("Linear.Resize", code)
}

// Reset frees all blocks of both ends.
func (l Linear) Reset() { l.its().Reset() }

// Stats returns the counts of the near end.
func (l Linear) Stats() Stats { return nearStats(l.its()) }

func nearStats(e *arena_c.Ends) Stats {
	return Stats{Size: e.End - e.Start, Used: e.Cursor - e.Start, Free: e.Limit - e.Cursor,
		Peak: max(e.High, e.Cursor) - e.Start}
}

func farStats(e *arena_c.Ends) Stats {
	return Stats{Size: e.End - e.Start, Used: e.End - e.Limit, Free: e.Limit - e.Cursor,
		Peak: e.End - min(e.Low, e.Limit)}
}

// Far returns the other end of the arena, for temporary blocks. The far end allocates downwards
// from the end of the block. Both ends share the free bytes; each has its own marks.
func (l Linear) Far() LinearFar { return LinearFar(l) }

// LinearFar is the far end of a Linear.
type LinearFar struct {
	header *arena_c.Ends
	gen    uint64
}

// Alloc is Linear.Alloc at this end.
func (f LinearFar) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("LinearFar", size, align)
	return f.its().BumpFar(f.gen, size, mask)
}

// Mark returns the current position.
func (f LinearFar) Mark() Mark { return Mark(f.its().MarkFar()) }

// Rewind is Linear.Rewind at this end.
func (f LinearFar) Rewind(m Mark) error {
	return refusedMark("LinearFar", m, f.its().RewindFar(f.gen, uint64(m)))
}

// Reset frees all blocks of this end.
func (f LinearFar) Reset() { f.its().RewindFar(f.gen, f.header.End) }

// Stats returns the counts of this end. Its padding isn't counted.
func (f LinearFar) Stats() Stats { return farStats(f.its()) }

func (l Linear) its() *arena_c.Ends { return made(l.header, "Linear") }

func (f LinearFar) its() *arena_c.Ends { return made(f.header, "LinearFar") }
