package main

import (
	"io"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var (
	living = scope.Object(func(*frog) error { return nil })
	onHeap = arena.HeapOf[frog](nil)
)

// uses are programs in which two goroutines use one arena, although an arena belongs to one
// goroutine. They touch no object: the allocations race.
var uses = map[string]func(*play){
	"new":         func(p *play) { s := p.scope(); p.both(func() { frogs.New(s) }) },                         // use/new both
	"try-new":     func(p *play) { s := p.scope(); p.both(func() { frogs.TryNew(s) }) },                      // use/try-new both
	"alloc":       func(p *play) { s := p.scope(); p.both(func() { s.AllocUnzeroed(40, 8) }) },               // use/alloc both
	"bytes":       func(p *play) { s := p.scope(); p.both(func() { s.Bytes(40) }) },                          // use/bytes both
	"block":       func(p *play) { s := p.scope(); p.both(func() { s.BytesUnzeroed(64, 64) }) },              // use/block both
	"slice":       func(p *play) { s := p.scope(); p.both(func() { frogs.Slice(s, 3) }) },                    // use/slice both
	"append":      func(p *play) { s := p.scope(); p.both(func() { frogs.Append(s, nil, frog{}) }) },         // use/append both
	"sprintf":     func(p *play) { s := p.scope(); p.both(func() { scope.Sprintf(s, "%d", 7) }) },            // use/sprintf both
	"object":      func(p *play) { s := p.scope(); p.both(func() { living.New(s) }) },                        // use/object both
	"make":        func(p *play) { s := p.scope(); p.both(func() { frogs.Make(s, good) }) },                  // use/make both
	"make-fails":  func(p *play) { s := p.scope(); p.both(func() { frogs.Make(s, bad) }) },                   // use/make-fails both
	"own":         func(p *play) { s := p.scope(); p.both(func() { s.Own(io.NopCloser(nil)) }) },             // use/own both
	"make-pool":   func(p *play) { s := p.scope(); p.both(func() { frogs.Pool(s, 2) }) },                     // use/make-pool both
	"temp":        func(p *play) { s := p.scope(); p.both(func() { frogs.New(s.Temp(64)) }) },                // use/temp both
	"label":       func(p *play) { s := p.scope(); p.both(func() { scope.Label(s, "fish", nothing) }) },      // use/label both
	"open":        func(p *play) { s := p.scope(); p.both(func() { s.Open("b").Close() }) },                  // use/open both
	"do":          func(p *play) { s := p.scope(); p.both(func() { s.Do("b", noScope) }) },                   // use/do both
	"frame":       func(p *play) { p.both(func() { frogs.New(p.budget.Frame()) }) },                          // use/frame both
	"turn":        func(p *play) { p.both(func() { p.budget.NextFrame() }) },                                 // use/turn both
	"scratch":     func(p *play) { a := p.budget.Scratch(1, 0); p.both(func() { a.Open("b").Close() }) },     // use/scratch both
	"pool":        func(p *play) { pool := frogs.Pool(p.scope(), 4); p.both(func() { pool.Get() }) },         // use/pool both
	"object-pool": func(p *play) { pool := living.Pool(p.scope(), 4); p.both(func() { pool.Get() }) },        // use/object-pool both
	"handles":     func(p *play) { pool := frogs.HandlePool(p.scope(), 4); p.both(func() { pool.Get() }) },   // use/handles both
	"builder":     func(p *play) { x := frogs.Build(p.scope()); p.both(func() { x.Push(frog{}) }) },          // use/builder both
	"list":        func(p *play) { l := newList(p.scope()); p.both(func() { l.Push(frog{}) }) },              // use/list both
	"deque":       func(p *play) { d := newDeque(p.scope()); p.both(func() { d.PushBack(frog{}) }) },         // use/deque both
	"string-map":  func(p *play) { m := newStringMap(p.scope()); p.both(func() { _ = m.Set("7", frog{}) }) }, // use/string-map both
	"map":         func(p *play) { m := newMap(p.scope()); p.both(func() { m.Set(7, frog{}) }) },             // use/map both
	"text":        func(p *play) { t := p.scope().Text(); t.AddInt(1); p.both(func() { t.AddInt(2) }) },      // use/text both
	"load":        loads,

	"linear":        func(p *play) { l := newLinear(p, 0); p.both(func() { l.Alloc(8, 8) }) },              // use/linear both
	"linear-rewind": func(p *play) { l := newLinear(p, 0); m := l.Mark(); p.both(func() { l.Rewind(m) }) }, // use/linear-rewind both
	"linear-far":    func(p *play) { l := newLinear(p, 0); p.both(func() { l.Far().Alloc(8, 8) }) },        // use/linear-far both
	"stack":         func(p *play) { s := newStack(p, 0); p.both(func() { s.Alloc(8, 8) }) },               // use/stack both
	"stack-free":    func(p *play) { s := newStack(p, 0); p.both(func() { s.Free(s.Alloc(8, 8)) }) },       // use/stack-free both
	"buffers":       func(p *play) { f := newBuffers(p, 0); p.both(func() { f.Alloc(8, 8) }) },             // use/buffers both
	"buffers-turn":  func(p *play) { f := newBuffers(p, 0); p.both(func() { f.Next() }) },                  // use/buffers-turn both
	"ring":          func(p *play) { r := newRing(p, 0); p.both(func() { r.Alloc(8, 8) }) },                // use/ring both
	"heap":          func(p *play) { h := newHeap(p, 0); p.both(func() { h.Alloc(8, 8) }) },                // use/heap both
	"heap-free":     frees,
	"heap-object":   func(p *play) { h := newHeap(p, 0); p.both(func() { onHeap.New(h) }) },                      // use/heap-object both
	"buddy":         func(p *play) { b := newBuddy(p, 0); p.both(func() { b.Alloc(8, 8) }) },                     // use/buddy both
	"proxy":         func(p *play) { x := arena.NewProxy("x", newHeap(p, 0)); p.both(func() { x.Alloc(8, 8) }) }, // use/proxy both
	"blocks":        func(p *play) { pool := newChunks(p, 0); p.both(func() { pool.Get() }) },                    // use/blocks both
}

// frees frees two blocks of one heap.
func frees(p *play) {
	h := newHeap(p, 0)
	x, y := onHeap.New(h), onHeap.New(h)
	p.pair(
		func() { onHeap.Delete(h, x) }, // use/heap-free first
		func() { onHeap.Delete(h, y) }, // use/heap-free second
	)
}

// loads uses a loader's scope from a goroutine that the loader started.
func loads(p *play) {
	_, err := budget.Load(background, p.budget.Region("systems"), func(s scope.Scope) (*frog, error) {
		p.pair(
			func() { frogs.New(s) },      // use/load first
			func() { frogs.Slice(s, 2) }, // use/load second
		)
		return frogs.New(s), nil
	})
	must(err)
}
