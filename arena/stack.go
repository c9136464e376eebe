package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Stack frees the last block, or all since a mark, and has a second end that does the same: Far. Each block costs 16
// bytes beside its own, and is aligned to 16 at least. It is a small value; copies are the same arena.
type Stack struct {
	header *arena_c.Stack
	gen    uint64
}

var (
	_ Freer = Stack{}
	_ Freer = StackFar{}
)

// NewStack makes a stack of the block, which has at least 192 bytes: the header takes 128. What was in the block is lost.
func NewStack(block []byte) (Stack, error) {
	room, err := roomIn(block, "Stack", arena_c.RoomStack, 2*arena_c.LineSize)
	if err != nil {
		return Stack{}, err
	}
	header := arena_c.StackInit(room)
	return Stack{header, header.Gen}, nil
}

// Alloc gives size bytes aligned to align, not zeroed; nil when the stack is full.
func (s Stack) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("Stack", size, align)
	return s.its().Push(s.gen, size, mask|arena_c.StackMask)
}

// Free frees the last live block. Any other address is refused and changes nothing.
func (s Stack) Free(p unsafe.Pointer) error { return refused("Stack.Free", s.its().Free(p)) }

// Mark is the position now.
func (s Stack) Mark() Mark { return Mark(s.its().Cursor) }

// Rewind frees the blocks that are newer than the mark. A mark that is newer than the stack, lies inside a block or is of
// the other end is refused and changes nothing. Cost: O(blocks freed).
func (s Stack) Rewind(m Mark) error { return refusedMark("Stack", m, s.its().Rewind(uint64(m))) }

// Reset frees everything at both ends.
func (s Stack) Reset() { s.its().Reset() }

// Stats is the near end's.
func (s Stack) Stats() Stats { return nearStats((*arena_c.Ends)(s.its())) }

// Padding is the bytes of Used that nobody asked for: 16 of each live block, and its alignment. Cost: O(blocks).
func (s Stack) Padding() uint64 { return s.its().Padding() }

// Far is the other end of the stack: it comes down from the end of the block towards the near one. Both share the room
// and never meet; each frees its own last block and has its own marks.
func (s Stack) Far() StackFar { return StackFar(s) }

// StackFar is the far end of a Stack. It is a small value; copies are the same end.
type StackFar struct {
	header *arena_c.Stack
	gen    uint64
}

// Alloc is Stack.Alloc at this end.
func (f StackFar) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("StackFar", size, align)
	return f.its().PushFar(f.gen, size, mask|arena_c.StackMask)
}

// Free is Stack.Free at this end.
func (f StackFar) Free(p unsafe.Pointer) error { return refused("StackFar.Free", f.its().FreeFar(p)) }

// Mark is the position now.
func (f StackFar) Mark() Mark { return Mark(f.its().Limit) }

// Rewind is Stack.Rewind at this end.
func (f StackFar) Rewind(m Mark) error {
	return refusedMark("StackFar", m, f.its().RewindFar(uint64(m)))
}

// Reset frees everything at this end.
func (f StackFar) Reset() { f.its().ResetFar() }

// Stats is this end's. Its padding isn't counted.
func (f StackFar) Stats() Stats { return farStats((*arena_c.Ends)(f.its())) }

func (s Stack) its() *arena_c.Stack { return made(s.header, "Stack") }

func (f StackFar) its() *arena_c.Stack { return made(f.header, "StackFar") }
