package arrow

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// place is where a query's memory comes from. Blocks begin at a line and have whole ones, so their capacity says how many.
type place interface {
	resize(lines int, b []byte) []byte // another block has b's bytes, and zeros behind them; nil: it is full
	free(b []byte)
	full(size int) error // why resize gave nil
	end() error          // all its blocks
}

const lineSize = 64

type line [lineSize]byte

// linesOf is how many lines that many bytes need. A size that overflowed, in a query that asks for that much, needs more than
// there are.
func linesOf(size int) int {
	if size < 0 || size > math.MaxInt-lineSize {
		return math.MaxInt / lineSize
	}
	return (size + lineSize - 1) / lineSize
}

// bytesOf is the block of the lines, with no capacity beyond.
func bytesOf(list []line) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*lineSize)
}

// inScope has all blocks in one list, which grows where it lies while it is the last thing in the scope. The block at its end
// grows and shrinks with it, and goes back to it; so does the one before it then.
type inScope struct {
	s    scope.Scope
	list []line
	left uint64 // of s, when the list grew last: else something lies behind it
}

var (
	lines = scope.Plain[line]()
	zeros [1024]line
)

func (m *inScope) resize(n int, b []byte) []byte {
	has, last := cap(b)/lineSize, m.isLast(b)
	switch {
	case last && n <= has:
		m.list = m.list[:len(m.list)-has+n]
		return b[: n*lineSize : n*lineSize]
	case n <= has:
		return b[:cap(b)]
	case last && m.fits(n-has):
		if !m.push(n - has) {
			return nil
		}
		return bytesOf(m.list[len(m.list)-n:])
	case !m.push(n):
		return nil
	}
	moved := bytesOf(m.list[len(m.list)-n:])
	copy(moved, b)
	return moved
}

// fits says whether n lines more lie behind the list, or would if there is room.
func (m *inScope) fits(n int) bool {
	return n <= cap(m.list)-len(m.list) || m.s.Free() == m.left
}

// push has the list be n lines longer, all zeros, or begins another.
func (m *inScope) push(n int) (ok bool) {
	defer func() {
		if v := recover(); v != nil && m.s.Err() == nil { // an Append that s refuses is an answer
			panic(v)
		}
	}()
	if !m.fits(n) {
		p := m.s.TryAllocUnzeroed(uint64(n)*lineSize, lineSize)
		if p == nil {
			return false
		}
		m.list = unsafe.Slice((*line)(p), n)
		clear(m.list)
	} else if !m.grow(n) {
		return false
	}
	m.left = m.s.Free()
	return true
}

func (m *inScope) grow(n int) bool {
	if lacks := n - (cap(m.list) - len(m.list)); lacks > 0 && uint64(lacks)*lineSize > m.s.Free() {
		return m.s.TryAllocUnzeroed(uint64(lacks)*lineSize, lineSize) != nil // it says what lacks, of all of them
	}
	for n > 0 {
		some := zeros[:min(n, len(zeros))]
		m.list = lines.Append(m.s, m.list, some...)
		n -= len(some)
	}
	return true
}

// isLast says whether b is the end of the list.
func (m *inScope) isLast(b []byte) bool {
	at := len(m.list) - cap(b)/lineSize
	return cap(b) > 0 && cap(b)%lineSize == 0 && at >= 0 &&
		unsafe.Pointer(&m.list[at]) == unsafe.Pointer(unsafe.SliceData(b))
}

func (m *inScope) free(b []byte) {
	if m.isLast(b) {
		m.list = m.list[:len(m.list)-cap(b)/lineSize]
	}
}

func (m *inScope) full(int) error { return m.s.Err() }

func (m *inScope) end() error { return nil }

// inHeap knows its blocks, since who is full leaves some behind, and what isn't one of them is no business of the heap's.
type inHeap struct {
	heap arena.Reallocator
	live map[unsafe.Pointer]struct{}
	err  error // what the heap refused to take back
}

func (m *inHeap) resize(n int, b []byte) []byte {
	var q unsafe.Pointer
	var err error
	size, p := uint64(n)*lineSize, unsafe.Pointer(unsafe.SliceData(b))
	_, ours := m.live[p]
	if ours {
		q, err = m.heap.Realloc(p, size)
		m.err = errors.Join(m.err, err)
	} else {
		q = m.heap.Alloc(size, lineSize)
	}
	if q == nil {
		return nil
	}
	delete(m.live, p)
	m.live[q] = struct{}{}
	block := bytesOf(unsafe.Slice((*line)(q), n))
	kept := min(cap(b), len(block))
	if !ours {
		kept = copy(block, b)
	}
	clear(block[kept:])
	return block
}

func (m *inHeap) free(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if _, ours := m.live[p]; ours {
		delete(m.live, p)
		m.err = errors.Join(m.err, m.heap.Free(p))
	}
}

func (m *inHeap) full(size int) error {
	return errors.Join(m.err, fmt.Errorf("arrow: a query's %T has no %d bytes left that lie together: give it a larger block: %w",
		m.heap, size, scope.ErrFull))
}

func (m *inHeap) end() error {
	for p := range m.live {
		m.err = errors.Join(m.err, m.heap.Free(p))
	}
	clear(m.live)
	return m.err
}
