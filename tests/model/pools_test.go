package model_test

import (
	"errors"
	"maps"
	"slices"
	"unsafe"

	handles "github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// pool is a pool of some kind, with its chunks in use by place.
type pool struct {
	of   *life
	open bool
	size int
	live map[uint64]*chunk
	seen []unsafe.Pointer // chunks that were used

	plain   scope.Pool[five]
	objects scope.ObjectPool[marked]
	handles scope.HandlePool[five]
	kind    int
	put     []handle // stale handles
}

// chunk is a chunk in use.
type chunk struct {
	*item
	id     int64 // of its finalizer
	handle handle
}

type handle = handles.Handle[five]

const (
	poolPlain = iota
	poolObjects
	poolHandles
	poolKinds
)

// ids returns the finalizers of the chunks in use, in their order.
func (p *pool) ids() (ids []int64) {
	for _, at := range slices.Sorted(maps.Keys(p.live)) {
		if id := p.live[at].id; id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// openPool makes a pool, or expects its refusal.
func (w *world) openPool(s *life) {
	a := s.arena
	p := &pool{of: s, kind: w.random.IntN(poolKinds), size: w.random.IntN(20), open: true, live: map[uint64]*chunk{}}
	if w.chance(10) {
		p.size = w.random.IntN(20_000)
	}
	w.say("%s: pool of kind %d for %d in %s", a.name, p.kind, p.size, s.name)
	// A chunk has a number and a state, and with handles a generation. The first is at a multiple
	// of 8.
	fits := fit(s, 8+uint64(p.size)*[...]uint64{24 + 5, 8 + 5, 24 + 9}[p.kind], 16, true)
	taken := 0
	for _, other := range w.pools {
		if other.of.arena == a && other.there() {
			taken++
		}
	}
	v := w.recovered(func() {
		switch p.kind {
		case poolPlain:
			p.plain = fives.Pool(s.real, p.size)
		case poolObjects:
			p.objects = marks.Pool(s.real, p.size)
		default:
			p.handles = fives.HandlePool(s.real, p.size)
		}
	})
	if v != nil {
		var full *scope.FullError
		err, _ := v.(error)
		w.check(errors.As(err, &full) == s.may(), "a pool that is refused: %v", v)
		w.check(fits != yes || taken == maxPools, "a pool of %d, which fits: %v", p.size, v)
		s.full = s.full || s.may() && (full.What == "bytes" || full.What == "temporaries")
		return
	}
	w.check(s.may() && fits != no && taken < maxPools, "a pool of %d, where %d are and %d is free",
		p.size, taken, s.real.Free())
	w.did["pool"]++
	s.nodes = append(s.nodes, &node{pool: p})
	w.pools = append(w.pools, p)
}

// there reports whether the pool exists: a constructor that failed frees its pools.
func (p *pool) there() bool { return p.open && p.of.open }

// usePool gets or puts a chunk of a pool, rightly or wrongly.
func (w *world) usePool() {
	if len(w.pools) == 0 {
		return
	}
	p := w.pools[w.random.IntN(len(w.pools))]
	if w.chance(2) {
		w.get(p)
	} else {
		w.putBack(p)
	}
}

func (w *world) get(p *pool) {
	w.say("%s: Get of a pool", p.of.arena.name)
	var x unsafe.Pointer
	var h handle
	size := 20
	switch p.kind {
	case poolPlain:
		x = unsafe.Pointer(p.plain.Get())
	case poolObjects:
		x, size = unsafe.Pointer(p.objects.Get()), 8
	default:
		var f *five
		f, h = p.handles.Get()
		x = unsafe.Pointer(f)
	}
	w.check((x != nil) == (p.there() && len(p.live) < p.size), "Get of a pool with %d of %d live, open: %v",
		len(p.live), p.size, p.there())
	if x == nil || !w.good() {
		return
	}
	c := &chunk{item: &item{at: w.place(p.of.arena, x), real: unsafe.Slice((*byte)(x), size)}, handle: h}
	w.zero("Get", c.real)
	w.check(p.live[c.at] == nil, "Get gives a chunk that is live")
	w.hash(c.at)
	p.live[c.at], p.seen = c, append(p.seen, x)
	if p.kind == poolObjects {
		c.id = w.newFinalizer(p.of, p)
		(*marked)(x).ID = c.id
		c.copy = append(c.copy, c.real...)
		return
	}
	w.write(c.item)
	if p.kind == poolHandles {
		w.check(p.handles.At(h) == (*five)(x), "a handle names another")
	}
}

// putBack puts a chunk: a live one, a free one, a foreign pointer, or one of a closed pool.
func (w *world) putBack(p *pool) {
	if len(p.live) == 0 || !p.there() || w.chance(4) {
		w.putWrong(p)
		return
	}
	places := slices.Sorted(maps.Keys(p.live))
	c := p.live[places[w.random.IntN(len(places))]]
	w.say("%s: Put of the chunk at %d", p.of.arena.name, c.at)
	x := unsafe.Pointer(unsafe.SliceData(c.real))
	panics := false
	if f := w.finalizers[c.id]; f != nil {
		if f.do == doAllocate || f.do == doMisuse {
			f.do = doFail // its scope doesn't close
		} else if f.do == doGet {
			f.do = doNothing
		}
		w.now, panics = c.id, f.do == doPanic
	}
	put := func() (err error) {
		switch p.kind {
		case poolPlain:
			p.plain.Put((*five)(x))
		case poolObjects:
			return p.objects.Put((*marked)(x))
		default:
			p.handles.Put(c.handle)
			w.check(p.handles.At(c.handle) == nil, "a handle names what was put")
			p.put = append(p.put, c.handle)
		}
		return nil
	}
	then := len(w.ran)
	w.layer(func() (err error) {
		if panics {
			w.check(w.recovered(func() { err = put() }) != nil, "Put of what panics")
			return nil
		}
		return put()
	}, func(e ended) {
		w.now = 0
		delete(p.live, c.at)
		t := w.since(then)
		w.check(c.id == 0 || w.has(c.id), "Put doesn't finalize")
		w.check(e.exited || (e.err != nil) == (len(t.ids) > 0 && !panics), "Put: %v", e.err)
	})
}

func (w *world) putWrong(p *pool) {
	w.say("%s: Put of what isn't live", p.of.arena.name)
	w.did["wrong Put"]++
	wrong := func() {
		switch p.kind {
		case poolPlain:
			p.plain.Put(&five{})
		case poolObjects:
			_ = p.objects.Put(&marked{})
		default:
			if len(p.put) > 0 && w.chance(2) {
				p.handles.Put(p.put[w.random.IntN(len(p.put))])
			}
			p.handles.Put(handle(w.random.Uint64() &^ (1 << 32)))
		}
	}
	isLive := func(x unsafe.Pointer) bool { return p.live[w.place(p.of.arena, x)] != nil }
	if free := slices.DeleteFunc(slices.Clone(p.seen), isLive); len(free) > 0 && p.there() && p.kind == poolPlain &&
		w.chance(2) {
		wrong = func() { p.plain.Put((*five)(free[w.random.IntN(len(free))])) }
	}
	v := w.recovered(wrong)
	err, _ := v.(error)
	w.check(err != nil, "Put of what isn't live: %v", v)
	w.check(errors.Is(err, scope.ErrClosed) == !p.there(), "Put, open %v: %v", p.there(), err)
}
