package scope

// booking is a call of Label at work.
type booking struct {
	scope Scope
	node  *labelNode // nil: a constructor that failed has taken it back
	start uint64     // where its scope stood
	other uint64     // what calls inside it took since
}

// labels are the labels of an arena: a table of planned size, whose lines stand in the order of their
// scopes, and the calls of Label that are at work, each inside the one before.
type labels struct {
	lines []label // cap: the places
	open  []booking
	most  int
	ever  usages // of all that there ever were; nil lines where they aren't counted
}

// label is a line.
type label struct {
	name  string
	bytes uint64 // held now
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
	if gained < b.node.gained {
		l.gone(b.node.line, b.node.gained-gained)
	}
	l.lines[b.node.line].bytes += gained - b.node.gained
	b.node.gained = gained
}

// gone counts what a label no longer holds.
func (l *labels) gone(line, bytes uint64) {
	if l.ever.lines != nil {
		l.ever.gone(l.lines[line].peak, bytes, 0)
	}
}

// end ends the call at an index of those at work, which began at an offset of its scope.
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
	l.gone(n.line, n.gained)
	line := &l.lines[n.line]
	line.bytes -= n.gained
	if line.nodes--; line.nodes == 0 {
		l.lines = l.lines[:n.line]
	}
}
