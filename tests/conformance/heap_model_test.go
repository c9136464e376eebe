package conformance

import (
	"math/bits"
	"slices"
)

// heapPiece is a block of the model: at is the address of its header.
type heapPiece struct {
	at, size, asked, align uint64
	live                   bool
}

// heapModel is two-level segregated fit once more, with slices for lists and no bits: the pieces in order of address, and
// the free ones by class, last freed first. wrong names a bug that somebody shipped: for the controls.
type heapModel struct {
	base, first, end                   uint64
	pieces                             []*heapPiece
	lists                              map[uint64][]*heapPiece
	used, peak, lives, failed, bounded uint64
	wrong                              string
}

const heapLooks = 8

// heapClass: steps of 16 below 256, then 16 steps to each power of two.
func heapClass(size uint64) uint64 {
	if size < 256 {
		return size / 16
	}
	power := uint64(bits.Len64(size) - 1)
	return 16*(power-7) + (size-1<<power)*16>>power
}

func newHeapModel(start, end uint64) *heapModel {
	rows := heapClass(end-start-240)/16 + 1
	m := &heapModel{base: start, first: start + up(88+136*rows, 16), end: start + (end-start)/16*16 - 16}
	m.reset()
	return m
}

func (m *heapModel) reset() {
	m.used, m.lives = 0, 0
	m.lists = map[uint64][]*heapPiece{}
	m.pieces = []*heapPiece{{at: m.first, size: m.end - m.first}}
	m.list(m.pieces[0])
}

func (m *heapModel) list(p *heapPiece) {
	c := heapClass(p.size)
	m.lists[c] = slices.Insert(m.lists[c], 0, p)
}

func (m *heapModel) unlist(p *heapPiece) {
	c := heapClass(p.size)
	m.lists[c] = slices.DeleteFunc(m.lists[c], func(q *heapPiece) bool { return p == q })
}

func heapNeed(asked uint64) uint64 { return max(32, up(asked, 16)+16) }

// gap is what lies before an aligned block at the front of free room: nothing, or a block.
func (m *heapModel) gap(at, align uint64) uint64 {
	gap := up(at+16, align) - (at + 16)
	if gap == 16 {
		gap += align
	}
	return gap
}

// look goes through the first pieces of the lists from..to.
func (m *heapModel) look(from, to, need, align uint64) (found *heapPiece, cut bool) {
	looks := 0
	for c := from; c <= to; c++ {
		for _, p := range m.lists[c] {
			if looks++; looks > heapLooks {
				return nil, true
			}
			if p.size >= m.gap(p.at, align)+need {
				return p, false
			}
		}
	}
	return nil, false
}

func (m *heapModel) search(need, align uint64) *heapPiece {
	low, high := heapClass(need), heapClass(need)
	if align > 16 {
		high = heapClass(need + align + 16)
	}
	var p *heapPiece
	var cuts [3]bool
	if m.wrong != "never its own class" {
		p, cuts[0] = m.look(low, low, need, align)
	}
	if p == nil && high > low {
		p, cuts[1] = m.look(high, high, need, align)
	}
	if p != nil {
		return p
	}
	for c := high + 1; c <= heapClass(m.end-m.first); c++ {
		if len(m.lists[c]) > 0 {
			return m.lists[c][0]
		}
	}
	if high > low {
		p, cuts[2] = m.look(low+1, high-1, need, align)
	}
	if p == nil {
		m.failed++
		if slices.Contains(cuts[:], true) {
			m.bounded++
		}
	}
	return p
}

