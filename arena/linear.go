package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Linear is an aligned bump over a block, with a second end for temporaries: Far. It is a small value; copies are the
// same arena.
type Linear struct {
	header *arena_c.Ends
	gen    uint64
}

var (
	_ Allocator = Linear{}
	_ Allocator = LinearFar{}
)

// Mark is a position of one end to rewind to.
type Mark uint64

// NewLinear makes a linear arena of the block, which has at least 192 bytes: the header takes 128. What was in the block
// is lost.
func NewLinear(block []byte) (Linear, error) {
	room, err := roomIn(block, "Linear", arena_c.RoomEnds, 2*arena_c.LineSize)
	if err != nil {
		return Linear{}, err
	}
	header := arena_c.EndsInit(room)
	return Linear{header, header.Gen}, nil
}

// Alloc gives size bytes aligned to align, not zeroed; nil when the arena is full. Size 0 gives an address that is not nil.
func (l Linear) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("Linear", size, align)
	return l.its().PushNear(l.gen, size, mask)
}

// Mark is the position now.
func (l Linear) Mark() Mark { return Mark(l.its().MarkNear()) }

// Rewind frees what was allocated since the mark, and forgets the marks that are newer. A mark that was forgotten, is of
// the other end or lies outside the arena is refused and changes nothing. Cost: O(1), one call into C.
func (l Linear) Rewind(m Mark) error {
	return refusedMark("Linear", m, l.its().Rewind(l.gen, uint64(m)))
}

// Resize makes the last block longer or shorter where it lies; old is the size that it has. False: there is no room for
// more, and nothing has changed. A block that isn't the last, or lies below the newest mark, is refused with an error:
// who took the mark counts on it. Cost: O(1), one call into C.
func (l Linear) Resize(p unsafe.Pointer, old, size uint64) (bool, error) {
	code := l.its().Resize(l.gen, p, old, size)
	if code == arena_c.Full {
		return false, nil
	}
	return code == arena_c.OK, refused("Linear.Resize", code)
}

// Reset frees everything at both ends.
func (l Linear) Reset() { l.its().Reset() }

// Stats is the near end's.
func (l Linear) Stats() Stats { return nearStats(l.its()) }

// Padding is the bytes that alignment has cost at the near end since Reset, also in what was rewound since. Checked builds
// count them; others, in which Alloc does nothing that it needn't, don't know them, and say false.
func (l Linear) Padding() (bytes uint64, known bool) { return l.its().Lost, arena_c.Checked }

func nearStats(e *arena_c.Ends) Stats {
	return Stats{Size: e.End - e.Start, Used: e.Cursor - e.Start, Free: e.Limit - e.Cursor, Peak: max(e.High, e.Cursor) - e.Start}
}

func farStats(e *arena_c.Ends) Stats {
	return Stats{Size: e.End - e.Start, Used: e.End - e.Limit, Free: e.Limit - e.Cursor, Peak: e.End - min(e.Low, e.Limit)}
}

// Far is the other end of the arena, for temporaries: it comes down from the end of the block. Both ends share the room
// and never meet; each has its own marks.
func (l Linear) Far() LinearFar { return LinearFar(l) }

// LinearFar is the far end of a Linear. It is a small value; copies are the same end.
type LinearFar struct {
	header *arena_c.Ends
	gen    uint64
}

// Alloc is Linear.Alloc at this end.
func (f LinearFar) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("LinearFar", size, align)
	return f.its().BumpFar(f.gen, size, mask)
}

// Mark is the position now.
func (f LinearFar) Mark() Mark { return Mark(f.its().MarkFar()) }

// Rewind is Linear.Rewind at this end.
func (f LinearFar) Rewind(m Mark) error {
	return refusedMark("LinearFar", m, f.its().RewindFar(f.gen, uint64(m)))
}

// Reset frees everything at this end.
func (f LinearFar) Reset() { f.its().RewindFar(f.gen, f.header.End) }

// Stats is this end's. Its padding isn't counted.
func (f LinearFar) Stats() Stats { return farStats(f.its()) }

func (l Linear) its() *arena_c.Ends { return made(l.header, "Linear") }

func (f LinearFar) its() *arena_c.Ends { return made(f.header, "LinearFar") }
