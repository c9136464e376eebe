package save

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unsafe"
)

// links looks at where each arena.Ptr and arena.Slice of a state from outside leads, from the root
// and from all chunks on: play writes through them, so none may lie over words of pools or of the
// chain, over what follows the state, nor one's values over another link. So each word is a link of
// one type to all who lead to it, or a link to nobody.
type links struct {
	st     *State
	root   *shape
	pools  []*shape
	types  map[reflect.Type]*shape
	ids    uint64
	wards  []span // words of pools and nodes, by offset, in the state and before it
	inside marks
	before marks // of links only: nobody writes there
	state  []byte
	still  []byte  // what lies before the state, once that is asked for
	queue  []place // of links to look at
	done   uint64  // what comes before it in the values at work is marked
	steps  uint64
}

// span is [from, to), as offsets from the arena's header.
type span struct{ from, to uint64 }

// shape is how values of a type lie: what in them leads on.
type shape struct {
	size, align uint64
	is          *link
	parts       []shapePart
}

type shapePart struct {
	at, count uint64
	of        *shape
}

func (s *shape) leads() bool { return s.is != nil || len(s.parts) != 0 }

// link is an arena.Ptr or an arena.Slice.
type link struct {
	id   uint16 // and of its further words id+1 and so on
	of   reflect.Type
	to   *shape
	many bool
}

// place is where a link is.
type place struct {
	at uint64
	is *link
}

// linkWord is how a link is aligned, in which marks count.
const linkWord = uint64(unsafe.Alignof(struct{ stored uint64 }{}.stored))

// linkSteps is how much work any state may be; a large one may be more.
const linkSteps = 1 << 24

