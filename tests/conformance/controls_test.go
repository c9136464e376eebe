package conformance

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// Wrong arenas, each with a bug that was shipped somewhere. If the suite lets one pass, the suite
// is broken.

// wrongLinear is a bump. Its next allocation is a function of cursor, size and align, which returns
// the address and the new cursor, or false for full.
func wrongLinear(next func(start, cursor, end, size, align uint64) (at, after uint64, ok bool)) opener {
	return func(block []byte) (machine, model, error) {
		start, end := bounds(block)
		cursor := start
		return machine{
			alloc: func(size, align uint64) unsafe.Pointer {
				if badAlign(align) {
					panic("align")
				}
				at, after, ok := next(start, cursor, end, size, align)
				if !ok {
					return nil
				}
				cursor = after
				return unsafe.Add(unsafe.Pointer(unsafe.SliceData(block)), at-start)
			},
			mark:   func() uint64 { return cursor },
			rewind: func(mark uint64) error { cursor = mark; return nil },
			reset:  func() { cursor = start },
		}, &linearModel{start, start, end}, nil
	}
}

// endNotStart is the bug of a published slide, `return m_ptr += size`.
func endNotStart(_, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = up(cursor, align) + size
	return at, at, size < 1<<31 && at <= end
}

// narrowSizes keeps sizes in 32 bits: 2^32 is 0.
func narrowSizes(start, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = up(cursor, align)
	used := uint32(at-start) + uint32(size)
	return at, start + uint64(used), used <= uint32(end-start)
}

// roundedToNothing rounds sizes up to 8 without an overflow check: 2^64-1 becomes 0.
func roundedToNothing(_, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = up(cursor, align)
	after = at + (size+7)&^7
	return at, at + size&0xffff, after >= at && after <= end
}

// addedNotSubtracted writes used + scratch + size > capacity: the sum wraps.
func addedNotSubtracted(_, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = up(cursor, align)
	return at, at + size, at+size <= end
}

// offsetsAligned aligns the offset in the block, not the address.
func offsetsAligned(start, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = start + up(cursor-start, align)
	return at, at + size, at <= end && size <= end-at
}

// oneTooMany believes that the block has one byte more.
func oneTooMany(_, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = up(cursor, align)
	return at, at + size, at <= end && size <= end+1-at
}

// lastByteNever has `<` in place of `<=`.
func lastByteNever(_, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = up(cursor, align)
	return at, at + size, at < end && size < end-at
}

// startsAgain returns to its start when it is full, over live blocks.
func startsAgain(start, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	if at = up(cursor, align); at > end || size > end-at {
		at = up(start, align)
	}
	return at, at + size, at <= end && size <= end-at
}

// anyMark rewinds to any mark.
func anyMark(_, cursor, end, size, align uint64) (at, after uint64, ok bool) {
	at = up(cursor, align)
	return at, at + size, at <= end && size <= end-at
}

// wrongStack frees any pointer, and reports success.
func wrongStack(block []byte) (machine, model, error) {
	m, mod, err := openStack(block)
	right := m.release
	m.release = func(p unsafe.Pointer) error {
		_ = right(p)
		return nil
	}
	return m, mod, err
}

// wrongPool is a free list without a state for each chunk; chunks computes its number of chunks.
func wrongPool(chunks func(size, chunk uint32) uint32, checks bool) func(block []byte) (machine, model, error) {
	const chunk = 24
	return func(block []byte) (machine, model, error) {
		start, end := bounds(block)
		count, fresh := chunks(uint32(len(block)), chunk), uint32(0)
		var list []unsafe.Pointer
		at := func(i uint32) unsafe.Pointer {
			return unsafe.Add(unsafe.Pointer(unsafe.SliceData(block)), 16+uint64(i)*chunk)
		}
		m := machine{
			alloc: func(uint64, uint64) unsafe.Pointer {
				if n := len(list); n > 0 {
					p := list[n-1]
					list = list[:n-1]
					return p
				}
				if fresh == count {
					return nil
				}
				fresh++
				return at(fresh - 1)
			},
			release: func(p unsafe.Pointer) error {
				offset := address(p) - start - 16
				if checks && (offset%chunk != 0 || offset/chunk >= uint64(fresh)) {
					return errors.New("no chunk")
				}
				list = append(list, p)
				return nil
			},
		}
		return m, &poolModel{first: start + 16, stride: chunk, size: chunk, count: (end - start - 16) / chunk,
			taken: map[uint64]bool{}}, nil
	}
}

func rightCount(size, chunk uint32) uint32 { return (size - 16) / chunk }

