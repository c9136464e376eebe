package stack

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Labelling is a running call of Label.
type Labelling struct {
	st    *Stack
	index int    // in the labels' open calls
	begin uint64 // offset
}

// Label begins to count for the label name the bytes that a scope gains, until End. The scope must
// be the topmost of its arena's near end. If the table of labels is full, or the scope, Label
// panics with the full error.
func Label(h *arena_c.Scopes, gen uint64, name string) Labelling {
	st, begin := Of(h), h.Cursor
	name = short(name)
	l := &st.labels
	l.settle()
	line := st.labelOf(name)
	n := (*labelNode)(h.Node(gen, uint64(unsafe.Sizeof(labelNode{})), 7))
	if n == nil {
		panic(arena_c.Refusal{Arena: h, Gen: gen})
	}
	if line == len(l.lines) {
		l.lines = append(l.lines, label{name: st.keep(name), depth: h.Depth, total: st.lineOf(&l.totals, name)})
		l.most = max(l.most, len(l.lines))
	}
	*n = labelNode{line: uint64(line), in: l.current(h, gen)}
	l.lines[line].nodes++
	h.Link(unsafe.Pointer(n), classLabel)
	h.Odd |= oddNoted
	l.open = append(l.open, booking{h: h, gen: gen, node: n, start: h.Cursor})
	NoteMade(h)
	st.inside++
	return Labelling{st, len(l.open) - 1, begin}
}

// End ends the call.
func (l Labelling) End() {
	l.st.inside--
	l.st.labels.end(l.index, l.begin)
}

// labelOf returns the index of a label's line in the topmost scope: the number of lines, if it has
// none.
func (st *Stack) labelOf(name string) int {
	lines, h := st.labels.lines, st.h
	for i := range lines {
		if lines[i].depth == h.Depth && lines[i].name == name {
			return i
		}
	}
	if full := st.noPlace("labels", uint64(len(lines)), uint64(cap(lines)), st.nameOf(h, h.Depth)); full != nil {
		panic(full)
	}
	return len(lines)
}

// labels holds the labels of an arena: a table of planned size, in the order of their scopes, and
// the running calls of Label, each inside the call before.
type labels struct {
	lines  []label // cap: the places
	open   []booking
	most   int
	totals usages // by name, of ended labels too
}

type label struct {
	name  string
	bytes uint64 // in use now
	depth uint64 // of its scope
	total uint32 // its line in the totals
	nodes uint32 // calls of Label that gained for it
}

type booking struct {
	h     *arena_c.Scopes
	gen   uint64     // of the scope
	node  *labelNode // nil: a failed constructor has freed it
	start uint64     // the scope's end when the call began
	other uint64     // bytes of ended calls inside it
}

// labelNode counts the bytes that one call of Label gained. It is freed with these bytes.
type labelNode struct {
	line   uint64
	gained uint64 // as of the last look
	extent uint64 // after the call: bytes from its node to its end; before: 0
	in     uint64 // the enclosing call in the same scope, counted from 1; 0: no such call
}

// current returns the number of the innermost running call, counted from 1, or 0 if it isn't in the
// scope.
func (l *labels) current(h *arena_c.Scopes, gen uint64) uint64 {
	if n := len(l.open); n > 0 && l.open[n-1].h == h && l.open[n-1].gen == gen && l.open[n-1].node != nil {
		return uint64(n)
	}
	return 0
}

// here returns the offset of the scope's end, without the scopes that are open in it. It returns
// false if the scope is closed.
func (b *booking) here() (at uint64, ok bool) {
	depth := b.h.Find(b.gen)
	if depth == 0 {
		return 0, false
	}
	return b.h.Record(depth).Mark + b.h.Bytes(depth), true
}

// settle books the bytes that the innermost call gained, which are fewer than before if a
// constructor freed some.
func (l *labels) settle() {
	if len(l.open) == 0 {
		return
	}
	b := &l.open[len(l.open)-1]
	if here, ok := b.here(); ok && b.node != nil {
		l.book(b.node, here-b.start-b.other)
	}
}

func (l *labels) book(n *labelNode, gained uint64) {
	line := &l.lines[n.line]
	l.totals.book(line.total, held{bytes: n.gained}, held{bytes: gained})
	line.bytes += gained - n.gained
	n.gained = gained
}

// end ends the running call with that index, which began at the offset begin.
func (l *labels) end(index int, begin uint64) {
	l.settle()
	b := l.open[index]
	l.open = l.open[:index]
	if here, ok := b.here(); ok && b.node != nil {
		b.node.extent = here - begin
		if b.node.in != 0 {
			l.open[b.node.in-1].other += b.node.extent
		}
	}
}

// undo takes the bytes of one call, as of the last look, out of its line.
func (l *labels) undo(n *labelNode) {
	for i := range l.open {
		if l.open[i].node == n {
			l.open[i].node = nil
		}
	}
	if n.extent != 0 && n.in != 0 && n.in <= uint64(len(l.open)) && l.open[n.in-1].node != nil {
		l.open[n.in-1].other -= n.extent
	}
	l.book(n, 0)
	line := &l.lines[n.line]
	if line.nodes--; line.nodes == 0 {
		// after a restore the node may hold an earlier number
		l.totals.book(line.total, held{bytes: line.bytes}, held{})
		l.lines = l.lines[:n.line]
	}
}
