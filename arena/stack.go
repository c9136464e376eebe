package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Stack frees the last block, or all since a mark, and has a second end that does the same: Far. Each block costs 16
// bytes beside its own, and is aligned to 16 at least. It is a small value; copies are the same arena.
type Stack struct {
	header *arena_c.Stack
	gen    uint64
}

// NewStack makes a stack of the block, which has at least 192 bytes: the header takes 128. What was in the block is lost.
func NewStack(block []byte) (Stack, error) {
	if err := checkTwoLines("Stack", block); err != nil {
		return Stack{}, err
	}
	header := arena_c.StackInit(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)))
	return Stack{header, header.Gen}, nil
}

// Alloc gives size bytes aligned to align, not zeroed; nil when the stack is full.
func (s Stack) Alloc(size, align uint64) unsafe.Pointer {
	return s.header.Push(s.gen, size, mask("Stack", size, align)|arena_c.StackMask)
}

// Free frees the last live block. Any other address is refused and changes nothing.
func (s Stack) Free(p unsafe.Pointer) error { return stackError("Stack.Free", s.header.Free(p)) }

// Mark is the position now.
func (s Stack) Mark() Mark { return Mark(s.header.Cursor) }

// Rewind frees the blocks that are newer than the mark. A mark that is newer than the stack, lies inside a block or is of
// the other end is refused and changes nothing. Cost: O(blocks freed).
func (s Stack) Rewind(m Mark) error { return stackError("Stack.Rewind", s.header.Rewind(uint64(m))) }

// Reset frees everything at both ends.
func (s Stack) Reset() { s.header.Reset() }

// Size is the room of the empty stack, Used what the near end has allocated with its padding, Padding what of it nobody
// asked for: the 16 bytes of each live block, and its alignment; it costs O(blocks). Peak is the highest Used. What is free
// between the ends is Size less the Used of both.
func (s Stack) Size() uint64    { return s.header.End - s.header.Start }
func (s Stack) Used() uint64    { return s.header.Cursor - s.header.Start }
func (s Stack) Padding() uint64 { return s.header.Padding() }
func (s Stack) Peak() uint64    { return (*arena_c.Ends)(s.header).Peak() }

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
	return f.header.PushFar(f.gen, size, mask("StackFar", size, align)|arena_c.StackMask)
}

// Free is Stack.Free at this end.
func (f StackFar) Free(p unsafe.Pointer) error {
	return stackError("StackFar.Free", f.header.FreeFar(p))
}

// Mark is the position now.
func (f StackFar) Mark() Mark { return Mark(f.header.Limit) }

// Rewind is Stack.Rewind at this end.
func (f StackFar) Rewind(m Mark) error {
	return stackError("StackFar.Rewind", f.header.RewindFar(uint64(m)))
}

// Reset frees everything at this end.
func (f StackFar) Reset() { f.header.ResetFar() }

// Used is what this end has allocated with its padding, Peak the highest Used.
func (f StackFar) Used() uint64 { return f.header.End - f.header.Limit }
func (f StackFar) Peak() uint64 { return (*arena_c.Ends)(f.header).PeakFar() }

func stackError(what string, code arena_c.Code) error {
	if code == arena_c.OK {
		return nil
	}
	return fmt.Errorf("arena: BUG: %s: %v", what, code)
}
