package model_test

import (
	"slices"

	"github.com/upfront-mem/upfront/scope"
)

// The layout rules, all that there are. Offsets count from an arena's first byte.
//
//   - What is asked for lies at the cursor, rounded up to its alignment: that of the address.
//   - What has a node lies at the cursor plus 8, rounded up to its alignment, at least 8: the node is
//     the word before it.
//   - A scope takes no byte. Closing one puts the cursor back to where it was opened.
//   - Temp(n) takes a node with a word, and n bytes below the limit, rounded down to 64.
const (
	nodeSize  = 8
	lineSize  = 64
	labelSize = 32 // what the node of a label is about
	front     = 32 // before the first object of a slice
)

// arena is the plain model of a region, a slot, a buffer of the frame or a scratch arena.
type arena struct {
	name   string
	start  uint64 // address
	size   uint64
	cursor uint64
	limit  uint64
	peak   uint64
	near   []*life // open scopes, the lowest first
	far    []*life // temporaries, the newest last
	pools  []bool  // headers that are taken
	lines  []*line // of labels
	base   int     // how many of the lowest scopes are its owner's
	ran    uint64  // finalizers

	closing bool // finalizers run
}

// line is a label: it is there as long as one call of it is.
type line struct {
	of    *life
	name  string
	calls int
}

// life is a scope: open, or what is left of it.
type life struct {
	arena *arena
	real  scope.Scope
	name  string
	far   bool
	open  bool
	froze bool
	layer bool // a Do or a Load closes it
	mark  uint64
	nodes []*node
	items []*item
	full  bool // what a Try... met, until it is told
	wrong bool // it was asked while it may not allocate, until it is told
	lost  told

	layered int // calls of Make and Label that are at work

	cursor, limit, edge uint64 // of temporaries
}

// node is what happens when a scope closes.
type node struct {
	ids  []int64 // finalizers, in the order in which they run
	temp *life
	pool *pool
	line *line
}

// mark is where a scope was, for what may have to go back.
type mark struct {
	cursor       uint64
	nodes, items int
}

func (a *arena) used() uint64 { return a.cursor + a.size - a.limit }

func (a *arena) note() { a.peak = max(a.peak, a.used()) }

func (a *arena) top() *life {
	if len(a.near) == 0 {
		return nil
	}
	return a.near[len(a.near)-1]
}

// end is where a scope allocates.
func (s *life) end() (cursor *uint64, limit uint64) {
	if s.far {
		return &s.cursor, s.limit
	}
	return &s.arena.cursor, s.arena.limit
}

func (s *life) list() []*life {
	if s.far {
		return s.arena.far
	}
	return s.arena.near
}

// may says whether a scope may allocate: it is the topmost, and neither frozen nor closing.
func (s *life) may() bool {
	list := s.list()
	return s.open && !s.froze && !s.arena.closing && list[len(list)-1] == s
}

func (a *arena) up(at, align uint64) uint64 { return (a.start+at+align-1)&^(align-1) - a.start }

// place is where size bytes would lie.
func (s *life) place(size, align uint64) (at uint64, ok bool) {
	cursor, limit := s.end()
	at = s.arena.up(*cursor, align)
	return at, at <= limit && size <= limit-at
}

// nodePlace is where size bytes with a node would.
func (s *life) nodePlace(size, align uint64) (at uint64, ok bool) {
	cursor, limit := s.end()
	at = s.arena.up(*cursor+nodeSize, max(align, nodeSize))
	return at, at <= limit && size <= limit-at
}

func (s *life) moveTo(cursor uint64) {
	at, _ := s.end()
	*at = cursor
	s.arena.note()
}

func (s *life) markNow() mark {
	cursor, _ := s.end()
	return mark{*cursor, len(s.nodes), len(s.items)}
}

// told is what is said to somebody: of what kind the errors are, and whose finalizers failed.
type told struct {
	full, wrong bool
	other       error
	ids         []int64
	exits       bool // a finalizer ended the goroutine
}

func (t *told) add(u told) {
	t.full, t.wrong = t.full || u.full, t.wrong || u.wrong
	t.ids = append(t.ids, u.ids...)
	t.exits = t.exits || u.exits
}

func (t *told) any() bool { return t.full || t.wrong || t.other != nil || len(t.ids) > 0 }

// tell is what a scope remembers, once.
func (s *life) tell() (t told) {
	if s.wrong {
		t.wrong = true
	} else if s.full {
		t.full = true
	}
	s.wrong, s.full = false, false
	return t
}

// open opens a scope on the near end.
func (a *arena) open(real scope.Scope, name string) *life {
	s := &life{arena: a, real: real, name: name, open: true, mark: a.cursor}
	a.near = append(a.near, s)
	return s
}

// unwind takes a scope back to a mark: nodes newest first, then the bytes.
func (w *world) unwind(s *life, to mark) (t told) {
	was := s.arena.closing
	s.arena.closing = true
	for len(s.nodes) > to.nodes {
		n := s.nodes[len(s.nodes)-1]
		s.nodes = s.nodes[:len(s.nodes)-1]
		t.add(w.run(s, n))
	}
	s.arena.closing = was
	s.items = s.items[:min(to.items, len(s.items))]
	cursor, _ := s.end()
	*cursor = to.cursor
	return t
}

// run is what a node does.
func (w *world) run(s *life, n *node) (t told) {
	for _, id := range n.ids {
		t.add(w.finalized(s, id))
	}
	if n.pool != nil {
		for i := range n.pool.size {
			if id, live := n.pool.live[i]; live && n.pool.finalizes {
				t.add(w.finalized(s, id))
			}
		}
		n.pool.open = false
		s.arena.pools[n.pool.header] = false
	}
	if n.temp != nil && n.temp.open {
		for n.temp.open {
			t.add(w.closeNewest(s.arena))
		}
	}
	if n.line != nil {
		if n.line.calls--; n.line.calls == 0 {
			s.arena.lines = slices.DeleteFunc(s.arena.lines, func(l *line) bool { return l == n.line })
		}
	}
	return t
}

// closeNewest closes the newest of the temporaries, and tells what it met.
func (w *world) closeNewest(a *arena) (t told) {
	s := a.far[len(a.far)-1]
	t.full = s.full
	t.add(w.unwind(s, mark{}))
	t.wrong = t.wrong || s.wrong
	t.add(s.lost)
	s.open = false
	a.far = a.far[:len(a.far)-1]
	a.limit = s.edge
	return t
}

// closeTop closes the topmost scope; what it remembers is the caller's to tell. What its finalizers
// did that they may not is told.
func (w *world) closeTop(a *arena) (t told) {
	s := a.top()
	t = w.unwind(s, mark{cursor: s.mark})
	t.wrong = t.wrong || s.wrong
	t.add(s.lost)
	s.open, s.wrong, s.full = false, false, false
	a.near = a.near[:len(a.near)-1]
	return t
}

func (w *world) closeTo(a *arena, depth int) (t told) {
	for len(a.near) > depth {
		if s := a.top(); s.froze {
			t.add(s.tell())
		}
		t.add(w.closeTop(a))
	}
	return t
}
