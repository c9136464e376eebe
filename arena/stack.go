package arena

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Stack frees the last block, or all since a mark. Each block costs 16 bytes beside its own, and is aligned to 16 at
// least. It is a small value; copies are the same arena.
type Stack struct {
	header *arena_c.Stack
	tag    uint64
}

// NewStack makes a stack of the block. What was in the block is lost.
func NewStack(block []byte) (Stack, error) {
	if err := checkBlock("Stack", block); err != nil {
		return Stack{}, err
	}
	header := arena_c.StackInit(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)))
	return Stack{header, header.Linear.Tag()}, nil
}

// Alloc gives size bytes aligned to align, not zeroed; nil when the stack is full.
func (s Stack) Alloc(size, align uint64) unsafe.Pointer {
	return s.header.Push(s.tag, size, mask("Stack", size, align)|15)
}

// Free frees the last live block. Any other address is refused and changes nothing.
func (s Stack) Free(p unsafe.Pointer) error {
	if code := s.header.PopBlock(p); code != arena_c.OK {
		return fmt.Errorf("arena: BUG: Stack.Free: %v", code)
	}
	return nil
}

// Mark is the position now.
func (s Stack) Mark() Mark { return Mark(s.header.Linear.Cursor) }

// Rewind frees the blocks that are newer than the mark. A mark that is newer than the stack, or lies inside a block, is
// refused and changes nothing. Cost: O(blocks freed).
func (s Stack) Rewind(m Mark) error {
	if code := s.header.Rewind(uint64(m)); code != arena_c.OK {
		return fmt.Errorf("arena: BUG: Stack.Rewind to %d: %v", m, code)
	}
	return nil
}

// Reset frees everything.
func (s Stack) Reset() { s.header.Rewind(s.header.Linear.Start) }

// Size is the room of the empty stack, Used what is allocated with its padding, Peak the highest Used.
func (s Stack) Size() uint64 { return s.header.Linear.Limit - s.tag - s.header.Linear.Start }
func (s Stack) Used() uint64 { return s.header.Linear.Cursor - s.header.Linear.Start }
func (s Stack) Peak() uint64 {
	return max(s.header.Linear.Peak, s.header.Linear.Cursor) - s.header.Linear.Start
}
