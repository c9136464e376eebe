package model_test

import (
	"bytes"
	"errors"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

type five struct{ A, B, C, D, E uint32 }

var (
	octets = scope.Plain[byte]()
	shorts = scope.Plain[uint16]()
	threes = scope.Plain[[3]byte]()
	fives  = scope.Plain[five]()
	longs  = scope.Plain[uint64]()
	larges = scope.Plain[[25]uint64]()
	nones  = scope.Plain[struct{}]()
)

// item is live memory: its bytes, and a copy of their expected contents.
type item struct {
	at   uint64
	real []byte
	copy []byte
}

func bytesAt[T any](p *T, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), n)
}

// keep fills bytes at random, and has them checked after every step.
func (w *world) keep(s *life, real []byte, align uint64) {
	p := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(real))))
	w.check(p&(align-1) == 0, "%s: what is to be aligned to %d lies at %x", s.arena.name, align, p)
	w.write(w.watch(s, real))
}

// watch has bytes with contents checked after every step.
func (w *world) watch(s *life, real []byte) *item {
	it := &item{real: real, copy: bytes.Clone(real)}
	if len(real) > 0 {
		it.at = w.place(s.arena, unsafe.Pointer(unsafe.SliceData(real)))
		w.hash(it.at)
	}
	s.items = append(s.items, it)
	return it
}

func (w *world) write(it *item) {
	for i := range it.real {
		it.real[i] = byte(w.random.Uint32())
	}
	it.copy = append(it.copy[:0], it.real...)
}

func (w *world) zero(what string, real []byte) {
	for _, b := range real {
		if b != 0 {
			w.fail("%s isn't zeroed", what)
			return
		}
	}
}

// ask is a request for bytes. When it is refused, New and its like unwind; TryNew and its like
// return nil.
type ask struct {
	name        string
	size, align uint64
	zeroed      bool
	try         func(scope.Scope) unsafe.Pointer
	unwind      func(scope.Scope) unsafe.Pointer
}

func askFor[T any](name string, m scope.Maker[T]) ask {
	var t T
	return ask{name: name, size: uint64(unsafe.Sizeof(t)), align: uint64(unsafe.Alignof(t)), zeroed: true,
		try:    func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(m.TryNew(s)) },
		unwind: func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(m.New(s)) }}
}

func askForSlice[T any](name string, m scope.Maker[T], n int) ask {
	var t T
	a := ask{name: name, size: uint64(n) * uint64(unsafe.Sizeof(t)), align: uint64(unsafe.Alignof(t)), zeroed: true}
	a.try = func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.TrySlice(s, n))) }
	a.unwind = func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.Slice(s, n))) }
	return a
}

// someAsk returns a request of random kind and size.
func (w *world) someAsk() ask {
	n := w.random.IntN(40)
	if w.chance(12) {
		n = w.random.IntN(12_000)
	}
	switch w.random.IntN(12) {
	case 0:
		return askFor("byte", octets)
	case 1:
		return askFor("uint16", shorts)
	case 2:
		return askFor("[3]byte", threes)
	case 3:
		return askFor("five", fives)
	case 4:
		return askFor("uint64", longs)
	case 5:
		return askFor("[25]uint64", larges)
	case 6:
		return askFor("struct{}", nones)
	case 7:
		return askForSlice("[]five", fives, n)
	case 8:
		return askForSlice("[][3]byte", threes, n)
	case 9:
		align := uint64(1) << w.random.IntN(13)
		a := askForSlice("[]uint16 aligned", shorts, n)
		a.align, a.try = max(align, a.align), nil
		a.unwind = func(s scope.Scope) unsafe.Pointer {
			return unsafe.Pointer(unsafe.SliceData(shorts.SliceAligned(s, n, align)))
		}
		return a
	}
	return w.someAlloc(uint64(n))
}

// someAlloc returns an Alloc with any alignment up to 1 MiB, also of sizes that no arena has.
func (w *world) someAlloc(size uint64) ask {
	if w.chance(20) {
		size = 1<<63 - 1 - uint64(w.random.IntN(200)) + 1<<uint(w.random.IntN(64))
	}
	if w.chance(3) {
		align := uint64(1) << w.random.IntN(map[bool]int{false: 14, true: 21}[w.wideAligns])
		n := int(min(size, math.MaxInt))
		return ask{name: "BytesUnzeroed", size: uint64(n), align: align,
			unwind: func(s scope.Scope) unsafe.Pointer {
				return unsafe.Pointer(unsafe.SliceData(s.BytesUnzeroed(n, align)))
			}}
	}
	align := uint64(1) << w.random.IntN(7)
	return ask{name: "Alloc", size: size, align: align,
		try:    func(s scope.Scope) unsafe.Pointer { return s.TryAllocUnzeroed(size, align) },
		unwind: func(s scope.Scope) unsafe.Pointer { return s.AllocUnzeroed(size, align) }}
}

