package arena

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Stack frees its newest block, or all blocks since a mark. Its second end, [Stack.Far], does the
// same. A block costs 16 bytes of header and is aligned to at least 16.
type Stack struct {
	header *arena_c.Stack
	gen    uint64
}

var (
	_ Freer = Stack{}
	_ Freer = StackFar{}
)

// NewStack makes a Stack on the block, whose contents are lost. The block has at least 192 bytes;
// the header takes 128 of them.
func NewStack(block []byte) (Stack, error) {
	room, err := roomIn(block, "Stack", arena_c.RoomStack, 2*arena_c.LineSize)
	if err != nil {
		return Stack{}, err
	}
	header := arena_c.StackInit(room)
	return Stack{header, header.Gen}, nil
}

// Alloc returns size bytes aligned to align, not zeroed, or nil when the stack is full.
func (s Stack) Alloc(size, align uint64) unsafe.Pointer {
	size, mask := asked("Stack", size, align)
	return s.its().Push(s.gen, size, mask|arena_c.StackMask)
}

// Free frees the newest live block. For any other address it returns an error and changes nothing.
func (s Stack) Free(p unsafe.Pointer) error { return refused("Stack.Free", s.its().Free(p)) }

// Mark returns the current position.
func (s Stack) Mark() Mark { return Mark(s.its().Cursor) }

// Rewind frees the blocks that are newer than the mark. It returns an error, and changes nothing,
// for a mark above the stack, inside a block, or of the other end. Cost: O(blocks freed).
func (s Stack) Rewind(m Mark) error { return refusedMark("Stack", m, s.its().Rewind(uint64(m))) }

// Reset frees all blocks of both ends.
func (s Stack) Reset() { s.its().Reset() }

// Stats returns the counts of the near end.
func (s Stack) Stats() Stats { return nearStats((*arena_c.Ends)(s.its())) }

// Padding returns the bytes of Used that aren't part of a request: 16 for each live block, and
// alignment. Cost: O(blocks).
func (s Stack) Padding() uint64 { return s.its().Padding() }

// Far returns the other end of the stack, which allocates downwards from the end of the block. Both
// ends share the free bytes. Each end frees its own newest block and has its own marks.
func (s Stack) Far() StackFar { return StackFar(s) }

// StackFar is the far end of a Stack.
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

// Mark returns the current position.
func (f StackFar) Mark() Mark { return Mark(f.its().Limit) }

// Rewind is Stack.Rewind at this end.
func (f StackFar) Rewind(m Mark) error {
	return refusedMark("StackFar", m, f.its().RewindFar(uint64(m)))
}

// Reset frees all blocks of this end.
func (f StackFar) Reset() { f.its().ResetFar() }

// Stats returns the counts of this end. Its padding isn't counted.
func (f StackFar) Stats() Stats { return farStats((*arena_c.Ends)(f.its())) }

func (s Stack) its() *arena_c.Stack { return made(s.header, "Stack") }

func (f StackFar) its() *arena_c.Stack { return made(f.header, "StackFar") }
