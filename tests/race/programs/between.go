package main

import (
	"fmt"
	"io"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// between returns programs in which two goroutines write one object. Between the two writes each
// goroutine does private work in an arena, which must not hide the race.
func between(list map[string]func(p *play, worker int) func()) map[string]func(*play) {
	made := map[string]func(*play){}
	for name, work := range list {
		made[name] = func(p *play) {
			x := frogs.New(p.scope())
			one, two := work(p, 1), work(p, 2)
			p.pair(
				func() { x.Age = 1; one() }, // between/* first
				func() { two(); x.Age = 2 }, // between/* second
			)
		}
	}
	return made
}

// loud is private work that synchronizes, and so hides the race. Measuring a plan crosses into C,
// but isn't used during play; Published takes the lock of the runtime's metrics.
var loud = map[string]func(p *play, worker int) func(){
	"published": withOwn(func(b *budget.Budget) { b.Published() }),
	"need": func(p *play, worker int) func() {
		return func() {
			_, err := p.budget.Plan().Need()
			must(err)
		}
	},
}

// inScope opens a scope on the worker's scratch arena, works in it and closes it.
func inScope(work func(s scope.Scope)) func(p *play, worker int) func() {
	return func(p *play, worker int) func() {
		scratch := p.budget.Scratch(worker, 0)
		return func() {
			s := scratch.Open("work")
			work(s)
			must(s.Close())
		}
	}
}

var works = map[string]func(p *play, worker int) func(){
	"nothing":     func(*play, int) func() { return func() {} },
	"scope":       inScope(func(s scope.Scope) { frogs.New(s); s.AllocUnzeroed(8, 8); s.Bytes(8); frogs.Slice(s, 2) }),
	"nested":      inScope(func(s scope.Scope) { must(s.Open("b").Close()); must(s.Do("c", noScope)) }),
	"temp":        inScope(func(s scope.Scope) { frogs.New(s.Temp(64)) }),
	"pool":        inScope(func(s scope.Scope) { pool := frogs.Pool(s, 4); pool.Put(pool.Get()); pool.Peak() }),
	"object-pool": inScope(func(s scope.Scope) { pool := living.Pool(s, 4); must(pool.Put(pool.Get())); pool.Get() }),
	"handles": inScope(func(s scope.Scope) {
		pool := frogs.HandlePool(s, 4)
		_, h := pool.Get()
		pool.At(h)
		pool.Put(h)
	}),
	"objects":    inScope(func(s scope.Scope) { living.New(s); s.Own(io.NopCloser(nil)); s.Keep(s).Value() }),
	"make":       inScope(func(s scope.Scope) { _, err := frogs.Make(s, good); must(err) }),
	"make-fails": inScope(func(s scope.Scope) { _, err := frogs.Make(s, bad); fails(err) }),
	"label":      inScope(func(s scope.Scope) { must(scope.Label(s, "fish", nothing)) }),
	"ref":        inScope(func(s scope.Scope) { look(scope.RefTo(s, frogs.New(s)).Get()) }),
	"append":     inScope(func(s scope.Scope) { frogs.Append(s, frogs.Append(s, nil, frog{}), frog{}, frog{}) }),
	"builder":    inScope(func(s scope.Scope) { x := frogs.Build(s); x.Push(frog{}); x.Done() }),
	"list":       inScope(func(s scope.Scope) { l := newList(s); l.Push(frog{}); l.Pop(); l.Clear() }),
	"deque":      inScope(func(s scope.Scope) { d := newDeque(s); d.PushBack(frog{}); d.PopFront(); d.Clear() }),
	"map":        inScope(func(s scope.Scope) { m := newMap(s); m.Set(7, frog{}); m.Get(7); m.Delete(7); m.Clear() }),
	"string-map": inScope(func(s scope.Scope) {
		m := newStringMap(s)
		must(m.Set("7", frog{}))
		m.Get("7")
		m.Delete("7")
		m.Clear()
	}),
	"text": inScope(func(s scope.Scope) { t := s.Text(); _ = t.Add("a").AddInt(7).String(); t.Reset() }),
	"reader": func(p *play, worker int) func() {
		reader := p.budget.Region("systems").Reader(fmt.Sprint(worker))
		return func() { reader.Pin(); reader.Unpin() }
	},
	"turn":   withOwn(func(b *budget.Budget) { frogs.New(b.Frame()); must(b.NextFrame()); must(b.NextFrame()) }),
	"load":   withOwn(loadAndRewind),
	"linear": linearWork, "stack": stackWork, "buffers": buffersWork, "ring": ringWork, "heap": heapWork,
	"buddy": buddyWork,
	"blocks": func(p *play, worker int) func() {
		pool := newChunks(p, worker)
		return func() { must(pool.Put(pool.Get())); pool.Peak() }
	},
	"proxy": func(p *play, worker int) func() {
		x := arena.NewProxy("x", newHeap(p, worker))
		return func() { must(onHeap.Delete(x, onHeap.New(x))) }
	},
}

func fails(err error) {
	if err == nil {
		panic("it should fail")
	}
}

// withOwn gives each worker its own budget: two budgets share no state.
func withOwn(work func(b *budget.Budget)) func(p *play, worker int) func() {
	return func(*play, int) func() {
		b := open()
		return func() { work(b) }
	}
}

func loadAndRewind(b *budget.Budget) {
	_, err := budget.Load(background, b.Region("systems"), func(s scope.Scope) (*frog, error) {
		frogs.New(s.Temp(64))
		frogs.Pool(s, 3).Get()
		return frogs.New(s), nil
	})
	must(err)
	must(b.Region("systems").Rewind(background))
}

func linearWork(p *play, worker int) func() {
	l := newLinear(p, worker)
	return func() {
		low, high := l.Mark(), l.Far().Mark()
		l.Alloc(8, 8)
		l.Far().Alloc(8, 8)
		must(l.Rewind(low))
		must(l.Far().Rewind(high))
		_, err := l.Resize(l.Alloc(8, 8), 8, 16)
		must(err)
		l.Reset()
	}
}

func stackWork(p *play, worker int) func() {
	s := newStack(p, worker)
	return func() {
		mark := s.Mark()
		must(s.Free(s.Alloc(8, 8)))
		must(s.Far().Free(s.Far().Alloc(8, 8)))
		must(s.Rewind(mark))
		s.Reset()
	}
}

func buffersWork(p *play, worker int) func() {
	f := newBuffers(p, worker)
	return func() {
		f.Alloc(8, 8)
		f.Next()
		f.Next()
	}
}

func ringWork(p *play, worker int) func() {
	r := newRing(p, worker)
	return func() {
		for range 5 { // more than the block holds, so that it wraps
			q := r.Alloc(1500, 8)
			if q == nil {
				panic("the ring is full")
			}
			must(r.Free(q))
			r.Room()
		}
		one, two := r.Alloc(1500, 8), r.Alloc(1500, 8)
		must(r.Free(one))
		r.Alloc(1400, 8)
		must(r.Free(two))
		r.Reset()
	}
}

func buddyWork(p *play, worker int) func() {
	b := newBuddy(p, worker)
	return func() {
		q := b.Alloc(8, 8)
		b.Alloc(8, 8)
		q, err := b.Realloc(q, 99)
		must(err)
		_, err = b.SizeOf(q)
		must(err)
		must(b.Free(q))
		b.LargestFree()
		b.Phase()
		b.Reserve(0)
		b.Reset()
	}
}

func heapWork(p *play, worker int) func() {
	h := newHeap(p, worker)
	return func() {
		q := h.Alloc(8, 8)
		h.Alloc(8, 8)
		q, err := h.Realloc(q, 99)
		must(err)
		_, err = h.SizeOf(q)
		must(err)
		must(h.Free(q))
		h.LargestFree()
		h.Reset()
	}
}
