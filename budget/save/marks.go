package save

import "math/bits"

// marks records the use of each byte of a state by roots and links: part of a link, a bool, or a
// number.
type marks struct {
	from   uint64
	linked []uint64 // one bit a word
	ids    []uint16 // of the linked words
	bools  []uint64 // one bit a byte
	plain  []uint64 // one bit a byte: numbers
}

func newMarks(from, to uint64) *marks {
	words, blocks := (to-from)/linkWord+1, (to-from)/64+1
	return &marks{from, make([]uint64, words/64+1), make([]uint16, words), make([]uint64, blocks),
		make([]uint64, blocks)}
}

func (m *marks) clear() {
	clear(m.linked)
	clear(m.bools)
	clear(m.plain)
}

// link marks a link. isNew reports whether the link wasn't marked before; ok reports whether the
// bytes have no other mark.
func (m *marks) link(at, size uint64, id uint16) (isNew, ok bool) {
	first := (at - m.from) / linkWord
	isNew = m.linked[first/64]>>(first%64)&1 == 0
	for i := first; i < first+size/linkWord; i++ {
		bit, byte := uint64(1)<<(i%64), i*linkWord
		linked := m.linked[i/64]&bit != 0
		other := (m.bools[byte/64] | m.plain[byte/64]) >> (byte % 64) & (1<<linkWord - 1)
		if other != 0 || linked == isNew || linked && m.ids[i] != id {
			return isNew, false
		}
		m.linked[i/64] |= bit
		m.ids[i] = id
		id++
	}
	return isNew, true
}

// fill marks [from, to) in is, which is bools or plain. If a byte there has another mark, fill
// returns an offset less than 64 bytes before it.
func (m *marks) fill(is, other []uint64, from, to uint64) (at uint64, ok bool) {
	first, last := from-m.from, to-m.from-1
	for i := first / 64; i <= last/64; i++ {
		in := ^uint64(0)
		if i == first/64 {
			in <<= first % 64
		}
		if i == last/64 {
			in &= ^uint64(0) >> (63 - last%64)
		}
		if (other[i]|m.linkedIn(i))&in != 0 {
			return max(from, m.from+64*i), false
		}
		is[i] |= in
	}
	return 0, true
}

// linkedIn returns a bit for each byte of a block of 64 that is part of a link.
func (m *marks) linkedIn(block uint64) (bytes uint64) {
	const words = 64 / linkWord
	first := block * words
	linked := m.linked[first/64] >> (first % 64) & (1<<words - 1)
	for ; linked != 0; linked &= linked - 1 {
		bytes |= (1<<linkWord - 1) << (uint64(bits.TrailingZeros64(linked)) * linkWord)
	}
	return bytes
}
