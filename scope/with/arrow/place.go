package arrow

import (
	"cmp"
	"fmt"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// place is where a query's memory comes from. Blocks begin at a line and have whole ones, so their
// capacity says how many.
type place interface {
	resize(lines int, b []byte) []byte // another block has b's bytes, and zeros behind them; nil: it is full
	put(b []byte)
	full(size int) error // why resize gave nil
	end() error          // all its blocks
}

const lineSize = 64

type line [lineSize]byte

// linesOf is how many lines that many bytes need. A size that overflowed, in a query that asks for
// that much, needs more than there are.
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

// inScope has the newest block at the end of a list, which grows where it lies while it is the last
// thing in the scope, and keeps what its blocks give back.
type inScope struct {
	s    scope.Scope
	list []line
	left uint64 // of s, when the list grew last: else something lies behind it
}

var (
	lines = scope.Plain[line]()
	zeros [256]line // so few that a processor keeps them at hand
)

func (m *inScope) resize(n int, b []byte) []byte {
	has, last, spare := cap(b)/lineSize, m.isLast(b), cap(m.list)-len(m.list)
	grows := m.s.Free() == m.left
	switch {
	case last && n <= has:
		m.list = m.list[:len(m.list)-has+n]
		return b[: n*lineSize : n*lineSize]
	case n <= has:
		return b[:cap(b)]
	case last && (grows || n-has <= spare):
		if !m.extend(n - has) {
			return nil
		}
	case spare > 0 && (grows || n <= spare):
		if !m.extend(n) {
			return nil
		}
		copy(bytesOf(m.list[len(m.list)-n:]), b)
	default:
		p := m.s.TryAllocUnzeroed(uint64(n)*lineSize, lineSize)
		if p == nil {
			return nil
		}
		m.list, m.left = unsafe.Slice((*line)(p), n), m.s.Free()
		block := bytesOf(m.list)
		clear(block[copy(block, b):])
	}
	return bytesOf(m.list[len(m.list)-n:])
}

// extend has the list be n lines longer, all zeros, where it lies.
func (m *inScope) extend(n int) (ok bool) {
	defer func() {
		if v := recover(); v != nil && m.s.Err() == nil { // an Append that s refuses is an answer
			panic(v)
		}
	}()
	end, all := len(m.list), m.list[:cap(m.list)]
	spare := min(n, len(all)-end)
	lacks := n - spare
	if lacks == 0 || uint64(lacks)*lineSize > m.s.Free() { // is s open; and of a full s says what lacks, all of it
		if m.s.TryAllocUnzeroed(uint64(lacks)*lineSize, 1) == nil {
			return false
		}
	}
	for lacks > 0 {
		some := zeros[:min(lacks, len(zeros))]
		all = lines.Append(m.s, all, some...)
		lacks -= len(some)
	}
	m.list, m.left = all[:end+n], m.s.Free()
	clear(m.list[end : end+spare])
	return true
}

// isLast says whether b is the end of the list.
func (m *inScope) isLast(b []byte) bool {
	at := len(m.list) - cap(b)/lineSize
	return cap(b) > 0 && cap(b)%lineSize == 0 && at >= 0 &&
		unsafe.Pointer(&m.list[at]) == unsafe.Pointer(unsafe.SliceData(b))
}

func (m *inScope) put(b []byte) {
	if m.isLast(b) {
		m.list = m.list[:len(m.list)-cap(b)/lineSize]
	}
}

func (m *inScope) full(int) error { return m.s.Err() }

func (m *inScope) end() error { return nil }

// inHeap knows its blocks, since who is full leaves some behind, and what isn't one of them is no
// business of the heap's.
type inHeap struct {
	heap arena.Reallocator
	live map[unsafe.Pointer]struct{}
	err  error // the first that the heap refused to take back
}

func (m *inHeap) resize(n int, b []byte) []byte {
	var q unsafe.Pointer
	var err error
	size, p := uint64(n)*lineSize, unsafe.Pointer(unsafe.SliceData(b))
	_, ours := m.live[p]
	if ours {
		q, err = m.heap.Realloc(p, size)
		m.err = cmp.Or(m.err, err)
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

func (m *inHeap) put(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if _, ours := m.live[p]; ours {
		delete(m.live, p)
		m.err = cmp.Or(m.err, m.heap.Free(p))
	}
}

func (m *inHeap) full(size int) error {
	if m.err != nil {
		return m.err
	}
	return fmt.Errorf("arrow: a query's %T has no %d bytes left that lie together: give it a larger block: %w", m.heap, size,
		scope.ErrFull)
}

func (m *inHeap) end() error {
	for p := range m.live {
		m.err = cmp.Or(m.err, m.heap.Free(p))
	}
	clear(m.live)
	return m.err
}
