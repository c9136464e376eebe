package save

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// links checks the bools and links (arena.Ptr, Slice and String) of a state from outside. Play
// reads and writes through links, so a link may lead only to values of the state or to values that
// Readable named. The target may not overlap words of a pool or a scope, nor a tenant, unless it is
// in one of the tenant's live blocks. Nor may types share bytes if just one has a link or bool
// there, or their links differ: play would forge a link or bool by writing numbers.
//
// So each byte of a root, and of values that a link leads to, is marked: as part of a link of one
// type, as a bool, or as a number. A second visit must find the same mark. Say a root leads to a
// frog:
//
//	root at 0x00: struct{ Frogs Slice[frog]; Name Slice[byte] }
//	frog at 0x40: struct{ Weight uint64; Next Ptr[frog] }
//
// The bytes 0x40 to 0x47 are marked as numbers, and 0x48 to 0x4f as a Ptr[frog]. A Name of 4 bytes
// at 0x40 is fine, since its bytes are numbers to both. A Name of 16 bytes at 0x40 is refused: play
// could write any offset into Next through it.
type links struct {
	types describer
	led   map[*typeLayout]bool // types of the roots, and types that links lead to
	st    *State
	roots []typed
	wards []ward // by offset
	marks *marks // nil if no type has links
	state []byte
	queue []place // links to follow
	from  place   // the link that leads to value; from.is is nil for a root
	value typed   // the values that are checked now
	done  uint64  // value is marked up to here
	steps uint64
}

// typed is count values of one type, from an offset on.
type typed struct {
	at, count, stride uint64
	of                *typeLayout
	// in is the tenant of the values if its field live isn't nil; then only values in live blocks
	// are checked.
	in *tenant
}

// span is [from, to).
type span struct{ from, to uint64 }

// ward is a range that no link may lead over: words of a pool or a scope, or a tenant outside of
// its live blocks.
type ward struct {
	span
	of *tenant // nil for words of a pool or a scope
}

type place struct {
	at uint64
	is *typeLayout
}

// linkWord is the alignment of a link in bytes.
const linkWord = uint64(unsafe.Alignof(struct{ stored uint64 }{}.stored))

// linkSteps is the limit of steps for states of up to 2 MiB. A step is a link, a run of bools, or
// 64 bytes.
const linkSteps = 1 << 24

func newLinks(st *State) *links {
	l := &links{st: st, led: map[*typeLayout]bool{}}
	l.root(0, 1, uint64(st.root.Size()), st.root)
	for i := range st.pools {
		p := &st.pools[i]
		l.root(p.first, uint64(p.header.Count), p.header.Stride, p.of)
	}
	for i := range st.tenants {
		for _, v := range st.tenants[i].values {
			l.root(v.at, v.count, v.stride, v.of)
			if t := &st.tenants[i]; t.live != nil {
				l.roots[len(l.roots)-1].in = t
			}
		}
	}
	for _, v := range st.values {
		l.root(v.at, v.count, v.stride, v.of)
	}
	for _, t := range l.types.Types {
		if t.isLink {
			l.led[t.of] = true
		}
	}
	if l.types.ids == 0 {
		return l
	}
	row := st.saved.Stack.Row()
	for i := range row.Pools {
		if h := row.Pool(i); h.Gen != 0 {
			at := uint64(uintptr(unsafe.Pointer(h))) - uint64(uintptr(unsafe.Pointer(&row.Arena)))
			l.wards = append(l.wards, ward{span{at + h.Numbers, at + h.Chunks}, nil})
		}
	}
	for node := range st.saved.Stack.NodesSince(st.mark) {
		l.wards = append(l.wards, ward{span{node.At, node.At + node.Size}, nil})
	}
	for i := range st.tenants {
		t := &st.tenants[i]
		l.wards = append(l.wards, ward{span{st.mark + t.at, st.mark + t.at + t.size}, t})
	}
	slices.SortFunc(l.wards, func(a, b ward) int { return cmp.Compare(a.from, b.from) })
	l.marks = newMarks(st.mark, st.end)
	return l
}

