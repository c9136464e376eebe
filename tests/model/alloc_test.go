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

// item is something that is live: its bytes, and a copy of what was written there.
type item struct {
	at   uint64
	real []byte
	copy []byte
}

func bytesAt[T any](p *T, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), n)
}

// keep has an item checked after every step, with random contents.
func (w *world) keep(s *life, at uint64, real []byte) *item {
	w.check(len(real) == 0 || w.place(unsafe.Pointer(unsafe.SliceData(real))) == s.arena.start+at,
		"%s: what was asked for lies at %x, not at %x", s.arena.name,
		w.place(unsafe.Pointer(unsafe.SliceData(real)))-s.arena.start, at)
	w.hash(at)
	it := &item{at: at, real: real}
	s.items = append(s.items, it)
	w.write(it)
	return it
}

// watch is keep of what has contents already.
func (w *world) watch(s *life, at uint64, real []byte) *item {
	w.hash(at)
	it := &item{at, real, bytes.Clone(real)}
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

// ask is a request for bytes: New and its like unwind when it is refused, TryNew and its like give nil.
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

// someAsk is a request of random kind and size.
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

// someAlloc is Alloc: of any alignment up to 1 MiB, and of sizes that nothing has.
func (w *world) someAlloc(size uint64) ask {
	if w.chance(20) {
		size = 1<<63 - 1 - uint64(w.random.IntN(200)) + 1<<uint(w.random.IntN(64))
	}
	if w.chance(3) {
		align := uint64(1) << w.random.IntN(map[bool]int{false: 14, true: 21}[w.wideAligns])
		n := int(min(size, math.MaxInt))
		return ask{name: "BytesUnzeroed", size: uint64(n), align: align,
			unwind: func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s.BytesUnzeroed(n, align))) }}
	}
	align := uint64(1) << w.random.IntN(7)
	return ask{name: "Alloc", size: size, align: align,
		try:    func(s scope.Scope) unsafe.Pointer { return s.TryAllocUnzeroed(size, align) },
		unwind: func(s scope.Scope) unsafe.Pointer { return s.AllocUnzeroed(size, align) }}
}

// allocate asks a scope that may be any: topmost, covered, closed.
func (w *world) allocate(s *life) {
	a := w.someAsk()
	at, ok := s.place(a.size, a.align)
	w.say("%s: %s of %d bytes aligned to %d in %s", s.arena.name, a.name, a.size, a.align, s.name)
	p := w.request(s, ok && s.may(), a.try, a.unwind)
	if p == nil || !w.good() {
		return
	}
	real := unsafe.Slice((*byte)(p), a.size)
	if a.zeroed {
		w.zero(a.name, real)
	}
	s.moveTo(at + a.size)
	w.keep(s, at, real)
}

// request has bytes asked for. What is refused says so, and is remembered: a full by the topmost scope,
// misuse by one that is alive.
func (w *world) request(s *life, given bool, try, unwind func(scope.Scope) unsafe.Pointer) (p unsafe.Pointer) {
	if given {
		if try != nil && w.chance(2) {
			p = try(s.real)
		} else {
			p = unwind(s.real)
		}
		w.check(p != nil, "what fits is refused")
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

// refused is what is remembered.
func (w *world) refused(s *life) {
	w.say("refused")
	switch {
	case s.may():
		s.full = true
	case s.open:
		_ = s.real.Err() // it is known from now on, whatever a stale one asks
		s.wrong, s.full = true, false
	}
}

// object makes one with a finalizer, or several.
func (w *world) object(s *life) {
	switch w.random.IntN(4) {
	case 3:
		w.deferC(s)
	case 0:
		at, ok := s.nodePlace(8, 8)
		w.say("%s: object in %s", s.arena.name, s.name)
		p := w.request(s, ok && s.may(),
			func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(marks.TryNew(s)) },
			func(s scope.Scope) unsafe.Pointer { return unsafe.Pointer(marks.New(s)) })
		if p != nil && w.good() {
			m := (*marked)(p)
			m.ID = w.newFinalizer(s, nil)
			s.moveTo(at + 8)
			s.nodes = append(s.nodes, &node{ids: []int64{m.ID}})
			w.watch(s, at, bytesAt(m, 8))
		}
	case 1:
		w.objects(s, w.random.IntN(5))
	default:
		w.own(s)
	}
}

func (w *world) objects(s *life, n int) {
	const stride = uint64(unsafe.Sizeof(wide{}))
	align := uint64(unsafe.Alignof(wide{}))
	size := (front+max(align, nodeSize)-1)&^(max(align, nodeSize)-1) + uint64(n)*stride
	at, ok := s.nodePlace(size, align)
	w.say("%s: %d objects in %s", s.arena.name, n, s.name)
	var list []wide
	p := w.request(s, ok && s.may(), nil, func(s scope.Scope) unsafe.Pointer {
		list = wides.Slice(s, n)
		return unsafe.Pointer(unsafe.SliceData(list))
	})
	if p == nil || !w.good() {
		return
	}
	s.moveTo(at + size)
	ids := make([]int64, n)
	for i := range list {
		list[i].ID = w.newFinalizer(s, nil)
		ids[n-1-i] = list[i].ID
	}
	s.nodes = append(s.nodes, &node{ids: ids})
	if n > 0 {
		w.watch(s, at+size-uint64(n)*stride, bytesAt(&list[0], n*int(stride)))
	}
}
