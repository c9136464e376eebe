package arrow

import (
	"cmp"
	"fmt"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// place is the source of a query's memory. Blocks are whole cache lines of 64 bytes, so the
// capacity of a block gives their number.
type place interface {
	// resize returns another block, with b's bytes and then zeros, or nil if the place is full
	resize(lines int, b []byte) []byte
	put(b []byte)
	full(size int) error // why resize returned nil
	end() error          // frees all blocks
}

const lineSize = 64

type line [lineSize]byte

// linesOf returns the number of lines for size bytes. For a size that overflowed it returns more
// lines than fit in any memory.
func linesOf(size int) int {
	if size < 0 || size > math.MaxInt-lineSize {
		return math.MaxInt / lineSize
	}
	return (size + lineSize - 1) / lineSize
}

func bytesOf(list []line) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*lineSize)
}

// inScope keeps its newest block at the end of a list. The list grows in place while it is the
// newest allocation of the scope. Bytes freed at its end stay in its capacity.
type inScope struct {
	s    scope.Scope
	list []line
	// free bytes of s when the list last grew: if s has fewer now, another allocation follows the
	// list
	left uint64
}

var (
	lines = scope.Plain[line]()
	zeros [256]line // small enough for the processor's cache
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

// extend makes the list n lines longer in place, all zeros.
func (m *inScope) extend(n int) (ok bool) {
	defer func() {
		if v := recover(); v != nil && m.s.Err() == nil { // a full error of Append is expected
			panic(v)
		}
	}()
	end, all := len(m.list), m.list[:cap(m.list)]
	spare := min(n, len(all)-end)
	lacks := n - spare
	// the request checks that s is open; if s is full, the error names all bytes that are missing
	if lacks == 0 || uint64(lacks)*lineSize > m.s.Free() {
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

// inHeap keeps a set of its live blocks, because a query that runs out of room may leave some live,
// and the heap may hold other blocks.
type inHeap struct {
	heap arena.Reallocator
	live map[unsafe.Pointer]struct{}
	err  error // the heap's first refusal to free a block
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
	return fmt.Errorf("arrow: a query's %T has no %d contiguous bytes left: give it a larger block: %w", m.heap, size,
		scope.ErrFull)
}

func (m *inHeap) end() error {
	for p := range m.live {
		m.err = cmp.Or(m.err, m.heap.Free(p))
	}
	clear(m.live)
	return m.err
}
