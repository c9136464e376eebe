package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// ending returns programs in which one goroutine reads an object, and another ends its life.
func ending(list map[string]func(p *play) (*frog, func())) map[string]func(*play) {
	made := map[string]func(*play){}
	for name, live := range list {
		made[name] = func(p *play) {
			x, end := live(p)
			p.pair(
				func() { look(x) }, // end/* first
				end,
			)
		}
	}
	return made
}

// ends make an object, and return the function that ends its life.
var ends = map[string]func(p *play) (*frog, func()){
	"close": func(p *play) (*frog, func()) {
		s := p.scope()
		x := frogs.New(s)
		return x, func() { must(s.Close()) } // end/close second
	},
	"rewind": func(p *play) (*frog, func()) {
		x := loaded(p).Get()
		return x, func() { must(p.budget.Region("systems").Rewind(background)) } // end/rewind second
	},
	"load": func(p *play) (*frog, func()) {
		x := loaded(p).Get()
		return x, func() { loaded(p) } // end/load second
	},
	"make-fails": func(p *play) (*frog, func()) {
		s := p.scope()
		var x *frog
		_, err := frogs.Make(s, func(made *frog) error { x = made; return nil })
		must(err)
		return x, func() { frogs.Make(s, func(*frog) error { frogs.New(s); return errFails }); must(s.Close()) } // end/make-fails second
	},
	"release": func(p *play) (*frog, func()) {
		slot, err := p.budget.Slots("match").Acquire()
		must(err)
		loaded, err := budget.Load(background, slot, func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
		must(err)
		x := loaded.Get()
		return x, func() { must(slot.Release(background)) } // end/release second
	},
	"budget": func(p *play) (*frog, func()) {
		x := loaded(p).Get()
		return x, func() { must(p.budget.Close()) } // end/budget second
	},
	"turn": func(p *play) (*frog, func()) {
		x := frogs.New(p.budget.Frame())
		must(p.budget.NextFrame())
		return x, func() { must(p.budget.NextFrame()) } // end/turn second
	},
	"give": func(p *play) (*frog, func()) {
		lent, err := p.budget.Lease(background)
		must(err)
		x := frogs.New(lent.Pick().Open("a"))
		return x, func() { lent.Release() } // end/give second
	},
	"put": func(p *play) (*frog, func()) {
		pool := frogs.Pool(p.scope(), 4)
		x := pool.Get()
		return x, func() { pool.Put(x) } // end/put second
	},
	"put-shared": func(p *play) (*frog, func()) {
		pool := frogs.SharedPool(p.scope(), 4)
		x := pool.Get()
		return x, func() { pool.Put(x) } // end/put-shared second
	},
	"put-object": func(p *play) (*frog, func()) {
		pool := living.Pool(p.scope(), 4)
		x := pool.Get()
		return x, func() { must(pool.Put(x)) } // end/put-object second
	},
	"put-handle": func(p *play) (*frog, func()) {
		pool := frogs.HandlePool(p.scope(), 4)
		x, h := pool.Get()
		return x, func() { pool.Put(h) } // end/put-handle second
	},
	"fixed-list-pop": func(p *play) (*frog, func()) {
		l := newList(p.scope())
		l.Push(frog{})
		x := l.At(0)
		return x, func() { l.Pop() } // end/fixed-list-pop second
	},
	"fixed-list-clear": func(p *play) (*frog, func()) {
		l := newList(p.scope())
		l.Push(frog{})
		x := l.At(0)
		return x, func() { l.Clear() } // end/fixed-list-clear second
	},
	"deque-pop": func(p *play) (*frog, func()) {
		d := newDeque(p.scope())
		d.PushBack(frog{})
		x := d.At(0)
		return x, func() { d.PopFront() } // end/deque-pop second
	},
	"deque-clear": func(p *play) (*frog, func()) {
		d := newDeque(p.scope())
		d.PushFront(frog{})
		x := d.At(0)
		return x, func() { d.Clear() } // end/deque-clear second
	},
	"map-delete": func(p *play) (*frog, func()) {
		m := newMap(p.scope())
		m.Set(7, frog{})
		x := m.Get(7)
		return x, func() { m.Delete(7) } // end/map-delete second
	},
	"map-clear": func(p *play) (*frog, func()) {
		m := newMap(p.scope())
		m.Set(7, frog{})
		x := m.Get(7)
		return x, func() { m.Clear() } // end/map-clear second
	},
	"string-map-delete": func(p *play) (*frog, func()) {
		m := newStringMap(p.scope())
		must(m.Set("7", frog{}))
		x := m.Get("7")
		return x, func() { m.Delete("7") } // end/string-map-delete second
	},
	"linear-rewind": func(p *play) (*frog, func()) {
		l := newLinear(p, 0)
		mark := l.Mark()
		x := (*frog)(l.Alloc(8, 4))
		return x, func() { must(l.Rewind(mark)) } // end/linear-rewind second
	},
	"linear-far": func(p *play) (*frog, func()) {
		l := newLinear(p, 0).Far()
		mark := l.Mark()
		x := (*frog)(l.Alloc(8, 4))
		return x, func() { must(l.Rewind(mark)) } // end/linear-far second
	},
	"stack-free": func(p *play) (*frog, func()) {
		s := newStack(p, 0)
		x := (*frog)(s.Alloc(8, 4))
		return x, func() { must(s.Free(unsafe.Pointer(x))) } // end/stack-free second
	},
	"buffers-turn": func(p *play) (*frog, func()) {
		f := newBuffers(p, 0)
		x := (*frog)(f.Alloc(8, 4))
		f.Next()
		return x, func() { f.Next() } // end/buffers-turn second
	},
	"ring-free": func(p *play) (*frog, func()) {
		r := newRing(p, 0)
		x := (*frog)(r.Alloc(8, 8))
		return x, func() { must(r.Free(unsafe.Pointer(x))) } // end/ring-free second
	},
	"heap-free": func(p *play) (*frog, func()) {
		h := newHeap(p, 0)
		x := onHeap.New(h)
		return x, func() { must(onHeap.Delete(h, x)) } // end/heap-free second
	},
	"heap-realloc": func(p *play) (*frog, func()) {
		h := newHeap(p, 0)
		x := onHeap.New(h)
		onHeap.New(h)
		return x, func() { _, err := h.Realloc(unsafe.Pointer(x), 500); must(err) } // end/heap-realloc second
	},
	"heap-reset": func(p *play) (*frog, func()) {
		h := newHeap(p, 0)
		x := onHeap.New(h)
		return x, func() { h.Reset() } // end/heap-reset second
	},
	"buddy-free": func(p *play) (*frog, func()) {
		b := newBuddy(p, 0)
		x := onHeap.New(b)
		return x, func() { must(onHeap.Delete(b, x)) } // end/buddy-free second
	},
	"buddy-realloc": func(p *play) (*frog, func()) {
		b := newBuddy(p, 0)
		x := onHeap.New(b)
		onHeap.New(b)
		return x, func() { _, err := b.Realloc(unsafe.Pointer(x), 500); must(err) } // end/buddy-realloc second
	},
	"buddy-shrink": func(p *play) (*frog, func()) {
		b := newBuddy(p, 0)
		at := b.Alloc(500, 8)
		return (*frog)(unsafe.Add(at, 300)), func() { _, err := b.Realloc(at, 64); must(err) } // end/buddy-shrink second
	},
	"buddy-reset": func(p *play) (*frog, func()) {
		b := newBuddy(p, 0)
		x := onHeap.New(b)
		return x, func() { b.Reset() } // end/buddy-reset second
	},
	"shared-free": func(p *play) (*frog, func()) {
		h := newShared(p, 0)
		x := onHeap.New(h)
		return x, func() { must(onHeap.Delete(h, x)) } // end/shared-free second
	},
	"shared-realloc": func(p *play) (*frog, func()) {
		h := newShared(p, 0)
		x := onHeap.New(h)
		onHeap.New(h)
		return x, func() { _, err := h.Realloc(unsafe.Pointer(x), 500); must(err) } // end/shared-realloc second
	},
	"proxy-free": func(p *play) (*frog, func()) {
		proxy := arena.NewProxy("y", newHeap(p, 0))
		x := onHeap.New(proxy)
		return x, func() { must(onHeap.Delete(proxy, x)) } // end/proxy-free second
	},
}

// lives are the programs with more than one step.
var lives = map[string]func(*play){
	"reused": func(p *play) {
		scratch := p.budget.Scratch(0, 0)
		s := scratch.Open("a")
		stale := frogs.New(s)
		p.pair(
			func() {
				must(s.Close())
				//upfront:keeps the play ends with it
				frogs.New(scratch.Open("b")).Age = 1 // life/reused first
			},
			func() { stale.Age = 2 }, // life/reused second
		)
	},
	"temp": func(p *play) {
		_, err := budget.Load(background, p.budget.Region("systems"), func(s scope.Scope) (*frog, error) {
			t := s.Open("inner")
			x := frogs.New(t.Temp(64))
			p.pair(
				func() { look(x) },         // life/temp first
				func() { must(t.Close()) }, // life/temp second
			)
			return nil, nil
		})
		must(err)
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

// loaded loads a frog into the region systems.
func loaded(p *play) budget.Loaded[frog] {
	l, err := budget.Load(background, p.budget.Region("systems"),
		func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
	must(err)
	return l
}

//go:noinline
func lookAt(bytes []byte) byte { return bytes[0] }
