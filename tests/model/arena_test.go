package model_test

import (
	"slices"

	"github.com/upfront-mem/upfront/scope"
)

// arena is a region, a slot, a buffer of the frame or a scratch arena, with its scopes.
type arena struct {
	name  string
	start uint64 // address
	size  uint64
	near  []*life // open scopes, the lowest first
	far   []*life // temporaries, the newest last
	base  int     // the number of the lowest scopes, which the arena's owner opened
	ran   uint64  // finalizers

	used, peak uint64  // as reported last
	back       *uint64 // the bytes that must be used now, after a scope has closed
}

// life is a scope, open or closed.
type life struct {
	arena *arena
	real  scope.Scope
	name  string
	far   bool
	open  bool
	froze bool
	layer bool // a Do or a Load closes it
	nodes []*node
	items []*item
	full  bool // a Try call failed, and this isn't reported yet
	wrong bool // a request came while the scope may not allocate, and this isn't reported yet
	lost  reported

	layered int // running calls of Make and Label

	opened mark
}

// node is an action at the close of a scope.
type node struct {
	ids  []int64 // finalizers, in the order in which they run
	temp *life
	pool *pool
}

// mark is the state of a scope to which it may have to go back.
type mark struct {
	nodes, items int
	used         uint64 // in its arena
	newest       *life  // of the temporaries
}

func (a *arena) mark() mark { return mark{used: a.used, newest: newest(a.far)} }

func (s *life) markNow() mark {
	m := s.arena.mark()
	m.nodes, m.items = len(s.nodes), len(s.items)
	return m
}

func newest(list []*life) *life {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

func (a *arena) top() *life { return newest(a.near) }

func (s *life) list() []*life {
	if s.far {
		return s.arena.far
	}
	return s.arena.near
}

// may reports whether a scope may allocate: it is the topmost, and not frozen.
func (s *life) may() bool { return s.open && !s.froze && newest(s.list()) == s }

// tell returns the refusals that a scope remembers, and forgets them.
func (s *life) tell() (t reported) {
	t.wrong, t.full = s.wrong, s.full && !s.wrong
	s.wrong, s.full = false, false
	return t
}

// open opens a scope on the near end.
func (a *arena) open(real scope.Scope, name string) *life {
	s := &life{arena: a, real: real, name: name, open: true, opened: a.mark()}
	a.near = append(a.near, s)
	return s
}

// ids returns the finalizers of a node in their order, with those of its temporaries and its pool.
func (w *world) ids(n *node) []int64 {
	switch {
	case n.temp != nil && n.temp.open:
		return w.rest(n.temp)
	case n.pool != nil:
		return n.pool.ids()
	}
	return n.ids
}

// rest returns the finalizers of a scope in their order.
func (w *world) rest(s *life) (ids []int64) {
	for _, n := range slices.Backward(s.nodes) {
		ids = append(ids, w.ids(n)...)
	}
	return ids
}

func (w *world) has(id int64) bool { return w.finalizers[id].times > 0 }

func (w *world) hasNot(id int64) bool { return !w.has(id) }

func (w *world) began(n *node) bool { return slices.ContainsFunc(w.ids(n), w.has) }

// due reports whether a finalizer is the next of its scope, after those of all scopes above.
func (w *world) due(id int64) bool {
	of := w.finalizers[id].of
	ids := w.rest(of)
	i := slices.IndexFunc(ids, w.hasNot)
	if i < 0 || ids[i] != id {
		return false
	}
	later := func(s *life) bool { return slices.ContainsFunc(w.rest(s), w.hasNot) }
	if slices.ContainsFunc(of.list()[slices.Index(of.list(), of)+1:], later) {
		return false
	}
	k := slices.IndexFunc(w.emptied, func(p *part) bool { return p.arena == of.arena })
	return k < 0 || of.far || !slices.ContainsFunc(w.emptied[k+1:], func(p *part) bool {
		return slices.ContainsFunc(p.arena.near, later)
	})
}

// goesBack expects the bytes used at the mark, if the temporaries are the same.
func (a *arena) goesBack(to mark) {
	if a.back = nil; newest(a.far) == to.newest {
		a.back = &to.used
	}
}

// unwound compares a scope that went back to a mark: its newer contents are gone, and their
// finalizers ran.
func (w *world) unwound(s *life, to mark) (t reported) {
	for _, n := range slices.Backward(s.nodes[to.nodes:]) {
		if i := slices.IndexFunc(w.ids(n), w.hasNot); i >= 0 {
			w.fail("%s has closed, and finalizer %d didn't run", s.name, w.ids(n)[i])
		}
		if n.temp != nil && n.temp.open {
			t.add(w.closed(n.temp))
		}
		if n.pool != nil {
			n.pool.open = false
		}
	}
	s.nodes, s.items = s.nodes[:to.nodes], s.items[:to.items]
	return t
}

// closed compares a scope that has closed. The caller of Close gets the refusals of a near scope
// first.
func (w *world) closed(s *life) (t reported) {
	t.full = s.far && s.full
	t.add(w.unwound(s, mark{}))
	t.wrong = t.wrong || s.wrong
	t.add(s.lost)
	s.open, s.wrong, s.full, s.lost = false, false, false, reported{}
	a := s.arena
	if s.far {
		a.far = slices.DeleteFunc(a.far, func(other *life) bool { return other == s })
		return t
	}
	w.check(a.top() == s, "%s closes below another", s.name)
	a.near = a.near[:len(a.near)-1]
	a.goesBack(s.opened)
	return t
}

func (w *world) closedTo(a *arena, depth int) (t reported) {
	for len(a.near) > depth {
		t.add(w.closed(a.top()))
	}
	return t
}

// anyFull reports whether a full is remembered by a scope from a depth up, or by newer temporaries.
func (a *arena) anyFull(near, far int) bool {
	full := func(s *life) bool { return s.full }
	return slices.ContainsFunc(slices.Concat(a.near[near:], a.far[min(far, len(a.far)):]), full)
}

// remembered returns the first refusal that these scopes remember, as reported from now on.
func (a *arena) remembered(near, far int) reported {
	for _, s := range slices.Concat(a.near[near:], a.far[min(far, len(a.far)):]) {
		if t := s.tell(); t.any() {
			return t
		}
	}
	return reported{}
}
