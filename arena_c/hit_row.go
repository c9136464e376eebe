//go:build cgo && !upfront_cgo && !asan && !checked

package arena_c

import "unsafe"

// The hits of rows, as hit.go has those of arenas.

// OpenScope is upfront_row_open.
func (r *Row) OpenScope() (child *Linear, tag uint64) {
	child = r.Slot(r.Open)
	tag = child.Tag()
	start := r.Start
	if r.Open != 0 {
		parent := r.Slot(r.Open - 1)
		start = parent.Cursor
		parent.Limit &^= Offsets
	}
	child.Cursor, child.Start = start, start
	child.Count, child.Chain, child.Refused = 0, 0, 0
	child.Limit = tag | r.Edge
	r.Open++
	return child, tag
}

// CloseScope is upfront_row_close.
func (r *Row) CloseScope() {
	child := r.Slot(r.Open - 1)
	if used := r.Used(); used > r.Peak {
		r.Peak = used
	}
	if Race {
		raceDead(child.At(child.Start), uintptr(child.Cursor-child.Start))
	}
	child.Cursor = child.Start
	child.Limit = child.Tag() + Generation
	r.Open--
	if r.Open != 0 {
		r.Slot(r.Open - 1).Limit |= r.Edge
	}
}

// Freeze is upfront_row_freeze.
func (l *Linear) Freeze() { l.Limit &^= Offsets }

// NewNode is upfront_row_node.
func (l *Linear) NewNode(tag uint64) *Node {
	p, _ := l.Bump(tag+uint64(unsafe.Sizeof(Node{})), uint64(unsafe.Sizeof(Node{})), 7)
	return (*Node)(p)
}

// Link is upfront_row_link.
func (l *Linear) Link(node *Node, class, what uint64) {
	*node = Node{class*Generation | l.Chain, what}
	l.Chain = l.Offset(unsafe.Pointer(node))
}

// Unlink is upfront_row_unlink.
func (l *Linear) Unlink() (node Node, ok bool) {
	if l.Chain == 0 {
		return Node{}, false
	}
	node = *(*Node)(l.At(l.Chain))
	l.Chain = node.Below & Offsets
	return node, true
}
