package model_test

import (
	"errors"
	"unsafe"

	handles "github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// pool is the model of one: chunks that were put are taken again, the last first.
type pool struct {
	of        *life
	node      *node
	open      bool
	finalizes bool
	header    int
	at        uint64 // of chunk 0
	first     unsafe.Pointer
	size      int
	free      []int
	live      map[int]int64
	items     map[int]*item

	plain   scope.Pool[five]
	objects scope.ObjectPool[marked]
	handles scope.HandlePool[five]
	kind    int
	names   map[int]handle
	put     []handle // handles that name nothing any more
}

type handle = handles.Handle[five]

const (
	poolPlain = iota
	poolObjects
	poolHandles
	poolKinds
)

func (p *pool) stride() uint64 { return [...]uint64{24, 8, 24}[p.kind] }

// beside is what a chunk has beside it: a number and a state, and with handles a generation.
func (p *pool) beside() uint64 { return [...]uint64{5, 5, 9}[p.kind] }

// openPool makes a pool. One that is refused leaves nothing, and says what would do.
func (w *world) openPool(s *life) {
	a := s.arena
	p := &pool{of: s, kind: w.random.IntN(poolKinds), size: w.random.IntN(20), open: true, header: -1, live: map[int]int64{},
		items: map[int]*item{}, names: map[int]handle{}}
	p.finalizes = p.kind == poolObjects
	if w.chance(10) {
		p.size = w.random.IntN(20_000)
	}
	w.say("%s: pool of kind %d for %d in %s", a.name, p.kind, p.size, s.name)
	at, ok := s.nodePlace(8, 8)
	_, limit := s.end()
	p.at = at + 8 + (uint64(p.size)*p.beside()+7)&^7
	end := p.at + uint64(p.size)*p.stride()
	ok = ok && end <= limit
	for i, taken := range a.pools {
		if !taken {
			p.header = i
			break
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
	if !s.may() || p.header < 0 || !ok {
		err, _ := v.(error)
		w.check(err != nil && errors.Is(err, scope.ErrFull) == s.may(), "a pool that is refused: %v", v)
		s.full = s.full || s.may() && !ok && !w.tableFull(err)
		return
	}
	if v != nil {
		w.fail("a pool of %d, which fits: %v", p.size, v)
		return
	}
	w.did["pool"]++
	s.moveTo(end)
	a.pools[p.header] = true
	for i := range p.size {
		p.free = append(p.free, i)
	}
	p.node = &node{pool: p}
	s.nodes = append(s.nodes, p.node)
	w.pools = append(w.pools, p)
	w.hash(p.at)
}

func (w *world) tableFull(err error) bool {
	var full *scope.FullError
	return errors.As(err, &full) && full.What != "bytes" && full.What != "temporaries"
}

// there says whether the pool's bytes weren't given back by a constructor that failed.
func (p *pool) there() bool { return p.open && p.of.open }

// usePool takes or puts a chunk of a pool, rightly or wrongly.
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
	switch p.kind {
	case poolPlain:
		x = unsafe.Pointer(p.plain.Get())
	case poolObjects:
		x = unsafe.Pointer(p.objects.Get())
	default:
		var f *five
		f, h = p.handles.Get()
		x = unsafe.Pointer(f)
	}
	w.check((x != nil) == (p.there() && len(p.free) > 0), "Get of a pool with %d free, open: %v", len(p.free), p.there())
	if x == nil || !w.good() {
		return
	}
	i := p.free[0]
	p.first = unsafe.Add(x, -i*int(p.stride()))
	p.free = p.free[1:]
	at := p.at + uint64(i)*p.stride()
	size := map[int]int{poolPlain: 20, poolObjects: 8, poolHandles: 20}[p.kind]
	real := unsafe.Slice((*byte)(x), size)
	w.zero("Get", real)
	w.check(w.place(x) == p.of.arena.start+at, "Get gives a chunk at %d, not %d", w.place(x)-p.of.arena.start, at)
	w.hash(at)
	p.live[i] = 0
	p.names[i] = h
	it := &item{at: at, real: real}
	p.items[i] = it
	if p.finalizes {
		id := w.newFinalizer(p.of, p)
		p.live[i] = id
		(*marked)(x).ID = id
		it.copy = append(it.copy, real...)
		return
	}
	w.write(it)
	if p.kind == poolHandles {
		w.check(p.handles.At(h) == (*five)(x), "a handle names another")
	}
}

// putBack puts a live chunk, one that is free, one that is none, or a chunk of a pool that is closed.
func (w *world) putBack(p *pool) {
	var i = -1
	for k := range p.size {
		if _, live := p.live[k]; live && (i < 0 || w.chance(2)) {
			i = k
		}
	}
	if i < 0 || !p.there() || w.chance(4) {
		w.putWrong(p)
		return
	}
	w.say("%s: Put of chunk %d", p.of.arena.name, i)
	x := unsafe.Pointer(unsafe.SliceData(p.items[i].real))
	var t told
	if p.finalizes {
		if f := w.finalizers[p.live[i]]; f.do == doAllocate || f.do == doMisuse {
			f.do = doFail // its scope doesn't close
		} else if f.do == doGet {
			f.do = doNothing
		}
	}
	put := func() (err error) {
		switch p.kind {
		case poolPlain:
			p.plain.Put((*five)(x))
		case poolObjects:
			return p.objects.Put((*marked)(x))
		default:
			p.handles.Put(p.names[i])
			w.check(p.handles.At(p.names[i]) == nil, "a handle names what was put")
			p.put = append(p.put, p.names[i])
		}
		return nil
	}
	id := p.live[i]
	panics := p.finalizes && w.finalizers[id].do == doPanic
	w.layer(func() (err error) {
		if panics {
			w.check(w.recovered(func() { err = put() }) != nil, "Put of what panics")
			return nil
		}
		return put()
	}, func(e ended) bool {
		delete(p.live, i)
		delete(p.items, i)
		p.free = append([]int{i}, p.free...)
		if p.finalizes {
			t = w.finalized(p.of, id)
		}
		w.check(t.exits || (e.err != nil) == (len(t.ids) > 0 && !panics), "Put: %v", e.err)
		return t.exits
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
	if p.first != nil && len(p.free) > 0 && p.there() && p.kind == poolPlain && w.chance(2) {
		free := p.free[w.random.IntN(len(p.free))]
		wrong = func() { p.plain.Put((*five)(unsafe.Add(p.first, free*int(p.stride())))) }
	}
	v := w.recovered(wrong)
	err, _ := v.(error)
	w.check(err != nil, "Put of what isn't live: %v", v)
	w.check(errors.Is(err, scope.ErrClosed) == !p.there(), "Put, open %v: %v", p.there(), err)
}
