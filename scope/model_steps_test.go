package scope_test

import (
	"errors"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/conformance/mouth"
)

// thing is an object whose finalizer is the machine's.
type thing struct{ ID, Check int64 }

func newThing(id int) thing { return thing{int64(id), ^int64(id)} }

var (
	modelFinalize func(id int) error // of the machine that runs
	modelBroken   func(x thing)

	things = scope.Object(func(x *thing) error {
		if *x != newThing(int(x.ID)) {
			modelBroken(*x)
		}
		return modelFinalize(int(x.ID))
	})
	books = scope.Plain[modelBook]()
)

// modelBook is where C finalizers say that they ran.
type modelBook struct {
	Log   [256]int32
	Count int32
}

// errStopped is how a program ends that met a full.
var errStopped = errors.New("the program stops")

type modelCloser int

func (c modelCloser) Close() error { return modelFinalize(int(c)) }

// body runs the steps. Its error is the full that stopped the program, or what the program says.
func (m *modelMachine) body(st *modelStep) error {
	for i := range st.body {
		err := m.step(&st.body[i])
		if m.stopped {
			if isFull(err) == nil && !m.lost {
				return nil
			}
			return errors.Join(err, errStopped)
		}
	}
	switch st.end {
	case endError:
		return modelError(st.id)
	case endPanic:
		panic(modelPanic(st.id))
	case endGoexit:
		m.exit()
	}
	return nil
}

func (m *modelMachine) step(st *modelStep) (err error) {
	switch st.kind {
	case stepDo:
		return m.do(st, func(fn func(scope.Scope) error) error { return m.top().scope.Do("done", fn) })
	case stepOpen, stepLeaveOpen:
		return m.open(st)
	case stepAccount:
		return m.account(st)
	case stepMake:
		return m.construct(st)
	case stepCancel:
		m.cancel(st.n)
	case stepCloseNow:
		m.carefully(func() { m.closeNow(st.n) })
	case stepMisuse:
		m.misuse(st)
	default:
		m.register(st)
	}
	return nil
}

// carefully runs fn, which may panic as a program does.
func (m *modelMachine) carefully(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(modelPanic); !ok {
				panic(v)
			}
		}
	}()
	fn()
}

// place is the scope that a step works on, and the list of the model.
func (m *modelMachine) place(st *modelStep) (scope.Scope, *[]*modelEntry) {
	l := m.top()
	if !st.temp {
		return l.scope, &l.chain
	}
	s := l.scope.Temp()
	for _, owner := range m.levels {
		if owner.owner {
			return s, &owner.temps
		}
	}
	l.owner = true
	return s, &l.temps
}

// register makes something in a scope.
func (m *modelMachine) register(st *modelStep) {
	s, list := m.place(st)
	asks := m.asks
	switch st.kind {
	case stepPlain:
		m.makePlain(st, s)
	case stepObject, stepObjects:
		m.makeObjects(st, s, list)
	case stepPool, stepObjectPool:
		m.makePool(st, s, list)
	case stepOwn, stepDefer, stepHold:
		m.hold(st, s, list)
	case stepC:
		m.deferInC(st, s, list)
	}
	if stats, _, _ := m.arena.stats(); !m.stopped && !m.p.temps && m.asks > asks {
		m.check(stats.Used == m.needs[m.asks-1], "the cursor is at %d", stats.Used)
	}
}

func (m *modelMachine) makePlain(st *modelStep, s scope.Scope) {
	n := st.n + 1
	kinds := []struct {
		align, size uint64
		try         func() unsafe.Pointer
		make        func() unsafe.Pointer
	}{
		{4, 8, func() unsafe.Pointer { return unsafe.Pointer(points.TryNew(s)) },
			func() unsafe.Pointer { return unsafe.Pointer(points.New(s)) }},
		{4, 8 * uint64(n), func() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(points.TrySlice(s, n))) },
			func() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(points.Slice(s, n))) }},
		{32, uint64(n), func() unsafe.Pointer { return s.TryAlloc(uint64(n), 32) },
			func() unsafe.Pointer { return s.Alloc(uint64(n), 32) }},
	}
	k := kinds[st.id%len(kinds)]
	key := m.ask(st, s, k.align, k.size)
	var p unsafe.Pointer
	if st.try {
		if p = k.try(); !m.tried(st, s, key, p) {
			return
		}
	} else {
		m.full(key, 0, func() { p = k.make() })
	}
	m.note(p)
	bytes := unsafe.Slice((*byte)(p), k.size)
	for i := range bytes {
		m.check(bytes[i] == 0 || k.align == 32, "byte %d of what is new isn't zero", i)
		bytes[i] = 0xA5 // where a live object lies, its finalizer will tell
	}
}