func (l *links) root(at, count, stride uint64, of reflect.Type) {
	t := l.types.of(of)
	l.led[t] = true
	l.roots = append(l.roots, typed{l.st.mark + at, count, stride, t, nil})
}

// misses reports whether a value of type t at offset `at` has bools or links that check doesn't
// reach: neither a root nor the target of a link has its type. It returns false for a value in a
// tenant.
func (l *links) misses(t reflect.Type, at uint64) bool {
	for t.Kind() == reflect.Array {
		t = t.Elem()
	}
	if of := l.types.of(t); of.isPlain() || l.led[of] {
		return false
	}
	return !slices.ContainsFunc(l.st.tenants, func(t tenant) bool {
		start := l.st.mark + t.at
		return at >= start && at-start < t.size
	})
}

// check returns an error for the first bool or link of a state that play can't have left.
func (l *links) check(state []byte) error {
	l.state, l.queue, l.steps = state, l.queue[:0], 0
	if l.marks != nil {
		l.marks.clear()
	}
	for _, r := range l.roots {
		l.from = place{r.at, nil}
		if err := l.rootValues(r); err != nil {
			return err
		}
	}
	for len(l.queue) != 0 {
		last := len(l.queue) - 1
		l.from = l.queue[last]
		l.queue = l.queue[:last]
		if err := l.follow(); err != nil {
			return err
		}
	}
	l.state = nil
	return nil
}

func (l *links) rootValues(r typed) error {
	t := r.in
	if t == nil {
		return l.all(r)
	}
	image := l.state[t.at:][:t.size]
	for ; r.count != 0; r.count-- {
		if at := r.at - l.st.mark - t.at; t.live(image, at, at+r.of.Size) {
			if err := l.all(typed{at: r.at, count: 1, stride: r.stride, of: r.of}); err != nil {
				return err
			}
		}
		r.at += r.stride
	}
	return nil
}

// follow checks the values that the link at from leads to. It accepts a link that Get refuses.
func (l *links) follow() error {
	to, count, start := l.from.is.of, uint64(1), l.st.header().Start
	stored := l.word(l.from.at)
	if l.from.is.Kind != kindPtr {
		count = l.word(l.from.at + 8)
	}
	base := l.st.saved.Stack.Row().Size()
	if stored == 0 || stored > base || to.Size == 0 || count == 0 || count > base/to.Size ||
		count*to.Size > base-(stored-1) || (stored-1)&uint64(to.align-1) != 0 {
		return nil
	}
	at := start + stored - 1
	end := at + count*to.Size
	i, _ := slices.BinarySearchFunc(l.wards, at, func(w ward, at uint64) int {
		return cmp.Compare(w.to, at+1) // the first ward that ends after at
	})
	switch {
	case end > l.st.end:
		return l.leads("%d bytes at offset %#x, past the state's end", end-at, at-start)
	case at < l.st.mark && end > l.st.mark:
		return l.leads("%d bytes at offset %#x, before the state and in it", end-at, at-start)
	case at < l.st.mark && !(to.isPlain() && l.st.isReadable(at, end)):
		return l.leads("%d bytes at offset %#x, before the state: name the values with save.Readable if "+
			"links may lead to them", end-at, at-start)
	case at < l.st.mark:
		return nil
	case i < len(l.wards) && l.wards[i].from < end && !l.wards[i].isLive(l, at, end):
		return l.leads("%d bytes at offset %#x, over %s, at %#x", end-at, at-start, l.wards[i].name(),
			l.wards[i].from-start)
	}
	return l.all(typed{at, count, to.Size, to, nil})
}

