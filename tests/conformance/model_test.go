package conformance

import "math/bits"

// The rules of the arenas, in the plainest and slowest form.

func up(n, align uint64) uint64 { return (n + align - 1) / align * align }

func badAlign(align uint64) bool { return bits.OnesCount64(align) != 1 || align > 1<<20 }

// linearModel is an aligned bump between two addresses.
type linearModel struct{ start, cursor, end uint64 }

func (m *linearModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if badAlign(align) {
		return 0, 0, refused
	}
	at = up(m.cursor, align)
	if at > m.end || size > m.end-at {
		return 0, 0, full
	}
	m.cursor = at + size
	return at, size, given
}

func (m *linearModel) release(uint64) bool { return false }
func (m *linearModel) mark() uint64        { return m.cursor }
func (m *linearModel) room() uint64        { return m.end - m.cursor }
func (m *linearModel) reset()              { m.cursor = m.start }

func (m *linearModel) live(at, size uint64) bool {
	return at+size <= m.cursor && (size > 0 || at < m.cursor)
}

func (m *linearModel) rewind(mark uint64) bool {
	if mark < m.start || mark > m.cursor {
		return false
	}
	m.cursor = mark
	return true
}

// stackModel keeps each block's address, and the end of the stack before it.
type stackModel struct {
	linearModel
	blocks [][2]uint64 // before, at
}

func (m *stackModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if badAlign(align) {
		return 0, 0, refused
	}
	at = up(m.cursor+16, max(align, 16))
	if at > m.end || size > m.end-at {
		return 0, 0, full
	}
	m.blocks = append(m.blocks, [2]uint64{m.cursor, at})
	m.cursor = at + size
	return at, size, given
}

func (m *stackModel) room() uint64 {
	at := up(m.cursor+16, 16)
	if at > m.end {
		return 0
	}
	return m.end - at
}

func (m *stackModel) release(at uint64) bool {
	n := len(m.blocks) - 1
	if n < 0 || m.blocks[n][1] != at {
		return false
	}
	m.cursor = m.blocks[n][0]
	m.blocks = m.blocks[:n]
	return true
}

func (m *stackModel) rewind(mark uint64) bool {
	if mark == m.cursor {
		return true
	}
	for i, b := range m.blocks {
		if b[0] == mark {
			m.cursor, m.blocks = mark, m.blocks[:i]
			return true
		}
	}
	return false
}

func (m *stackModel) reset() { m.cursor, m.blocks = m.start, nil }

// poolModel returns the chunk that was put last, or else the next untouched one.
type poolModel struct {
	first, stride, count, fresh, size uint64
	put                               []uint64
	taken                             map[uint64]bool
}

// The words of a pool for each chunk: its number and its state, and with handles its generation.
const (
	besideChunk  = 4 + 1
	besideHandle = 4 + 4 + 1
)

// newPoolModel makes the chunks that fit between two addresses, with so many bytes of words for
// each below the first.
func newPoolModel(start, end, size, align, beside uint64) *poolModel {
	align = max(align, 8)
	m := &poolModel{stride: up(max(size, 8), align), size: size, taken: map[uint64]bool{}}
	first := func(n uint64) uint64 { return up(start+up(n*beside, 8), align) }
	for first(m.count+1)+(m.count+1)*m.stride <= end {
		m.count++
		m.first = first(m.count)
	}
	return m
}

func (m *poolModel) alloc(uint64, uint64) (at, got uint64, a answer) {
	switch n := len(m.put); {
	case n > 0:
		at, m.put = m.put[n-1], m.put[:n-1]
	case m.fresh < m.count:
		at = m.first + m.fresh*m.stride
		m.fresh++
	default:
		return 0, 0, full
	}
	m.taken[at] = true
	return at, m.size, given
}

func (m *poolModel) release(at uint64) bool {
	if !m.taken[at] {
		return false
	}
	delete(m.taken, at)
	m.put = append(m.put, at)
	return true
}

func (m *poolModel) live(at, _ uint64) bool { return m.taken[at] }
func (m *poolModel) room() uint64           { return 0 }
func (m *poolModel) mark() uint64           { return 0 }
func (m *poolModel) rewind(uint64) bool     { return false }
func (m *poolModel) reset()                 { panic("a pool has no reset") }
