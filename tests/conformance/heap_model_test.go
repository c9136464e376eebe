package conformance

import (
	"math/bits"
	"slices"
)

// heapPiece is a block of the model: at is the address of its header.
type heapPiece struct {
	at, size, asked, align uint64
	live, parked           bool
}

// heapModel is a second two-level segregated fit, with slices for lists and no bits: the pieces in
// order of address, the free ones by class and the parked ones by size, last freed first. wrong
// names a bug, for the controls.
type heapModel struct {
	base, first, end                   uint64
	pieces                             []*heapPiece
	lists, fronts                      map[uint64][]*heapPiece
	parks, parked, hand                uint64
	used, peak, lives, failed, bounded uint64
	wrong                              string
}

const (
	heapLooks = 8
	heapFront = 1024 + 16 // the largest block that is parked
)

// heapClass returns the class of a size: steps of 16 below 512, then 16 steps to each power of two.
func heapClass(size uint64) uint64 {
	if size < 512 {
		return size / 16
	}
	power := uint64(bits.Len64(size) - 1)
	return 16*(power-7) + (size-1<<power)*16>>power
}

// heapSure returns the lowest class of blocks that all have a number of bytes.
func heapSure(size uint64) uint64 {
	c := heapClass(size)
	if c == heapClass(size-16) {
		c++
	}
	return c
}

func newHeapModel(start, end, parks uint64) *heapModel {
	least, fronts := uint64(496), uint64(0)
	if parks > 0 {
		fronts = 512
	}
	lists := up(heapClass(end-start-least-fronts+32)+1, 16)
	m := &heapModel{base: start, first: start + 320 + 8*lists + fronts, end: start + (end-start)/16*16 - 16,
		parks: parks}
	m.reset()
	return m
}

func (m *heapModel) reset() {
	m.used, m.lives, m.parked, m.hand = 0, 0, 0, 0
	m.lists, m.fronts = map[uint64][]*heapPiece{}, map[uint64][]*heapPiece{}
	m.pieces = []*heapPiece{{at: m.first, size: m.end - m.first}}
	m.list(m.pieces[0])
}

// isFree reports whether a freed neighbour merges with it.
func (p *heapPiece) isFree() bool { return !p.live && !p.parked }

func (m *heapModel) list(p *heapPiece) {
	c := heapClass(p.size)
	m.lists[c] = slices.Insert(m.lists[c], 0, p)
}

func (m *heapModel) unlist(p *heapPiece) {
	c := heapClass(p.size)
	m.lists[c] = slices.DeleteFunc(m.lists[c], func(q *heapPiece) bool { return p == q })
}

// unpark takes the first parked piece of a size, if there is one.
func (m *heapModel) unpark(size uint64) *heapPiece {
	if len(m.fronts[size]) == 0 {
		return nil
	}
	p := m.fronts[size][0]
	m.fronts[size] = m.fronts[size][1:]
	p.parked = false
	m.parked--
	return p
}

// makeWay merges one parked piece in one of eight calls, and reports whether it did. It takes the
// next size with a parked piece; the search starts one size further each time.
func (m *heapModel) makeWay() bool {
	m.hand++
	if m.hand%8 != 1 {
		return false
	}
	for size := 32 + m.hand/8%64*16; ; size += 16 {
		if size > heapFront {
			size = 32
		}
		if p := m.unpark(size); p != nil {
			m.melt(p)
			return true
		}
	}
}

// flush merges all parked pieces, and reports whether there was one.
func (m *heapModel) flush() bool {
	had := m.parked > 0
	for size := uint64(32); size <= heapFront; size += 16 {
		for p := m.unpark(size); p != nil; p = m.unpark(size) {
			m.melt(p)
		}
	}
	return had
}

func heapNeed(asked uint64) uint64 { return max(32, up(asked, 16)+16) }

// gap returns the bytes before an aligned block at the front of free room: 0, or a block's.
func (m *heapModel) gap(at, align uint64) uint64 {
	gap := up(at+16, align) - (at + 16)
	if gap == 16 {
		gap += align
	}
	return gap
}

// look tries the first pieces of the lists below a class.
func (m *heapModel) look(from, below, need, align uint64) *heapPiece {
	looks := 0
	for c := from; c < below; c++ {
		for _, p := range m.lists[c] {
			if looks++; looks > heapLooks {
				if m.parked == 0 {
					m.bounded++
				}
				return nil
			}
			if p.size >= m.gap(p.at, align)+need {
				return p
			}
		}
	}
	return nil
}

func (m *heapModel) search(need, align uint64) *heapPiece {
	sure := heapSure(need)
	if align > 16 {
		sure = heapSure(need + align + 16)
	}
	for c := sure; c <= heapClass(m.end-m.first); c++ {
		if len(m.lists[c]) > 0 {
			return m.lists[c][0]
		}
	}
	if m.wrong == "never looks below" {
		return nil
	}
	return m.look(heapClass(need), sure, need, align)
}