// isLive reports whether [from, to) is in one live block of the ward's tenant.
func (w *ward) isLive(l *links, from, to uint64) bool {
	if w.of == nil || w.of.live == nil || from < w.from || to > w.to {
		return false
	}
	return w.of.live(l.state[w.of.at:][:w.of.size], from-w.from, to-w.from)
}

func (w *ward) name() string {
	switch {
	case w.of == nil:
		return "words of a pool or a scope"
	case w.of.live == nil:
		return w.of.name
	}
	return w.of.name + ", and not in one live block of it"
}

func (l *links) all(v typed) error {
	end := v.at + v.count*v.stride
	l.done, l.value = v.at, v
	switch {
	case l.marks == nil && v.of.isPlain():
		return nil
	case v.of.isBool && v.stride == 1:
		return l.bools(v.at, v.count)
	}
	for i := uint64(0); i < v.count && !v.of.isPlain(); i++ {
		l.value.at = v.at + i*v.stride
		if err := l.one(l.value.at, v.of); err != nil {
			return err
		}
	}
	return l.rest(end)
}

// one checks and marks the links and bools of a value, and marks the bytes before each as numbers.
func (l *links) one(at uint64, of *typeLayout) error {
	if of.isBool {
		return l.bools(at, 1)
	}
	if of.isLink {
		if err := l.rest(at); err != nil {
			return err
		}
		l.done = at + of.Size
		isNew, ok := l.marks.link(at, of.Size, of.id)
		if !ok {
			return l.twice(at)
		}
		if isNew && l.word(at) != 0 {
			l.queue = append(l.queue, place{at, of})
		}
		return l.step(1)
	}
	for i := range of.parts {
		p := &of.parts[i]
		if p.of.isBool {
			if err := l.bools(at+p.at, p.count); err != nil {
				return err
			}
			continue
		}
		for k := range p.count {
			if err := l.one(at+p.at+k*p.of.Size, p.of); err != nil {
				return err
			}
		}
	}
	return nil
}

// bools checks and marks count adjacent bools.
func (l *links) bools(at, count uint64) error {
	for i, b := range l.state[at-l.st.mark:][:count] {
		if b > 1 {
			is := at + uint64(i)
			path, _, _ := l.value.of.leaf(is - l.value.at)
			return l.bad(is, "%s%s is the bool %d: a bool is 0 or 1", l.value.of.Name, path, b)
		}
	}
	if l.marks == nil {
		return nil
	}
	if err := l.rest(at); err != nil {
		return err
	}
	l.done = at + count
	if at, ok := l.marks.fill(l.marks.bools, l.marks.plain, at, at+count); !ok {
		return l.twice(at)
	}
	return l.step(1 + count/64)
}

// rest marks the bytes from done up to an offset as numbers.
func (l *links) rest(to uint64) error {
	if l.marks == nil || l.done >= to {
		return nil
	}
	if at, ok := l.marks.fill(l.marks.plain, l.marks.bools, l.done, to); !ok {
		return l.twice(at)
	}
	return l.step((to - l.done) / 64)
}

func (l *links) step(n uint64) error {
	if l.steps += n; l.steps > max(linkSteps, 8*uint64(len(l.state))) {
		return l.leads("values that too many links lead to")
	}
	return nil
}

func (l *links) twice(at uint64) error {
	return l.leads("offset %#x, where two types overlap and one has an arena.Ptr, an arena.Slice or a "+
		"bool", at-l.st.header().Start)
}

func (l *links) leads(text string, args ...any) error {
	of := cmp.Or(l.from.is, l.value.of)
	return l.bad(l.from.at, "%s leads to %s", of.Name, fmt.Sprintf(text, args...))
}

func (l *links) bad(at uint64, text string, args ...any) error {
	return fmt.Errorf("region %s, offset %#x: %s", l.st.saved.Name, at-l.st.header().Start,
		fmt.Sprintf(text, args...))
}

func (l *links) word(at uint64) uint64 {
	return binary.LittleEndian.Uint64(l.state[at-l.st.mark:])
}
