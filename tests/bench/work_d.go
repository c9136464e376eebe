package main

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/bump"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

const (
	depthD   = 4 // nested scopes
	objectsD = 8 // of a scope

	withDefer = "upfront, Defer"
)

var workD = work{
	letter: "D", title: "four nested scopes, empty, with 8 zeroed objects of 64 bytes, or with these and 2 clean-ups",
	absent: "The others have no clean-ups. In the row of the empty scope C has 8 objects and 2 clean-ups, too.",
	loops: []loop{
		{name: "D empty scope", unit: "scope", units: depthD, enter: enterEmpty},
		{name: "D 8 objects", unit: "scope", units: depthD, enter: enterFilled},
		{name: "D 8 objects, 2 clean-ups", unit: "scope", units: depthD, enter: enterCleaned},
	},
}

// cleaned sums up the clean-ups. It is the checksum of scopes with clean-ups.
var cleaned uint64

func cleanUp(n uintptr) { cleaned += uint64(n) }

func cleanOne() { cleaned++ }

// finalized makes objects of 8 bytes with a finalizer.
var finalized = scope.Object(func(x *uint64) error {
	cleaned += *x
	return nil
})

//go:noinline
func enterEmpty() []contestant {
	other := scopesC()
	other.other = true
	return []contestant{other, scopesUpfront(library, emptyScopes)}
}

//go:noinline
func enterFilled() []contestant {
	a := bump.NewGo(budget.MiB)
	return []contestant{
		counting(byHand, func() {
			var m [depthD]uintptr
			for d := range m {
				m[d] = a.Mark()
				fillByHand(a)
			}
			for d := len(m) - 1; d >= 0; d-- {
				a.Rewind(m[d])
			}
		}),
		scopesUpfront(library, filledScopes),
	}
}

//go:noinline
func enterCleaned() []contestant {
	s := &bump.Scopes{A: bump.NewGo(budget.MiB)}
	return []contestant{
		scopesC(),
		counting(byHand, func() {
			var sc [depthD]bump.Scope
			for d := range sc {
				sc[d] = s.Open()
				fillByHand(s.A)
				s.Defer(cleanUp, 1)
				s.Defer(cleanUp, 1)
			}
			for d := len(sc) - 1; d >= 0; d-- {
				s.Close(sc[d])
			}
		}),
		scopesUpfront(library, finalizedScopes), scopesUpfront(withDefer, deferredScopes), scopesGoHeap(),
	}
}

// scopesC has 8 objects and 2 clean-ups in each scope.
//
//go:noinline
func scopesC() contestant {
	s := cfloor.NewScopes(budget.MiB)
	return contestant{who: floor, run: func(n int) uint64 {
		before := cfloor.Count()
		for range n {
			s.Four(objectsD, 2)
		}
		return cfloor.Count() - before
	}}
}

// counting opens and closes the four scopes of one time, and counts clean-ups.
//
//go:noinline
func counting(who string, four func()) contestant {
	return contestant{who: who, run: func(n int) uint64 {
		cleaned = 0
		for range n {
			four()
		}
		return cleaned
	}}
}

//go:noinline
func scopesUpfront(who string, four func(scope.Scratch)) contestant {
	b, end := scratches(1, budget.MiB)
	scratch := b.Scratch(0, 0)
	return contestant{who: who, end: end, run: func(n int) uint64 {
		cleaned = 0
		for range n {
			four(scratch)
		}
		return cleaned
	}}
}

func emptyScopes(scratch scope.Scratch) {
	var s [depthD]scope.Scope
	for d := range s {
		s[d] = scratch.Open("nest")
	}
	closeAll(&s)
}

func filledScopes(scratch scope.Scratch) {
	var s [depthD]scope.Scope
	for d := range s {
		s[d] = scratch.Open("nest")
		fill(s[d])
	}
	closeAll(&s)
}

func finalizedScopes(scratch scope.Scratch) {
	var s [depthD]scope.Scope
	for d := range s {
		s[d] = scratch.Open("nest")
		fill(s[d])
		*finalized.New(s[d]) = 1
		*finalized.New(s[d]) = 1
	}
	closeAll(&s)
}

func deferredScopes(scratch scope.Scratch) {
	var s [depthD]scope.Scope
	for d := range s {
		s[d] = scratch.Open("nest")
		fill(s[d])
		s[d].Defer(cleanOne)
		s[d].Defer(cleanOne)
	}
	closeAll(&s)
}

func closeAll(s *[depthD]scope.Scope) {
	for d := len(s) - 1; d >= 0; d-- {
		_ = s[d].Close()
	}
}

func fill(s scope.Scope) {
	for i := range objectsD {
		p := objects.New(s)
		p[0] = uint64(i)
		kept[i] = p
	}
}

func fillByHand(a *bump.Arena) {
	for i := range objectsD {
		p := bump.New[object](a)
		p[0] = uint64(i)
		kept[i] = p
	}
}

// scopesGoHeap uses new and defer. It calls through variables, so that the objects aren't on the
// stack.
//
//go:noinline
func scopesGoHeap() contestant {
	var nest func(depth int)
	nest = func(depth int) {
		for i := range objectsD {
			kept[i] = new(object)
			kept[i][0] = uint64(i)
		}
		for range 2 {
			p := new(uint64)
			*p = 1
			defer cleanUpHeap(p)
		}
		if depth > 1 {
			nest(depth - 1)
		}
	}
	return counting(goHeap, func() { nest(depthD) })
}

var cleanUpHeap = func(p *uint64) { cleaned += *p }
