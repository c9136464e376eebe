package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// openScope opens a scope in another, or has it refused.
func (w *world) openScope(s *life) {
	a, name := s.arena, fmt.Sprint("scope ", w.random.IntN(4))
	w.say("%s: open %s in %s", a.name, name, s.name)
	var real scope.Scope
	v := w.recovered(func() { real = s.real.Open(name) })
	err, _ := v.(error)
	switch {
	case !s.may() || s.far:
		w.check(err != nil && !errors.Is(err, scope.ErrFull), "Open in a scope that may not: %v", v)
	case len(a.near) == maxScopes:
		w.did["too many scopes"]++
		w.check(errors.Is(err, scope.ErrFull), "one scope too many: %v", v)
	default:
		w.check(v == nil, "Open: %v", v)
		a.open(real, name)
	}
}

// close closes a scope as its user does, in right or wrong order.
func (w *world) close(s *life) {
	a := s.arena
	w.say("%s: close %s", a.name, s.name)
	if s.layer && s.may() || s.layered > 0 {
		return
	}
	if !s.may() || !s.far && len(a.near) <= a.base {
		w.did["refused Close"]++
		err := s.real.Close()
		w.check(errors.Is(err, scope.ErrClosed) == !s.open && err != nil, "Close in wrong order: %v", err)
		return
	}
	near, far := len(a.near), len(a.far)
	w.layer(s.real.Close, func(e ended) bool {
		w.check(near == len(a.near) && far == len(a.far), "Close calls back")
		t := s.tell()
		if s.far {
			t.add(w.closeNewest(a))
		} else {
			t.add(w.closeTop(a))
		}
		if !t.exits {
			w.expect("Close", e.err, t)
		}
		return t.exits
	})
	w.stale = append(w.stale, s.real)
	w.gone = append(w.gone, s)
}

// err asks what a scope remembers.
func (w *world) err(s *life) {
	err := s.real.Err()
	w.say("%s: Err of %s", s.arena.name, s.name)
	if !s.open {
		w.check(errors.Is(err, scope.ErrClosed), "Err of what is closed: %v", err)
		return
	}
	w.expect("Err", err, told{full: s.full && !s.wrong, wrong: s.wrong})
}

// temp opens temporaries.
func (w *world) temp(s *life) {
	a, n := s.arena, w.random.IntN(6000)
	if w.chance(12) {
		n = int(min(w.random.Int64N(1<<42), math.MaxInt)) // as much as there is, where an int has 32 bits
	}
	w.say("%s: Temp of %d in %s", a.name, n, s.name)
	at, ok := s.nodePlace(8, 8)
	cursor := a.cursor
	if ok && !s.far {
		cursor = at + 8
	}
	from := a.limit - uint64(n)
	from -= (a.start + from) % lineSize
	ok = ok && uint64(n) <= a.limit && from <= a.limit && from >= cursor
	var real scope.Scope
	v := w.recovered(func() { real = s.real.Temp(n) })
	err, _ := v.(error)
	switch {
	case !s.may():
		w.check(err != nil && !errors.Is(err, scope.ErrFull), "Temp of a scope that may not: %v", v)
		return
	case len(a.far) == maxScopes:
		w.check(errors.Is(err, scope.ErrFull), "one of the temporaries too many: %v", v)
		return
	case !ok:
		w.did["no room for Temp"]++
		w.check(errors.Is(err, scope.ErrFull), "Temp of %d: %v", n, v)
		s.full = true
		return
	}
	if v != nil {
		w.fail("Temp of %d, which fits: %v", n, v)
		return
	}
	s.moveTo(at + 8)
	t := &life{arena: a, real: real, name: "temp", far: true, open: true, cursor: from, limit: from + uint64(n), edge: a.limit}
	s.nodes = append(s.nodes, &node{temp: t})
	a.far = append(a.far, t)
	a.limit = from
	a.note()
	w.hash(from)
	w.did["Temp"]++
	w.check(real.Free() == uint64(n), "Temp of %d has %d", n, real.Free())
}

