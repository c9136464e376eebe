package scope

import (
	"unsafe"
)

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
	name = short(name)
	l := &st.labels
	l.settle()
	line := st.labelOf(s, name)
	n := (*labelNode)(s.h.Node(s.gen, uint64(unsafe.Sizeof(labelNode{})), 7))
	if n == nil {
		panic(refusal(s))
	}
	if line == len(l.lines) {
		l.lines = append(l.lines, label{name: st.keep(name), depth: s.h.Depth, peak: st.peakLine(name)})
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

// labelOf is the line of a name in the topmost scope, or a new one behind the others.
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

func (st *Stack) peakLine(name string) int {
	if st.labels.ever.lines == nil {
		return 0
	}
	return st.lineOf(&st.labels.ever, name)
}