// wrappedCount returns 2^32 / chunk for a block smaller than a chunk.
func wrappedCount(size, chunk uint32) uint32 { return (size - 16 - chunk) / chunk }

func TestTheSuiteCatchesWrongArenas(t *testing.T) {
	if instrumented {
		step.Needs(t, step.Gate) // the release build has controlled the suite
	}
	for _, wrong := range []struct {
		name string
		size int
		open opener
	}{
		{"the end, not the start", 2048, wrongLinear(endNotStart)},
		{"sizes of 32 bits", 2048, wrongLinear(narrowSizes)},
		{"a huge size rounded to 0", 2048, wrongLinear(roundedToNothing)},
		{"added, not subtracted", 2048, wrongLinear(addedNotSubtracted)},
		{"offsets aligned", 2048, wrongLinear(offsetsAligned)},
		{"one byte too many", 2048, wrongLinear(oneTooMany)},
		{"never the last byte", 2048, wrongLinear(lastByteNever)},
		{"a scratch over live memory", 2048, wrongLinear(startsAgain)},
		{"any mark", 2048, wrongLinear(anyMark)},
		{"a stack that frees in any order", 2048, wrongStack},
		{"a pool without states", 2048, wrongPool(rightCount, true)},
		{"a pool without checks", 2048, wrongPool(rightCount, false)},
		{"a pool on a block smaller than a chunk", 32, wrongPool(wrappedCount, true)},
		{"a linear's ends that don't know of each other", 2048, openBoth(linearEnds, ofItsOwn(openLinearFar))},
		{"a stack's ends that don't know of each other", 2048, openBoth(stackEnds, ofItsOwn(openStackFar))},
		{"a linear's ends with the other's marks", 2048, openBoth(linearEnds, othersMarks)},
		{"a stack's ends with the other's marks", 2048, openBoth(stackEnds, othersMarks)},
		{"a linear's far end with any mark", 2048, openBoth(linearEnds, anyFarMark)},
		{"a stack's far end with any mark", 2048, openBoth(stackEnds, anyFarMark)},
		{"a heap that aligns to 8", 8192, wrongHeap("aligns to 8")},
		{"a heap that never looks below what is sure", 8192, wrongHeap("never looks below")},
		{"a heap that forgets what is parked", 8192, wrongHeap("forgets what is parked")},
		{"a realloc that forgets the alignment", 8192, wrongHeap("realloc forgets the alignment")},
		{"a heap that frees twice", 8192, wrongHeap("frees twice")},
		{"a heap that never melts", 8192, wrongHeap("never melts")},
		{"a heap that splits too early", 8192, wrongHeap("splits too early")},
		{"a buddy that gives the highest", 8192, wrongBuddy("the highest")},
		{"a buddy that aligns to the half", 8192, wrongBuddy("aligns to the half")},
		{"a buddy that frees twice", 8192, wrongBuddy("frees twice")},
		{"a buddy that frees inside of a block", 8192, wrongBuddy("frees inside of a block")},
		{"a buddy that never melts", 8192, wrongBuddy("never melts")},
		{"a buddy that grows over another", 8192, wrongBuddy("grows over another")},
	} {
		assert.True(t, caught(wrong.size, wrong.open), "the suite lets %q pass", wrong.name)
	}
	// The same search finds no fault in the right arenas.
	for _, right := range append(subjects, subject{"a heap without a bug", 0, wrongHeap("")},
		subject{"a buddy without a bug", 0, wrongBuddy("")}) {
		assert.False(t, caught(max(right.least, 2048), right.open), right.name)
	}
}

// ofItsOwn gives the far end a separate block.
func ofItsOwn(open opener) func(near, far *machine) {
	return func(_, far *machine) { *far, _, _ = open(arena.NewBlock(2048, 64)) }
}

func othersMarks(near, far *machine) { near.rewind, far.rewind = far.rewind, near.rewind }

func anyFarMark(_, far *machine) { far.rewind = func(uint64) error { return nil } }

// caught runs random programs on an arena until the suite finds a fault.
func caught(size int, open opener) bool {
	random := rand.New(rand.NewPCG(7, 7))
	program := make([]byte, 3*300)
	for range 40 {
		block := arena.NewBlock(size, arena_c.AlignMax)
		m, mod, err := open(block)
		if err != nil {
			return false
		}
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		s := newSession(block, m, mod)
		if s.run(program) != nil || s.checked(s.giveBack()) != nil {
			return true
		}
		unpoison(block)
	}
	return false
}
