package scope

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Usage is what scopes of one name, or a label, hold under that name.
type Usage struct {
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`             // held now
	Objects uint64 `json:"objects,omitempty"` // allocations that are live; in checked builds
	Peak    uint64 `json:"peak"`              // the most Bytes that the name had at once since Open; 0 where it isn't counted

	PeakObjects uint64 `json:"peak_objects,omitempty"` // likewise of Objects
}

// Label runs fn and books what s gains meanwhile under a name: a subsystem, as "sound". It returns fn's error. Errors
// of a full arena name the largest labels, reports name all. Labels nest, and each has what is its own: what an
// inner one gains isn't the outer one's. They are gone when their scope closes, and what
// a constructor that fails takes back is none of theirs; temporaries are in none.
//
// s is the topmost scope. An arena has places for limits.labels names (32 by default); one more is a full, which
// unwinds before fn runs. Cost: 40 bytes of s, and a look through the names.
func Label(s Scope, name string, fn func() error) error {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Label of"))
	}
	st, begin := stackOf(s.h), s.h.Cursor
	l := &st.labels
	l.settle()
	line := st.labelOf(s, name)
	n := (*labelNode)(s.h.Node(s.gen, uint64(unsafe.Sizeof(labelNode{})), 7))
	if n == nil {
		panic(refusal(s))
	}
	if line == len(l.lines) {
		l.lines = append(l.lines, label{usage: Usage{Name: st.keep(name)}, depth: s.h.Depth, peak: st.peakLine(name)})
		l.most = max(l.most, len(l.lines))
	}
	*n = labelNode{line: uint64(line), in: l.current(s)}
	l.lines[line].nodes++
	s.h.Link(unsafe.Pointer(n), classLabel)
	s.h.Odd |= oddNoted
	l.open = append(l.open, booking{scope: s, node: n, start: s.h.Cursor})
	st.inside++
	defer l.end(len(l.open)-1, begin, st)
	return fn()
}

// labels are the labels of an arena: a table of planned size, whose lines stand in the order of their
// scopes, and the calls of Label that are at work, each inside the one before.
type labels struct {
	lines []label // cap: the places
	open  []booking
	most  int
}

// label is a line.
type label struct {
	usage Usage
	depth uint64 // of its scope
	peak  int    // line in the table of peaks
	nodes int    // calls of Label that gained for it
}

// labelNode is what one call of Label gained. It goes when that goes.
type labelNode struct {
	line   uint64
	gained uint64 // as of the last look
	extent uint64 // when it has ended: all that lies between its beginning and its end
	in     uint64 // the call around it in the same scope, counted from 1; 0: none
}

// booking is a call of Label at work.
type booking struct {
	scope Scope
	node  *labelNode // nil: a constructor that failed has taken it back
	start uint64     // where its scope stood
	other uint64     // what calls inside it took since
}

// current is the innermost call at work in s, counted from 1, or 0.
func (l *labels) current(s Scope) uint64 {
	if n := len(l.open); n > 0 && l.open[n-1].scope == s && l.open[n-1].node != nil {
		return uint64(n)
	}
	return 0
}

// settle books what the innermost call gained: less than before, when a constructor took bytes back.
func (l *labels) settle() {
	if len(l.open) == 0 {
		return
	}
	b := &l.open[len(l.open)-1]
	if b.node == nil || !b.scope.alive() {
		return
	}
	gained := b.scope.here() - b.start - b.other
	l.lines[b.node.line].usage.Bytes += gained - b.node.gained
	b.node.gained = gained
}

// here is where s stands, apart from what is open in it.
func (s Scope) here() uint64 {
	depth := s.h.Find(s.gen)
	return s.h.Record(depth).Mark + s.h.Bytes(depth)
}

// end ends the call at an index of those at work, which began at an offset of its scope.
func (l *labels) end(index int, begin uint64, st *Stack) {
	st.inside--
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

// undo takes back what one call gained.
func (l *labels) undo(n *labelNode) {
	l.settle()
	for i := range l.open {
		if l.open[i].node == n {
			l.open[i].node = nil
		}
	}
	if n.extent != 0 && n.in != 0 && n.in <= uint64(len(l.open)) && l.open[n.in-1].node != nil {
		l.open[n.in-1].other -= n.extent
	}
	line := &l.lines[n.line]
	line.usage.Bytes -= n.gained
	if line.nodes--; line.nodes == 0 {
		l.lines = l.lines[:n.line]
	}
}

// labelOf is the line of a name in the topmost scope, or a new one behind the others.
func (st *Stack) labelOf(s Scope, name string) int {
	lines := st.labels.lines
	for i := range lines {
		if lines[i].depth == s.h.Depth && lines[i].usage.Name == name {
			return i
		}
	}
	if len(lines) == cap(lines) {
		panic(st.tableFull("labels", uint64(cap(lines)), st.nameOf(s.h, s.h.Depth)))
	}
	if arena_c.Checked && arena_c.Refuse() {
		panic(st.refuseTable("labels", uint64(cap(lines)), st.nameOf(s.h, s.h.Depth)))
	}
	return len(lines)
}

func (st *Stack) peakLine(name string) int {
	if st.subsystems.lines == nil {
		return 0
	}
	return st.lineOf(&st.subsystems, name)
}

// bytesOf is what the scope at a depth holds. A Builder's values lie behind the cursor: it is asked
// when they leave no room.
func (st *Stack) bytesOf(h *arena_c.Scopes, depth uint64) uint64 {
	if r := h.Record(depth); depth == h.Depth && r.Edge != 0 {
		return h.Limit - r.Mark - (h.Limit-r.Limit)%r.Edge
	}
	return h.Bytes(depth)
}

// holders are the three that hold most of the arena: labels, what the open scopes hold beside them,
// and temporaries.
func (st *Stack) holders() (top []Usage) {
	h := st.h
	st.labels.settle()
	for _, a := range st.labels.lines {
		top = append(top, a.usage)
	}
	for i := uint64(1); i <= h.Depth; i++ {
		u := Usage{Name: st.nameOf(h, i), Bytes: st.bytesOf(h, i), Objects: h.Record(i).Count / arena_c.Object}
		for _, a := range st.labels.lines {
			if a.depth == i {
				u.Bytes -= a.usage.Bytes
			}
		}
		top = append(top, u)
	}
	top = append(top, Usage{Name: tempName, Bytes: st.row.End - h.Limit})
	top = slices.DeleteFunc(top, func(u Usage) bool { return u.Bytes-1 >= arena_c.OffsetMax })
	slices.SortStableFunc(top, func(a, b Usage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return top[:min(3, len(top))]
}