// The expected answer of a scope that may allocate. Where alignment decides, it may be either.
const (
	no = iota
	perhaps
	yes
)

// fit returns whether the free bytes of a scope hold a request, after a node or without one.
func fit(s *life, size, align uint64, node bool) int {
	free, before := s.real.Free(), uint64(0)
	if node {
		before = 8
		align = max(align, 8)
	}
	switch {
	case !s.may() || size > free || before > free-size:
		return no
	case before+align-1 > free-size:
		return perhaps
	}
	return yes
}

// allocate makes a request of any scope: topmost, covered, or closed.
func (w *world) allocate(s *life) {
	a := w.someAsk()
	w.say("%s: %s of %d bytes aligned to %d in %s", s.arena.name, a.name, a.size, a.align, s.name)
	p := w.request(s, fit(s, a.size, a.align, false), a.try, a.unwind)
	if p == nil || !w.good() {
		return
	}
	real := unsafe.Slice((*byte)(p), a.size)
	if a.zeroed {
		w.zero(a.name, real)
	}
	w.keep(s, real, a.align)
}

// request allocates and compares the answer. A refusal is reported and remembered: a full by the
// topmost scope, misuse by any live scope.
func (w *world) request(s *life, fits int, try, unwind func(scope.Scope) unsafe.Pointer) (p unsafe.Pointer) {
	if fits != no {
		if try != nil && w.chance(2) {
			p = try(s.real)
		} else {
			w.recovered(func() { p = unwind(s.real) })
		}
		if p == nil {
			w.check(fits == perhaps, "what fits is refused")
			w.refused(s)
		}
		return p
	}
	w.did["refused"]++
	if try != nil && w.chance(2) {
		w.check(try(s.real) == nil, "what may not be given is given")
		w.refused(s)
		return nil
	}
	if s.may() && w.chance(3) && w.layers > 0 {
		w.did["unwound"]++
		w.refused(s)
		w.flight = s
		unwind(s.real)
		w.fail("what may not be given is given, unwinding")
	}
	v := w.recovered(func() { unwind(s.real) })
	err, _ := v.(error)
	w.check(err != nil, "what may not be given ends with %v", v)
	w.check(errors.Is(err, scope.ErrFull) == s.may(), "a refusal says %v", err)
	w.check(s.open || errors.Is(err, scope.ErrClosed), "a refusal of a closed scope says %v", err)
	w.refused(s)
	return nil
}

// refused sets the refusal that the scope should remember.
func (w *world) refused(s *life) {
	w.say("refused")
	switch {
	case s.may():
		s.full = true
	case s.open:
		_ = s.real.Err() // reported now, whether or not a stale scope's Err follows
		s.wrong, s.full = true, false
	}
}

// object makes one or several objects with a finalizer.
func (w *world) object(s *life) {
	switch w.random.IntN(4) {
	case 3:
		w.deferC(s)
	case 0:
		w.say("%s: object in %s", s.arena.name, s.name)
		p := w.request(s, fit(s, 8, 8, true),
			func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(marks.TryNew(s)) },
			func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(marks.New(s)) })
		if p != nil && w.good() {
			m := (*marked)(p)
			m.ID = w.newFinalizer(s, nil)
			s.nodes = append(s.nodes, &node{ids: []int64{m.ID}})
			w.watch(s, bytesAt(m, 8))
		}
	case 1:
		w.objects(s, w.random.IntN(5))
	default:
		w.own(s)
	}
}

func (w *world) objects(s *life, n int) {
	const front, stride = 32, uint64(unsafe.Sizeof(wide{}))
	w.say("%s: %d objects in %s", s.arena.name, n, s.name)
	var list []wide
	p := w.request(s, fit(s, front+uint64(n)*stride, 8, true), nil, func(s scope.Scope) unsafe.Pointer {
		list = wides.Slice(s, n)
		return unsafe.Pointer(unsafe.SliceData(list))
	})
	if p == nil || !w.good() {
		return
	}
	ids := make([]int64, n)
	for i := range list {
		list[i].ID = w.newFinalizer(s, nil)
		ids[n-1-i] = list[i].ID
	}
	s.nodes = append(s.nodes, &node{ids: ids})
	w.watch(s, bytesAt(unsafe.SliceData(list), n*int(stride)))
}
