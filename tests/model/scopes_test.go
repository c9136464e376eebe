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

// openScope opens a scope in another, or expects its refusal.
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
	then, t := len(w.ran), s.tell()
	w.layer(s.real.Close, func(e ended) {
		t.add(w.closed(s))
		t.add(w.since(then))
		if !t.exits {
			w.expect("Close", e.err, t)
		}
	})
	w.stale = append(w.stale, s.real)
	w.gone = append(w.gone, s)
}

// err compares the refusal that a scope remembers.
func (w *world) err(s *life) {
	err := s.real.Err()
	w.say("%s: Err of %s", s.arena.name, s.name)
	if !s.open {
		w.check(errors.Is(err, scope.ErrClosed), "Err of what is closed: %v", err)
		return
	}
	w.expect("Err", err, reported{full: s.full && !s.wrong, wrong: s.wrong})
}

// temp opens temporaries.
func (w *world) temp(s *life) {
	a, n := s.arena, w.random.IntN(6000)
	if w.chance(12) {
		n = int(min(w.random.Int64N(1<<42), math.MaxInt)) // an int may have 32 bits
	}
	w.say("%s: Temp of %d in %s", a.name, n, s.name)
	const edges = 64 + 24 // the end is rounded down to a line, and a node takes the rest
	free := s.real.Free()
	if s.far {
		free = a.size - a.used
	}
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
	case v != nil:
		w.did["no room for Temp"]++
		w.check(errors.Is(err, scope.ErrFull) && (free < uint64(n)+edges || s.real.Free() < 24), "Temp of %d of %d: %v",
			n, free, v)
		s.full = true
		return
	}
	t := &life{arena: a, real: real, name: "temp", far: true, open: true}
	s.nodes = append(s.nodes, &node{temp: t})
	a.far = append(a.far, t)
	w.did["Temp"]++
	w.check(uint64(n) <= free && real.Free() == uint64(n), "Temp of %d has %d of %d", n, real.Free(), free)
}

// build fills a Builder, and calls Done or doesn't.
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
	free := s.real.Free()
	b := fives.Build(s.real)
	pushed := uint64(0)
	for range n {
		if !b.TryPush(five{uint32(pushed), 1, 2, 3, 4}) {
			break
		}
		pushed++
	}
	w.check(pushed*20 <= free && (pushed == uint64(n) || (pushed+1)*20+3 > free),
		"a Builder takes %d of %d into %d bytes", pushed, n, free)
	w.check(longs.TryNew(s.real) == nil, "a scope allocates beside its Builder")
	_ = s.real.Err()
	s.wrong, s.full = true, false
	list := b.Done()
	s.full = pushed < uint64(n) // its scope remembers the full from now on
	w.did["built"]++
	if pushed > 0 {
		w.watch(s, bytesAt(&list[0], len(list)*20))
	}
	w.check(free-s.real.Free() <= 20*pushed+3, "a Builder of %d keeps %d bytes", pushed, free-s.real.Free())
	w.check(uint64(len(list)) == pushed && cap(list) == len(list), "a Builder gives %d", len(list))
}

// list is a slice that Append extended.
type list struct {
	of   *life
	real []uint16
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
	needed, free := len(l.real)+len(xs), s.real.Free()
	var longer []uint16
	v := w.recovered(func() { longer = shorts.Append(s.real, l.real, xs...) })
	if v != nil {
		err, _ := v.(error)
		most := 2*uint64(max(2*len(l.real), needed)) + 1
		w.check(errors.Is(err, scope.ErrFull) && needed > cap(l.real) && most > free, "Append to %d bytes: %v", free, v)
		s.full = true
		return
	}
	if needed == 0 {
		return
	}
	took := free - s.real.Free()
	w.check(needed > cap(l.real) || took == 0, "Append takes %d bytes for what has room", took)
	moved := unsafe.SliceData(longer) != unsafe.SliceData(l.real)
	w.check(moved || took == 2*uint64(cap(longer)-cap(l.real)), "a list grows by %d bytes for %d more",
		took, cap(longer)-cap(l.real))
	l.real, l.copy = longer, append(l.copy, xs...)
	w.check(slices.Equal(l.real, l.copy), "Append gives other values")
	if l.it == nil || moved {
		l.it = w.watch(s, nil)
	}
	all := bytesAt(unsafe.SliceData(longer), 2*cap(longer))
	*l.it = item{w.place(s.arena, unsafe.Pointer(unsafe.SliceData(longer))), all, bytes.Clone(all)}
	w.hash(l.it.at)
}

// there reports whether the list exists: a constructor that failed frees its lists.
func (l *list) there() bool { return l.it == nil || slices.Contains(l.of.items, l.it) }

// text writes a Text in one call. It grows as Append does.
func (w *world) text(s *life) {
	if !s.may() {
		return
	}
	w.say("%s: text in %s", s.arena.name, s.name)
	free := s.real.Free()
	text := s.real.Text()
	said := ""
	for range w.random.IntN(6) {
		word := strings.Repeat("a word ", w.random.IntN(30))
		text.Add(word)
		if uint64(len(said)+len(word)) > free {
			s.full = true
			continue
		}
		said += word
	}
	w.check(text.String() == said && free-s.real.Free() == uint64(len(said)), "a Text of %q says %q",
		said, text.String())
	if said != "" {
		w.watch(s, unsafe.Slice(unsafe.StringData(text.String()), len(said)))
	}
}
