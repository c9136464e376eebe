package scope

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Usage is what scopes of one name, or an account, hold under that name.
type Usage struct {
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`             // held now
	Objects uint64 `json:"objects,omitempty"` // allocations that are live; in checked builds
	Peak    uint64 `json:"peak"`              // the most Bytes that the name had at once since Open; 0 where it isn't counted

	PeakObjects uint64 `json:"peak_objects,omitempty"` // likewise of Objects
}

// Account runs fn and books what s gains meanwhile under a name: a subsystem, as "sound". It returns fn's error. Errors
// of a full arena name the largest accounts, reports name all. Accounts nest, and each has what is its own: what an
// inner one gains isn't the outer one's. They are gone when their scope closes, and what
// a constructor that fails takes back is none of theirs; temporaries are in none.
//
// s is the topmost scope. An arena has places for limits.accounts names (32 by default); one more is a full, which
// unwinds before fn runs. Cost: 24 bytes of s, and a look through the names.
func Account(s Scope, name string, fn func() error) error {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Account of"))
	}
	st := stackOf(s.h)
	line := st.accountOf(s, name)
	n := (*labelNode)(s.h.Node(s.gen(), uint64(unsafe.Sizeof(labelNode{})), 7))
	if n == nil {
		panic(refusal(s))
	}
	st.labels.settle()
	if line == len(st.labels.lines) {
		st.labels.add(account{usage: Usage{Name: st.Keep(name)}, depth: s.h.Depth, peak: st.peakLine(name)})
	}
	*n = labelNode{line: uint64(line)}
	st.labels.lines[line].nodes++
	s.h.Link(unsafe.Pointer(n), classLabel)
	s.h.Odd |= oddNoted
	outer := st.labels.now
	st.labels.now = booking{s, n, s.h.Cursor, s.h.Top().Count}
	st.inside++
	defer func() {
		st.inside--
		st.labels.settle()
		st.labels.now = outer
		st.labels.resume()
	}()
	return fn()
}

// labels are the accounts of an arena: a table of planned size, whose lines stand in the order of their
// scopes.
type labels struct {
	lines []account // cap: the places
	most  int
	now   booking
}

// account is a line.
type account struct {
	usage Usage
	depth uint64 // of its scope
	peak  int    // line in the table of peaks
	nodes int    // calls of Account that gained for it
}

// labelNode is what one call of Account gained. It goes when that goes.
type labelNode struct {
	line  uint64
	bytes uint64
}

// booking is the account that gains now, and from where it counts.
type booking struct {
	scope  Scope // none: zero
	node   *labelNode
	cursor uint64
	count  uint64
}

func (b *booking) live() bool { return b.node != nil && b.scope.alive() }

// settle books what the current account gained: less than nothing after a constructor that failed.
func (l *labels) settle() {
	b := &l.now
	if !b.live() {
		return
	}
	bytes, count := b.scope.here()
	l.lines[b.node.line].usage.Bytes += bytes - b.cursor
	l.lines[b.node.line].usage.Objects += (count - b.count) / arena_c.Object
	b.node.bytes += bytes - b.cursor
	b.cursor, b.count = bytes, count
}

// resume lets the account that is current again go on from here.
func (l *labels) resume() {
	if l.now.live() {
		l.now.cursor, l.now.count = l.now.scope.here()
	}
}

// here is where s stands, apart from what is open in it, and in checked builds what it counted.
func (s Scope) here() (cursor, count uint64) {
	depth := s.h.Find(s.gen())
	return s.h.Record(depth).Mark + s.h.Bytes(depth), s.h.Record(depth).Count
}

func (l *labels) add(a account) {
	l.lines = append(l.lines, a)
	l.most = max(l.most, len(l.lines))
}

// undo takes back what one call gained.
func (l *labels) undo(n *labelNode) {
	l.settle()
	if l.now.node == n {
		l.now = booking{}
	}
	line := &l.lines[n.line]
	line.usage.Bytes -= n.bytes
	if line.nodes--; line.nodes == 0 {
		l.lines = l.lines[:n.line]
	}
}

// accountOf is the line of a name in the topmost scope, or a new one behind the others.
func (st *Stack) accountOf(s Scope, name string) int {
	lines := st.labels.lines
	for i := range lines {
		if lines[i].depth == s.h.Depth && lines[i].usage.Name == name {
			return i
		}
	}
	if len(lines) == cap(lines) {
		panic(st.tableFull("accounts", uint64(cap(lines)), st.nameOf(s.h, s.h.Depth)))
	}
	if arena_c.Checked && arena_c.Refuse() {
		panic(st.refuseTable("accounts", uint64(cap(lines)), st.nameOf(s.h, s.h.Depth)))
	}
	return len(lines)
}

func (st *Stack) peakLine(name string) int {
	if st.subsystems.lines == nil {
		return 0
	}
	return st.lineOf(&st.subsystems, name)
}

// holders are the three that hold most of the arena: accounts, what the open scopes hold beside them,
// and temporaries.
func (st *Stack) holders() (top []Usage) {
	h := st.h
	st.labels.settle()
	for _, a := range st.labels.lines {
		top = append(top, a.usage)
	}
	for i := uint64(1); i <= h.Depth; i++ {
		u := Usage{Name: st.nameOf(h, i), Bytes: h.Bytes(i), Objects: h.Record(i).Count / arena_c.Object}
		for _, a := range st.labels.lines {
			if a.depth == i {
				u.Bytes -= a.usage.Bytes
				u.Objects -= a.usage.Objects
			}
		}
		top = append(top, u)
	}
	top = append(top, Usage{Name: tempName, Bytes: st.row.End - h.Limit})
	top = slices.DeleteFunc(top, func(u Usage) bool { return u.Bytes-1 >= arena_c.OffsetMax })
	slices.SortStableFunc(top, func(a, b Usage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return top[:min(3, len(top))]
}