// place puts a live block after the gap at the front of room that begins at `at`, in place of the pieces i to j.
func (m *heapModel) place(i, j int, at, room, gap, asked, align uint64) uint64 {
	live := &heapPiece{at + gap, heapNeed(asked), asked, align, true}
	rest := room - gap - live.size
	if rest < 32 {
		live.size += rest
	}
	pieces := []*heapPiece{live}
	if rest >= 32 {
		tail := &heapPiece{at: live.at + live.size, size: rest}
		if m.wrong == "splits too early" {
			live.size, tail.at, tail.size = live.size-16, tail.at-16, tail.size+16
		}
		pieces = append(pieces, tail)
		m.list(tail)
	}
	if gap > 0 {
		front := &heapPiece{at: at, size: gap}
		pieces = slices.Insert(pieces, 0, front)
		m.list(front)
	}
	m.pieces = slices.Replace(m.pieces, i, j, pieces...)
	m.used += live.size
	m.peak = max(m.peak, m.used)
	return live.at + 16
}

func (m *heapModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if badAlign(align) {
		return 0, 0, refused
	}
	size = min(size, 1<<38) // no sum wraps
	align = max(align, 16)
	p := m.search(heapNeed(size), align)
	if p == nil {
		return 0, 0, full
	}
	m.unlist(p)
	i := slices.Index(m.pieces, p)
	m.lives++
	at = m.place(i, i+1, p.at, p.size, m.gap(p.at, align), size, align)
	if m.wrong == "aligns to 8" && size%2 == 1 {
		at -= 8
	}
	return at, size, given
}

// index finds the live block whose bytes begin at an address.
func (m *heapModel) index(at uint64) int {
	return slices.IndexFunc(m.pieces, func(p *heapPiece) bool { return p.live && p.at+16 == at })
}

// around is the run of pieces from a block's free neighbours before it to those behind it.
func (m *heapModel) around(i int, down bool) (from, to int, size uint64) {
	from, to = i, i+1
	if down && i > 0 && !m.pieces[i-1].live {
		from--
	}
	if to < len(m.pieces) && !m.pieces[to].live {
		to++
	}
	for _, p := range m.pieces[from:to] {
		size += p.size
	}
	return from, to, size
}

func (m *heapModel) unlistFree(from, to int) {
	for _, p := range m.pieces[from:to] {
		if !p.live {
			m.unlist(p)
		}
	}
}

func (m *heapModel) release(at uint64) bool {
	i := m.index(at)
	if i < 0 {
		return m.wrong == "frees twice"
	}
	m.used -= m.pieces[i].size
	m.lives--
	from, to, size := m.around(i, true)
	if m.wrong == "never melts" {
		from, to, size = i, i+1, m.pieces[i].size
	}
	m.unlistFree(from, to)
	p := &heapPiece{at: m.pieces[from].at, size: size}
	m.pieces = slices.Replace(m.pieces, from, to, p)
	m.list(p)
	return true
}

// resized gives where the block is then: in place, further down, or elsewhere.
func (m *heapModel) resized(at, size uint64) (to uint64, a answer) {
	i := m.index(at)
	if i < 0 {
		return 0, refused
	}
	size = min(size, 1<<38)
	p := *m.pieces[i]
	if m.wrong == "realloc forgets the alignment" {
		p.align = 16
	}
	for _, down := range []bool{false, true} {
		from, until, room := m.around(i, down)
		start := m.pieces[from].at
		gap := uint64(0)
		if from < i {
			gap = m.gap(start, p.align)
		}
		if room >= gap+heapNeed(size) {
			m.unlistFree(from, until)
			m.used -= p.size
			return m.place(from, until, start, room, gap, size, p.align), given
		}
	}
	to, _, a = m.alloc(size, p.align)
	if a == given {
		m.release(at)
	}
	return to, a
}

func (m *heapModel) largest() (largest uint64) {
	for _, p := range m.pieces {
		if !p.live {
			largest = max(largest, p.size-16)
		}
	}
	return largest
}

func (m *heapModel) live(at, _ uint64) bool { return m.index(at) >= 0 }
func (m *heapModel) room() uint64           { return m.largest() }
func (m *heapModel) mark() uint64           { return 0 }
func (m *heapModel) rewind(uint64) bool     { return false }