// place puts a live block after the gap at the front of the room at `at`, in place of the pieces i
// to j.
func (m *heapModel) place(i, j int, at, room, gap, asked, align uint64) uint64 {
	live := &heapPiece{at: at + gap, size: heapNeed(asked), asked: asked, align: align, live: true}
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
	m.use(live.size)
	return live.at + 16
}

// take allocates, without melting parked pieces first.
func (m *heapModel) take(size, align uint64) (at uint64, ok bool) {
	need := heapNeed(size)
	if m.used+need > m.end-m.first {
		return 0, false
	}
	p := m.search(need, align)
	if p == nil {
		return 0, false
	}
	m.unlist(p)
	i := slices.Index(m.pieces, p)
	m.lives++
	return m.place(i, i+1, p.at, p.size, m.gap(p.at, align), size, align), true
}

func (m *heapModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if badAlign(align) {
		return 0, 0, refused
	}
	size = min(size, 1<<38) // no sum overflows
	align = max(align, 16)
	need := heapNeed(size)
	if align == 16 && need <= heapFront {
		if p := m.unpark(need); p != nil {
			p.live, p.asked, p.align = true, size, 16
			m.lives++
			m.use(need)
			return p.at + 16, size, given
		}
	}
	at, ok := m.take(size, align)
	if !ok && m.flush() {
		at, ok = m.take(size, align)
	}
	if !ok {
		m.failed++
		return 0, 0, full
	}
	if m.wrong == "aligns to 8" && size%2 == 1 {
		at -= 8
	}
	return at, size, given
}

func (m *heapModel) use(size uint64) {
	m.used += size
	m.peak = max(m.peak, m.used)
}

// index returns the live block whose bytes begin at an address.
func (m *heapModel) index(at uint64) int {
	return slices.IndexFunc(m.pieces, func(p *heapPiece) bool { return p.live && p.at+16 == at })
}

// around returns the run of pieces from a block's free neighbours before it to those after it.
func (m *heapModel) around(i int, down bool) (from, to int, size uint64) {
	from, to = i, i+1
	if down && i > 0 && m.pieces[i-1].isFree() {
		from--
	}
	if to < len(m.pieces) && m.pieces[to].isFree() {
		to++
	}
	for _, p := range m.pieces[from:to] {
		size += p.size
	}
	return from, to, size
}

func (m *heapModel) unlistFree(from, to int) {
	for _, p := range m.pieces[from:to] {
		if p.isFree() {
			m.unlist(p)
		}
	}
}

func (m *heapModel) release(at uint64) bool {
	i := m.index(at)
	if i < 0 {
		return m.wrong == "frees twice"
	}
	p := m.pieces[i]
	m.used -= p.size
	m.lives--
	p.live = false
	p.parked = true // so that makeWay doesn't merge it
	if p.size > heapFront || m.parked == m.parks && (m.parks == 0 || !m.makeWay()) {
		p.parked = false
		m.melt(p)
		return true
	}
	m.parked++
	if m.wrong != "forgets what is parked" {
		m.fronts[p.size] = slices.Insert(m.fronts[p.size], 0, p)
	}
	return true
}

// melt lists a piece without an owner, merged with its free neighbours.
func (m *heapModel) melt(p *heapPiece) {
	i := slices.Index(m.pieces, p)
	p.live = true // not free yet
	from, to, size := m.around(i, true)
	if m.wrong == "never melts" {
		from, to, size = i, i+1, p.size
	}
	m.unlistFree(from, to)
	free := &heapPiece{at: m.pieces[from].at, size: size}
	m.pieces = slices.Replace(m.pieces, from, to, free)
	m.list(free)
}

// resized returns the block's new place: the same, further down, or another.
func (m *heapModel) resized(at, size uint64) (to uint64, a answer) {
	if m.index(at) < 0 {
		return 0, refused
	}
	size = min(size, 1<<38)
	to, ok := m.resize(at, size)
	if !ok && m.flush() {
		to, ok = m.resize(at, size)
	}
	if !ok {
		m.failed++
		return 0, full
	}
	return to, given
}

func (m *heapModel) resize(at, size uint64) (to uint64, ok bool) {
	i := m.index(at)
	p := *m.pieces[i]
	if m.wrong == "realloc forgets the alignment" {
		p.align = 16
	}
	if size > p.asked && m.used-p.size+heapNeed(size) > m.end-m.first {
		return 0, false
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
			return m.place(from, until, start, room, gap, size, p.align), true
		}
	}
	to, ok = m.take(size, p.align)
	if ok {
		m.release(at)
	}
	return to, ok
}

// largest counts parked pieces: they merge before the heap refuses a request.
func (m *heapModel) largest() (largest uint64) {
	var room uint64
	for _, p := range m.pieces {
		room += p.size
		if p.live {
			room = 0
		}
		largest = max(largest, room)
	}
	return max(largest, 16) - 16
}

func (m *heapModel) live(at, _ uint64) bool { return m.index(at) >= 0 }
func (m *heapModel) room() uint64           { return m.largest() }
func (m *heapModel) mark() uint64           { return 0 }
func (m *heapModel) rewind(uint64) bool     { return false }