// build fills a Builder, and is done with it or not.
func (w *world) build(s *life) {
	a := s.arena
	if !s.may() || s.far || len(a.near) == maxScopes {
		w.check(w.recovered(func() { fives.Build(s.real) }) != nil, "Build in a scope that may not")
		return
	}
	n := w.random.IntN(100)
	if w.chance(8) {
		n = 1 << 20
	}
	w.say("%s: build of %d in %s", a.name, n, s.name)
	at := a.up(a.cursor, 4)
	room := uint64(0)
	if at <= a.limit {
		room = (a.limit - at) / 20
	}
	b := fives.Build(s.real)
	pushed := uint64(0)
	for range n {
		if !b.TryPush(five{uint32(pushed), 1, 2, 3, 4}) {
			break
		}
		pushed++
	}
	w.check(pushed == min(uint64(n), room), "a Builder takes %d of %d, and there is room for %d", pushed, n, room)
	w.check(longs.TryNew(s.real) == nil, "a scope allocates beside its Builder")
	_ = s.real.Err()
	s.wrong, s.full = true, false
	list := b.Done()
	s.full = pushed < uint64(n) // its scope remembers it from now on
	w.did["built"]++
	if pushed > 0 {
		a.cursor = at + 20*pushed
		a.note()
		w.watch(s, at, bytesAt(&list[0], len(list)*20))
	}
	w.check(uint64(len(list)) == pushed && cap(list) == len(list), "a Builder gives %d", len(list))
}

// list is what Append made longer, or a Text.
type list struct {
	of   *life
	real []uint16
	at   uint64
	copy []uint16
	it   *item
}

// grow appends to a list in a scope.
func (w *world) grow(s *life) {
	w.lists = slices.DeleteFunc(w.lists, func(l *list) bool { return !l.of.open || !l.there() })
	if len(w.lists) == 0 || w.chance(3) {
		w.lists = append(w.lists, &list{of: s})
	}
	l := w.lists[w.random.IntN(len(w.lists))]
	if s = l.of; !s.may() || s.layered > 0 {
		return
	}
	xs := make([]uint16, 1+w.random.IntN(40))
	if w.chance(10) {
		xs = make([]uint16, w.random.IntN(1<<17))
	}
	for i := range xs {
		xs[i] = uint16(w.random.Uint32())
	}
	w.say("%s: append %d to %d of %d in %s", s.arena.name, len(xs), len(l.real), cap(l.real), s.name)
	needed, cursor := len(l.real)+len(xs), uint64(0)
	c, limit := s.end()
	at, capacity, ok := l.at, cap(l.real), true
	switch {
	case needed <= cap(l.real):
		cursor = *c
	case l.it != nil && l.at+2*uint64(cap(l.real)) == *c:
		capacity = needed
		cursor = l.at + 2*uint64(needed)
		ok = cursor <= limit
	default:
		capacity = max(2*len(l.real), needed)
		at, ok = s.place(2*uint64(capacity), 2)
		cursor = at + 2*uint64(capacity)
	}
	var longer []uint16
	v := w.recovered(func() { longer = shorts.Append(s.real, l.real, xs...) })
	if !ok {
		err, _ := v.(error)
		w.check(errors.Is(err, scope.ErrFull), "Append to what is full: %v", v)
		s.full = true
		return
	}
	if v != nil || needed == 0 {
		w.check(v == nil, "Append: %v", v)
		return
	}
	s.moveTo(cursor)
	l.real, l.copy = longer, append(l.copy, xs...)
	w.check(slices.Equal(l.real, l.copy), "Append gives other values")
	w.check(cap(longer) == capacity, "Append has room for %d, not %d", cap(longer), capacity)
	where := w.place(unsafe.Pointer(&longer[0])) - s.arena.start
	w.check(where == at, "Append: a list at %d, not %d", where, at)
	w.hash(at)
	if l.it == nil || at != l.at {
		l.it = &item{}
		s.items = append(s.items, l.it)
	}
	l.at = at
	all := bytesAt(&longer[:capacity][0], 2*capacity)
	*l.it = item{at, all, bytes.Clone(all)}
}

// there says whether the bytes of a list weren't given back by a constructor that failed.
func (l *list) there() bool { return l.it == nil || slices.Contains(l.of.items, l.it) }

// text writes a Text, all at once: it grows by what Append grows.
func (w *world) text(s *life) {
	if !s.may() {
		return
	}
	w.say("%s: text in %s", s.arena.name, s.name)
	c, limit := s.end()
	at, cursor := *c, *c
	text := s.real.Text()
	said := ""
	for range w.random.IntN(6) {
		word := strings.Repeat("a word ", w.random.IntN(30))
		text.Add(word)
		if cursor+uint64(len(word)) > limit {
			s.full = true
			continue
		}
		said += word
		cursor += uint64(len(word))
	}
	s.moveTo(cursor)
	w.check(text.String() == said, "a Text of %q says %q", said, text.String())
	if said != "" {
		w.watch(s, at, unsafe.Slice(unsafe.StringData(text.String()), len(said)))
	}
}