func newLinks(st *State) *links {
	l := &links{st: st, types: map[reflect.Type]*shape{}}
	l.root = l.shape(st.root)
	leads := l.root.leads()
	for i := range st.pools {
		l.pools = append(l.pools, l.shape(st.pools[i].of))
		leads = leads || l.pools[i].leads()
	}
	if !leads {
		return l
	}
	row := st.saved.Stack().Row()
	for i := range row.Pools {
		if h := row.Pool(i); h.Gen != 0 {
			at := uint64(uintptr(unsafe.Pointer(h))) - uint64(uintptr(unsafe.Pointer(&row.Arena)))
			l.wards = append(l.wards, span{at + h.Numbers, at + h.Chunks})
		}
	}
	for node := range st.saved.Stack().NodesSince(0) {
		l.wards = append(l.wards, span{node.At, node.At + node.Size})
	}
	for i := range st.tenants {
		at := st.mark + st.tenants[i].at
		l.wards = append(l.wards, span{at, at + st.tenants[i].size})
	}
	slices.SortFunc(l.wards, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	l.inside = newMarks(st.mark, st.end)
	l.inside.plain = make([]uint64, len(l.inside.linked))
	return l
}

// shape describes a type once.
func (l *links) shape(t reflect.Type) *shape {
	if s := l.types[t]; s != nil {
		return s
	}
	s := &shape{size: uint64(t.Size()), align: uint64(t.Align())}
	l.types[t] = s
	if to := pointsTo(t); to != nil {
		s.is = &link{id: uint16(l.ids), of: t, many: s.size != 8}
		if l.ids += s.size / linkWord; l.ids > math.MaxUint16 {
			l.ids -= s.size / linkWord // of so many types the last are taken for one
		}
		s.is.to = l.shape(to)
		return s
	}
	switch t.Kind() {
	case reflect.Array:
		if of := l.shape(t.Elem()); of.leads() && t.Len() != 0 {
			s.parts = []shapePart{{0, uint64(t.Len()), of}}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if of := l.shape(f.Type); of.leads() {
				s.parts = append(s.parts, shapePart{uint64(f.Offset), 1, of})
			}
		}
	}
	return s
}

// check looks at a state.
func (l *links) check(state []byte) error {
	if l.inside.linked == nil { // nothing leads anywhere
		return nil
	}
	l.state, l.queue, l.steps = state, l.queue[:0], 0
	l.inside.clear()
	l.before.clear()
	err := l.values(l.st.mark, 1, l.root.size, l.root)
	for i := 0; i < len(l.pools) && err == nil; i++ {
		h := l.st.pools[i].header
		err = l.values(l.st.mark+l.st.pools[i].first, uint64(h.Count), h.Stride, l.pools[i])
	}
	for err == nil && len(l.queue) != 0 {
		last := len(l.queue) - 1
		from := l.queue[last]
		l.queue = l.queue[:last]
		if err = l.follow(from); err != nil {
			err = fmt.Errorf("region %s, offset %#x: an %s %w", l.st.saved.Name(),
				from.at-l.st.header().Start, typeName(from.is.of), err)
		}
	}
	l.state, l.still = nil, nil
	return err
}

// follow looks at what a link leads to, if Get gives it.
func (l *links) follow(from place) error {
	to, count, start := from.is.to, uint64(1), l.st.header().Start
	stored := l.word(from.at)
	if from.is.many {
		count = l.word(from.at + 8)
	}
	base := l.st.saved.Stack().Row().Size()
	if stored == 0 || stored > base || to.size == 0 || count == 0 || count > base/to.size ||
		count*to.size > base-(stored-1) || (stored-1)&(to.align-1) != 0 {
		return nil
	}
	at := start + stored - 1
	end := at + count*to.size
	i, _ := slices.BinarySearchFunc(l.wards, at, func(s span, at uint64) int {
		return cmp.Compare(s.to, at+1) // the first that ends behind it
	})
	switch {
	case end > l.st.end:
		return fmt.Errorf("leads to %d bytes at offset %#x, behind the state", end-at, at-start)
	case at < l.st.mark && end > l.st.mark:
		return fmt.Errorf("leads to %d bytes at offset %#x, before the state and in it", end-at, at-start)
	case i < len(l.wards) && l.wards[i].from < end:
		return fmt.Errorf("leads to %d bytes at offset %#x, over words of a pool or a scope, at %#x",
			end-at, at-start, l.wards[i].from-start)
	}
	return l.values(at, count, to.size, to)
}

// values marks so many values.
func (l *links) values(at, count, stride uint64, of *shape) error {
	if at < l.st.mark && !of.leads() {
		return nil
	}
	m := l.marksOf(at)
	end := at + count*stride
	l.done = at
	for ; of.leads() && count != 0; count-- {
		if err := l.value(m, at, of); err != nil {
			return err
		}
		at += stride
	}
	return l.rest(m, end)
}

// value marks the links of one value, and what is before each.
func (l *links) value(m *marks, at uint64, of *shape) error {
	if of.is != nil {
		if err := l.rest(m, at); err != nil {
			return err
		}
		l.done = at + of.size
		isNew, ok := m.link(at, of.size, of.is.id)
		if !ok {
			return l.twice(at)
		}
		if isNew && l.word(at) != 0 {
			l.queue = append(l.queue, place{at, of.is})
		}
		return l.step(1)
	}
	for i := range of.parts {
		p := &of.parts[i]
		for k := range p.count {
			if err := l.value(m, at+p.at+k*p.of.size, p.of); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest marks what is left up to an offset.
func (l *links) rest(m *marks, to uint64) error {
	if m.plain == nil || l.done >= to {
		return nil
	}
	if at, ok := m.fill(l.done, to); !ok {
		return l.twice(at)
	}
	return l.step((to - l.done) / 64 / linkWord)
}

func (l *links) step(n uint64) error {
	if l.steps += n; l.steps > max(linkSteps, 8*uint64(len(l.state))) {
		return fmt.Errorf("leads to what too many lead to")
	}
	return nil
}

func (l *links) twice(at uint64) error {
	return fmt.Errorf("leads to offset %#x, where another has an arena.Ptr or arena.Slice, or a "+
		"value where it has one", at-l.st.header().Start)
}

// word is the one at an offset.
func (l *links) word(at uint64) uint64 {
	if at >= l.st.mark {
		return binary.LittleEndian.Uint64(l.state[at-l.st.mark:])
	}
	return binary.LittleEndian.Uint64(l.still[at-l.st.header().Start:])
}

// marksOf are those of an offset.
func (l *links) marksOf(at uint64) *marks {
	if at >= l.st.mark {
		return &l.inside
	}
	if l.still == nil {
		l.still = l.st.before()
	}
	if l.before.linked == nil {
		l.before = newMarks(l.st.header().Start, l.st.mark)
	}
	return &l.before
}

// marks say which words are links, and which somebody has as something else.
type marks struct {
	from          uint64
	linked, plain []uint64 // a bit a word
	ids           []uint16 // of those that are links
}

func newMarks(from, to uint64) marks {
	words := (to - from + linkWord - 1) / linkWord
	return marks{from: from, linked: make([]uint64, words/64+1), ids: make([]uint16, words)}
}

func (m *marks) clear() {
	clear(m.linked)
	clear(m.plain)
}

// link marks a link. ok: it is none of another type, and nothing else.
func (m *marks) link(at, size uint64, id uint16) (isNew, ok bool) {
	first := (at - m.from) / linkWord
	isNew = m.linked[first/64]>>(first%64)&1 == 0
	for i := first; i < first+size/linkWord; i++ {
		bit := uint64(1) << (i % 64)
		linked := m.linked[i/64]&bit != 0
		if linked == isNew || linked && m.ids[i] != id || m.plain != nil && m.plain[i/64]&bit != 0 {
			return isNew, false
		}
		m.linked[i/64] |= bit
		m.ids[i] = id
		id++
	}
	return isNew, true
}

// fill marks [from, to) as something else; not ok: at that offset a link is.
func (m *marks) fill(from, to uint64) (at uint64, ok bool) {
	first, last := (from-m.from)/linkWord, (to-m.from-1)/linkWord
	for i := first / 64; i <= last/64; i++ {
		bits := ^uint64(0)
		if i == first/64 {
			bits <<= first % 64
		}
		if i == last/64 {
			bits &= ^uint64(0) >> (63 - last%64)
		}
		if m.linked[i]&bits != 0 {
			return max(from, m.from+64*i*linkWord), false
		}
		m.plain[i] |= bits
	}
	return 0, true
}
