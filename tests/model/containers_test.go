package model_test

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// box is a container of each kind, or what is left of them when their scope closed.
type box struct {
	of    *life
	mark  *item // of its bytes: gone when they are
	size  int
	list  container.List[uint64]
	deque container.Deque[uint64]
	keys  container.Map[uint32, uint64]
	names container.StringMap[uint64]

	inList, inDeque []uint64
	inKeys          map[uint32]uint64
	inNames         map[string]uint64
}

const nameMax = 5 // bytes

// openBox makes one of each, or has it refused: each takes its bytes at once.
func (w *world) openBox(s *life) {
	if !s.may() {
		w.check(w.recovered(func() { container.NewList(s.real, longs, 1) }) != nil, "a List in a scope that may not")
		if s.open {
			_ = s.real.Err()
			s.wrong, s.full = true, false
		}
		return
	}
	n := w.random.IntN(12)
	if w.chance(8) {
		n = w.random.IntN(3000)
	}
	w.say("%s: containers for %d in %s", s.arena.name, n, s.name)
	x := &box{of: s, size: n, inKeys: map[uint32]uint64{}, inNames: map[string]uint64{}}
	cells := uint64(8) << bits.Len64(uint64(max(0, n*4-1))/3)
	size := uint64(n)
	for _, one := range []struct {
		size uint64
		make func()
	}{
		{8 * size, func() { x.list = container.NewList(s.real, longs, n) }},
		{8 * size, func() { x.deque = container.NewDeque(s.real, longs, n) }},
		{cells + (4*size+7)&^7 + 8*size, func() { x.keys = container.NewMap(s.real, words, longs, n) }},
		{cells + 16*size + nameMax*size, func() { x.names = container.NewStringMap(s.real, longs, n, nameMax) }},
	} {
		at, ok := s.place(one.size, 8)
		v := w.recovered(one.make)
		if !ok {
			err, _ := v.(error)
			w.check(errors.Is(err, scope.ErrFull), "a container that doesn't fit: %v", v)
			s.full = true
			return
		}
		w.check(v == nil, "a container that fits: %v", v)
		s.moveTo(at + one.size)
	}
	x.mark = &item{}
	s.items = append(s.items, x.mark)
	w.did["containers"]++
	w.boxes = append(w.boxes, x)
}

// there says whether its bytes weren't given back by a constructor that failed.
func (x *box) there() bool { return slices.Contains(x.of.items, x.mark) }

var words = scope.Plain[uint32]()

// useBox changes the containers, and compares what is in them. A constructor that fails takes their
// bytes back while the scope lives: nobody may use them then, so they are forgotten.
func (w *world) useBox() {
	w.boxes = slices.DeleteFunc(w.boxes, func(x *box) bool { return x.of.open && !x.there() })
	if len(w.boxes) == 0 {
		return
	}
	x := w.boxes[w.random.IntN(len(w.boxes))]
	w.say("%s: use of containers for %d", x.of.arena.name, x.size)
	if !x.of.open {
		w.check(x.list.Len()+x.deque.Len()+x.keys.Len()+x.names.Len() == 0, "containers of a closed scope hold something")
		w.check(x.keys.Get(1) == nil && x.names.Get("a") == nil, "maps of a closed scope find something")
		w.check(w.recovered(func() { x.list.Push(1) }) != nil, "Push to a List of a closed scope")
		return
	}
	if x.of.arena.closing {
		return
	}
	for range w.random.IntN(12) {
		w.changeBox(x, w.random.Uint64())
	}
	w.check(slices.Equal(x.list.Slice(), x.inList), "a List holds other values")
	var values []uint64
	for _, v := range x.deque.All() {
		values = append(values, *v)
	}
	w.check(slices.Equal(values, x.inDeque), "a Deque holds other values")
	w.check(x.keys.Len() == len(x.inKeys) && x.names.Len() == len(x.inNames), "a map has another number of keys")
	for k, v := range x.inKeys {
		got := x.keys.Get(k)
		w.check(got != nil && *got == v, "a Map holds another value")
	}
	for k, v := range x.inNames {
		got := x.names.Get(k)
		w.check(got != nil && *got == v, "a StringMap holds another value")
	}
}

func (w *world) changeBox(x *box, v uint64) {
	key := uint32(v % 16)
	name := fmt.Sprint("n", v%16)
	switch w.random.IntN(8) {
	case 0:
		if ok := x.list.Push(v); ok {
			x.inList = append(x.inList, v)
		} else {
			w.check(len(x.inList) == x.size, "Push to a List is refused")
		}
	case 1:
		last, ok := x.list.Pop()
		if n := len(x.inList) - 1; n >= 0 {
			w.check(ok && last == x.inList[n], "Pop of a List")
			x.inList = x.inList[:n]
		}
	case 2:
		if ok := x.deque.PushFront(v); ok {
			x.inDeque = append([]uint64{v}, x.inDeque...)
		} else {
			w.check(len(x.inDeque) == x.size, "PushFront to a Deque is refused")
		}
	case 3:
		last, ok := x.deque.PopBack()
		if n := len(x.inDeque) - 1; n >= 0 {
			w.check(ok && last == x.inDeque[n], "PopBack of a Deque")
			x.inDeque = x.inDeque[:n]
		}
	case 4:
		_, there := x.inKeys[key]
		if x.keys.Set(key, v) {
			x.inKeys[key] = v
		} else {
			w.check(!there && len(x.inKeys) == x.size, "Set in a Map is refused")
		}
	case 5:
		_, there := x.inNames[name]
		if err := x.names.Set(name, v); err == nil {
			x.inNames[name] = v
		} else {
			w.check(!there && len(x.inNames) == x.size && errors.Is(err, scope.ErrFull), "Set in a StringMap: %v", err)
		}
	case 6:
		_, there := x.inKeys[key]
		w.check(x.keys.Delete(key) == there, "Delete in a Map")
		delete(x.inKeys, key)
	default:
		_, there := x.inNames[name]
		w.check(x.names.Delete(name) == there, "Delete in a StringMap")
		delete(x.inNames, name)
	}
}
