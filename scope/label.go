package scope

import (
	"unsafe"
)

// Label runs fn and returns fn's error. The bytes that s gains while fn runs count for the label
// name, a subsystem such as "sound". Errors of a full arena name the labels with the most bytes,
// and a report has a line for each label. Ended labels share a line when the table is full. Labels
// nest: bytes that count for an inner label don't count for the outer label. A label ends with its
// scope. Bytes that a failed constructor frees no longer count. The bytes of temporaries
// ([Scope.Temp]) never count.
//
// s must be the topmost scope. An arena has a table of limits.labels entries (32 by default), one
// for each name in each open scope. For a further one, Label unwinds with a full error before it
// runs fn. Cost: 40 bytes of s, and a search through the names.
func Label(s Scope, name string, fn func() error) error {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Label of"))
	}
	st, begin := stackOf(s.h), s.h.Cursor
	name = short(name)
	l := &st.labels
	l.settle()
	line := st.labelOf(s, name)
	n := (*labelNode)(s.h.Node(s.gen, uint64(unsafe.Sizeof(labelNode{})), 7))
	if n == nil {
		panic(refusal(s))
	}
	if line == len(l.lines) {
		l.lines = append(l.lines, label{name: st.keep(name), depth: s.h.Depth, total: st.lineOf(&l.totals, name)})
		l.most = max(l.most, len(l.lines))
	}
	*n = labelNode{line: uint64(line), in: l.current(s)}
	l.lines[line].nodes++
	s.h.Link(unsafe.Pointer(n), classLabel)
	s.h.Odd |= oddNoted
	l.open = append(l.open, booking{scope: s, node: n, start: s.h.Cursor})
	recordMade(s)
	st.inside++
	index := len(l.open) - 1
	defer func() {
		st.inside--
		l.end(index, begin)
	}()
	return fn()
}

func (st *Stack) labelOf(s Scope, name string) int {
	lines := st.labels.lines
	for i := range lines {
		if lines[i].depth == s.h.Depth && lines[i].name == name {
			return i
		}
	}
	if full := st.noPlace("labels", uint64(len(lines)), uint64(cap(lines)), st.nameOf(s.h, s.h.Depth)); full != nil {
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
	scope Scope
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

// current returns the number of the innermost running call, counted from 1, or 0 if it isn't in s.
func (l *labels) current(s Scope) uint64 {
	if n := len(l.open); n > 0 && l.open[n-1].scope == s && l.open[n-1].node != nil {
		return uint64(n)
	}
	return 0
}

// settle books the bytes that the innermost call gained, which are fewer than before if a
// constructor freed some.
func (l *labels) settle() {
	if len(l.open) == 0 {
		return
	}
	if b := &l.open[len(l.open)-1]; b.node != nil && b.scope.alive() {
		l.book(b.node, b.scope.here()-b.start-b.other)
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
	if b.node != nil && b.scope.alive() {
		b.node.extent = b.scope.here() - begin
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
