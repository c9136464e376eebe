package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
)

// containerLives are what containers take away.
var containerLives = map[string]func(*play){
	"fixed-list-pop": func(p *play) {
		l := newList(p.scope())
		l.Push(frog{})
		x := l.At(0)
		p.pair(
			func() { look(x) }, // life/fixed-list-pop first
			func() { l.Pop() }, // life/fixed-list-pop second
		)
	},
	"fixed-list-clear": func(p *play) {
		l := newList(p.scope())
		l.Push(frog{})
		x := l.At(0)
		p.pair(
			func() { look(x) },   // life/fixed-list-clear first
			func() { l.Clear() }, // life/fixed-list-clear second
		)
	},
	"deque-pop": func(p *play) {
		d := newDeque(p.scope())
		d.PushBack(frog{})
		x := d.At(0)
		p.pair(
			func() { look(x) },      // life/deque-pop first
			func() { d.PopFront() }, // life/deque-pop second
		)
	},
	"deque-clear": func(p *play) {
		d := newDeque(p.scope())
		d.PushFront(frog{})
		x := d.At(0)
		p.pair(
			func() { look(x) },   // life/deque-clear first
			func() { d.Clear() }, // life/deque-clear second
		)
	},
	"map-delete": func(p *play) {
		m := newMap(p.scope())
		m.Set(7, frog{})
		x := m.Get(7)
		p.pair(
			func() { look(x) },     // life/map-delete first
			func() { m.Delete(7) }, // life/map-delete second
		)
	},
	"map-clear": func(p *play) {
		m := newMap(p.scope())
		m.Set(7, frog{})
		x := m.Get(7)
		p.pair(
			func() { look(x) },   // life/map-clear first
			func() { m.Clear() }, // life/map-clear second
		)
	},
	"string-map-delete": func(p *play) {
		m := newStringMap(p.scope())
		must(m.Set("7", frog{}))
		x := m.Get("7")
		p.pair(
			func() { look(x) },       // life/string-map-delete first
			func() { m.Delete("7") }, // life/string-map-delete second
		)
	},
	"text-reset": func(p *play) {
		t := p.scope().Text()
		bytes := t.AddInt(7).Bytes()
		p.pair(
			func() { lookAt(bytes) }, // life/text-reset first
			func() { t.Reset() },     // life/text-reset second
		)
	},
}

// arenaLives are those in the arenas of package arena.
var arenaLives = map[string]func(*play){
	"linear-rewind": func(p *play) {
		l := newLinear(p, 0)
		mark := l.Mark()
		x := (*frog)(l.Alloc(8, 4))
		p.pair(
			func() { look(x) },              // life/linear-rewind first
			func() { must(l.Rewind(mark)) }, // life/linear-rewind second
		)
	},
	"linear-far": func(p *play) {
		l := newLinear(p, 0).Far()
		mark := l.Mark()
		x := (*frog)(l.Alloc(8, 4))
		p.pair(
			func() { look(x) },              // life/linear-far first
			func() { must(l.Rewind(mark)) }, // life/linear-far second
		)
	},
	"stack-free": func(p *play) {
		s := newStack(p, 0)
		x := (*frog)(s.Alloc(8, 4))
		p.pair(
			func() { look(x) },                         // life/stack-free first
			func() { must(s.Free(unsafe.Pointer(x))) }, // life/stack-free second
		)
	},
	"buffers-turn": func(p *play) {
		f := newBuffers(p, 0)
		x := (*frog)(f.Alloc(8, 4))
		f.Next()
		p.pair(
			func() { look(x) },  // life/buffers-turn first
			func() { f.Next() }, // life/buffers-turn second
		)
	},
	"ring-free": func(p *play) {
		r := newRing(p, 0)
		x := (*frog)(r.Alloc(8, 8))
		p.pair(
			func() { look(x) },                         // life/ring-free first
			func() { must(r.Free(unsafe.Pointer(x))) }, // life/ring-free second
		)
	},
	"heap-free": func(p *play) {
		h := newHeap(p, 0)
		x := onHeap.New(h)
		p.pair(
			func() { look(x) },                   // life/heap-free first
			func() { must(onHeap.Delete(h, x)) }, // life/heap-free second
		)
	},
	"heap-realloc": func(p *play) {
		h := newHeap(p, 0)
		x := onHeap.New(h)
		onHeap.New(h)
		p.pair(
			func() { look(x) }, // life/heap-realloc first
			func() { _, err := h.Realloc(unsafe.Pointer(x), 500); must(err) }, // life/heap-realloc second
		)
	},
	"heap-reset": func(p *play) {
		h := newHeap(p, 0)
		x := onHeap.New(h)
		p.pair(
			func() { look(x) },   // life/heap-reset first
			func() { h.Reset() }, // life/heap-reset second
		)
	},
	"proxy-put": func(p *play) {
		chunks := arena.NewPoolProxy("y", newChunks(p, 0))
		x := chunks.Get()
		p.pair(
			func() { look(x) },             // life/proxy-put first
			func() { must(chunks.Put(x)) }, // life/proxy-put second
		)
	},
}

//go:noinline
func lookAt(bytes []byte) byte { return bytes[0] }