func (m *modelMachine) makeObjects(st *modelStep, s scope.Scope, list *[]*modelEntry) {
	n := st.n
	if st.kind == stepObject {
		n = 1
	}
	key := m.ask(st, s, 8, 32*uint64(n))
	var made []thing
	switch {
	case st.kind == stepObjects:
		m.full(key, 0, func() { made = things.Slice(s, n) })
	case st.try:
		x := things.TryNew(s)
		if !m.tried(st, s, key, unsafe.Pointer(x)) {
			return
		}
		made = unsafe.Slice(x, 1)
	default:
		m.full(key, 0, func() { made = unsafe.Slice(things.New(s), 1) })
	}
	m.note(unsafe.Pointer(&made[0]))
	for i := range made {
		m.check(made[i] == thing{}, "a new object is zero")
		made[i] = newThing(st.id + i)
		*list = append(*list, &modelEntry{id: st.id + i, scope: s})
	}
}

func (m *modelMachine) makePool(st *modelStep, s scope.Scope, list *[]*modelEntry) {
	n, size := uint64(st.n), uint64(8)
	if st.kind == stepObjectPool {
		size = 16
	}
	var key string
	if m.pools == m.plan.Limits.Pools {
		key = "limits.pools"
	} else {
		key = m.ask(st, s, 8, 16, (n+7)&^7+n*size)
	}
	e := &modelEntry{scope: s, kind: entryPool, live: map[int]int{}}
	register := func() {
		*list = append(*list, e)
		m.pools++
		m.most.Pools = max(m.most.Pools, m.pools)
	}
	if st.kind == stepPool {
		var pool scope.Pool[point]
		m.full(key, 0, func() { pool = points.Pool(s, st.n) })
		register()
		m.check(pool.Cap() == st.n && (pool.Get() != nil) == (st.n > 0), "a pool of %d", st.n)
		return
	}
	var pool scope.ObjectPool[thing]
	m.full(key, 0, func() { pool = things.Pool(s, st.n) })
	register()
	for i := range st.n {
		x := pool.Get()
		m.note(unsafe.Pointer(x))
		*x = newThing(st.id + i)
		e.live[pool.Index(x)] = st.id + i
	}
	m.check(pool.Get() == nil, "a pool of %d has one more", st.n)
	for i := range st.n {
		if id := st.id + i; m.p.fins[id].pick%2 == 0 {
			m.carefully(func() { m.put(pool, i, e) })
		}
	}
}

// put gives back the chunk of an object, which finalizes it.
func (m *modelMachine) put(pool scope.ObjectPool[thing], chunk int, e *modelEntry) {
	x := pool.At(chunk)
	id := e.live[chunk]
	delete(e.live, chunk)
	m.finalizers++
	m.call(id, func() {
		defer func() { m.check(m.ran[id] && pool.At(chunk) == nil, "Put of %d", id) }()
		err := pool.Put(x)
		m.check(err == nil && m.p.fins[id].how != finFails || err == modelError(id), "Put of %d: %v", id, err)
	})
}

func (m *modelMachine) hold(st *modelStep, s scope.Scope, list *[]*modelEntry) {
	var key string
	if m.live == m.plan.Limits.Held {
		key = "limits.held"
	} else {
		key = m.ask(st, s, 8, 16)
	}
	e := &modelEntry{id: st.id, scope: s, kind: entryHeld}
	kept := false
	defer func() {
		if !kept && st.kind != stepHold {
			m.finalizers++
			m.check(m.ran[st.id], "what isn't kept is closed: %d", st.id)
		}
	}()
	m.call(st.id, func() {
		switch st.kind {
		case stepOwn:
			m.full(key, st.id, func() { e.held = s.Own(modelCloser(st.id)) })
		case stepDefer:
			m.full(key, st.id, func() { e.held = s.Defer(func() { _ = modelFinalize(st.id) }) })
		case stepHold:
			e.kind = entryValue
			m.full(key, 0, func() { e.held = s.Hold(st) })
		}
	})
	kept = true
	m.check(!m.ran[st.id], "%d is kept, and ran", st.id)
	m.check(e.held.Value() != nil || st.kind == stepDefer, "%d is there", st.id)
	*list = append(*list, e)
	m.live++
	m.most.Held = max(m.most.Held, m.live)
}

// deferInC adds a finalizer as a C library does. C can't unwind: when there is no room, the scope remembers, as after a
// Try...; the library has its teller's bytes or not, and in the first case the finalizer ran at once.
func (m *modelMachine) deferInC(st *modelStep, s scope.Scope, list *[]*modelEntry) {
	key := m.ask(st, s, 8, 24, 32)
	slot, tag := s.C()
	before := m.book.Count
	if mouth.Defer(slot, tag, &m.book.Log[0], &m.book.Count, int32(st.id)) == arena_c.OK {
		m.check(key == "", "it isn't full: %s", key)
		*list = append(*list, &modelEntry{id: st.id, scope: s, kind: entryC})
		return
	}
	m.read = m.book.Count
	m.ran[st.id] = m.read != before
	m.tried(st, s, key, nil)
}
