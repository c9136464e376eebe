package conformance

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// buddyPiece is a block of the model.
type buddyPiece struct {
	at, size uint64
	live     bool
}

func (p buddyPiece) end() uint64 { return p.at + p.size }

// buddyModel is a list of live blocks and no tree: each request tries every place, from the lowest
// up. wrong names a bug, for the controls.
type buddyModel struct {
	first, end, smallest uint64
	lives                []buddyPiece // in order of address
	// of a buddy that never merges: the freed blocks
	torn                                        []buddyPiece
	used, peak, given, asked, failed, scattered uint64
	wrong                                       string
}

// newBuddyModel finds the number of smallest blocks by trying.
func newBuddyModel(start, end, smallest uint64) *buddyModel {
	m := &buddyModel{smallest: smallest}
	for count := (end - start) / smallest; count > 0; count-- {
		m.first = up(start+208+1+count, smallest)
		m.end = m.first + count*smallest
		if m.end <= end {
			break
		}
	}
	return m
}

func (m *buddyModel) reset() { m.lives, m.torn, m.used, m.given, m.asked = nil, nil, 0, 0, 0 }

func (m *buddyModel) sizeFor(size, align uint64) uint64 {
	size = max(min(size, 1<<38), align, m.smallest)
	return 1 << bits.Len64(size-1)
}

// fits reports whether a block's place is free.
func (m *buddyModel) fits(p buddyPiece) bool {
	inTheWay := func(q buddyPiece) bool { return p.at < q.end() && q.at < p.end() }
	tears := func(q buddyPiece) bool { return inTheWay(q) && q.size < p.size }
	return p.at >= m.first && p.end() <= m.end && !slices.ContainsFunc(m.lives, inTheWay) &&
		!slices.ContainsFunc(m.torn, tears)
}

// origin returns the address that alignment counts from, up to AlignMax.
func (m *buddyModel) origin() uint64 { return m.first &^ (arena_c.AlignMax - 1) }

// search returns the lowest place for a block of the size that overlaps no live block.
func (m *buddyModel) search(size uint64) (at uint64, ok bool) {
	step := size
	if m.wrong == "aligns to the half" {
		step = max(size/2, m.smallest)
	}
	from := m.origin() + up(m.first-m.origin(), step)
	if m.wrong == "the highest" {
		for at := m.origin() + (m.end-m.origin())/step*step; at >= from+step; {
			at -= step
			if m.fits(buddyPiece{at, size, true}) {
				return at, true
			}
		}
		return 0, false
	}
	for at := from; at < m.end; at += step {
		if m.fits(buddyPiece{at, size, true}) {
			return at, true
		}
	}
	return 0, false
}

func (m *buddyModel) take(at, size uint64) {
	i, _ := slices.BinarySearchFunc(m.lives, at,
		func(p buddyPiece, at uint64) int { return cmp.Compare(p.at, at) })
	m.lives = slices.Insert(m.lives, i, buddyPiece{at, size, true})
	m.used += size
}

func (m *buddyModel) count(asked, size uint64) {
	m.peak = max(m.peak, m.used)
	m.asked += asked
	m.given += size
}

func (m *buddyModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if badAlign(align) {
		return 0, 0, refused
	}
	got = m.sizeFor(size, align)
	at, ok := m.search(got)
	if !ok {
		m.failed++
		if got <= m.end-m.first-m.used {
			m.scattered++
		}
		return 0, 0, full
	}
	m.take(at, got)
	m.count(size, got)
	return at, got, given
}

// index finds the live block that begins at an address.
func (m *buddyModel) index(at uint64) int {
	return slices.IndexFunc(m.lives, func(p buddyPiece) bool {
		return p.at == at || m.wrong == "frees inside of a block" && p.at < at && at < p.end()
	})
}

func (m *buddyModel) release(at uint64) bool {
	i := m.index(at)
	if i < 0 {
		return m.wrong == "frees twice"
	}
	if m.wrong == "never melts" {
		m.torn = append(m.torn, m.lives[i])
	}
	m.used -= m.lives[i].size
	m.lives = slices.Delete(m.lives, i, i+1)
	return true
}

// resized returns the block's new place: the same, cut or with free halves after it, or another.
func (m *buddyModel) resized(at, size uint64) (to uint64, a answer) {
	i := m.index(at)
	if i < 0 {
		return 0, refused
	}
	had, want := m.lives[i].size, m.sizeFor(size, 1)
	m.lives = slices.Delete(m.lives, i, i+1)
	grown := buddyPiece{at, want, true}
	if want <= had || (at-m.origin())%want == 0 && m.fits(grown) ||
		m.wrong == "grows over another" && grown.end() <= m.end {
		m.used -= had
		m.take(at, want)
		m.count(size, want)
		return at, given
	}
	m.used -= had
	m.take(at, had)
	to, _, a = m.alloc(size, 1)
	if a == given {
		m.release(at)
	}
	return to, a
}

// pieces returns all blocks: the live ones, and in the gaps the largest possible ones.
func (m *buddyModel) pieces() (all []buddyPiece) {
	at := m.first
	for _, p := range append(slices.Clone(m.lives), buddyPiece{at: m.end}) {
		for at < p.at {
			size := m.smallest
			for (at-m.origin())%(2*size) == 0 && at+2*size <= p.at {
				size *= 2
			}
			all = append(all, buddyPiece{at, size, false})
			at += size
		}
		if p.live {
			all = append(all, p)
			at = p.end()
		}
	}
	return all
}

func (m *buddyModel) largest() (largest uint64) {
	for _, p := range m.pieces() {
		if !p.live {
			largest = max(largest, p.size)
		}
	}
	return largest
}

func (m *buddyModel) live(at, _ uint64) bool { return m.index(at) >= 0 }
func (m *buddyModel) room() uint64           { return m.largest() }
func (m *buddyModel) mark() uint64           { return 0 }
func (m *buddyModel) rewind(uint64) bool     { return false }
