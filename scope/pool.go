package scope

import (
	"iter"
	"reflect"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Pool has n chunks, each for a value of T. Get allocates a value and Put frees one, in any order,
// while the scope is open. After the scope closes, Get returns nil and Put panics. A Pool is a
// small value; one goroutine at a time uses it.
type Pool[T any] struct{ pool[T] }

// pool is the common part of all pools. Helpers are functions, because the compiler would write a
// method twice, for pointer and value, for each T and each type that embeds pool.
type pool[T any] struct {
	header  *arena_c.Pool
	gen     uint64
	first   unsafe.Pointer
	numbers *arena_c.Numbers
}

// Pool makes a pool of n chunks in s and returns it. Each chunk takes the size of a T, rounded up
// to a multiple of 8, and 5 bytes more. The pool also takes 16 bytes, alignment, and one of the
// planned pool headers (limits.pools, by default 64 for each arena). A full scope unwinds. Pool
// panics if n is negative or T has no bytes. Cost: O(n), one call into C.
func (m Maker[T]) Pool(s Scope, n int) Pool[T] {
	m.declared()
	return Pool[T]{openPool[T](s, n, 0, false)}
}

func openPool[T any](s Scope, n int, class uint64, handles bool) pool[T] {
	var zero T
	size, align := uint64(unsafe.Sizeof(zero)), arena_c.AlignOf[T]()
	if n < 0 {
		panic(stack.Misusef("a pool of %d chunks: give 0 or more", n))
	}
	if size == 0 && !handles {
		panic(stack.Misusef("a pool of %T, which has no bytes, so an address can't identify a value; use a HandlePool",
			zero))
	}
	header := stack.OpenPool(s.its(), s.gen, size, align, uint64(n), class, handles, reflect.TypeFor[T]())
	first, numbers := header.Bases()
	return pool[T]{header, header.Gen, first, numbers}
}

// Get returns a zeroed T, or nil if no chunk is free or the pool is closed. Cost: a few ns and the
// zeroing; no Go allocation, no call into C.
func (p pool[T]) Get() *T { return arena_c.Get[T](p.header, p.gen, p.first, p.numbers) }

// GetUnzeroed is Get, but returns a T of any content, often the content of an earlier value. The
// caller must write all bytes of the T.
func (p Pool[T]) GetUnzeroed() *T { return arena_c.GetUnzeroed[T](p.header, p.gen, p.first, p.numbers) }

// Put frees x. It panics if x's chunk is free, if x isn't the address of a chunk of this pool, or
// if the pool is closed. The pool doesn't change then. Put doesn't detect that x was put before if
// Get has returned the chunk again; a [HandlePool] does.
func (p pool[T]) Put(x *T) { // written out: the inliner refuses a call of arena_c.Put
	h := p.header
	i := (uintptr(unsafe.Pointer(x)) - uintptr(p.first)) / unsafe.Sizeof(arena_c.Chunk[T]{})
	if arena_c.Crossing || arena_c.Race {
		if arena_c.Put(p.header, p.gen, p.first, p.numbers, x) {
			return
		}
		// the text is made at once, while a checked build's records still describe x
		panic(badPut[T]{p, *h, x}.Unwrap())
	} else if h.Gen == p.gen {
		if i < uintptr(h.Count) {
			if unsafe.Add(p.first, i*unsafe.Sizeof(arena_c.Chunk[T]{})) == unsafe.Pointer(x) {
				if state := (*uint8)(unsafe.Add(p.first, ^i)); *state == arena_c.ChunkLive {
					*state = arena_c.ChunkFree
					p.numbers[h.Free] = uint32(i)
					h.Free++
					return
				}
			}
		}
	}
	panic(badPut[T]{p, *h, x})
}

// badPut is the panic value of Put. It holds all that its text needs, because the pool may be
// closed by the time the text is read.
type badPut[T any] struct {
	pool pool[T]
	was  arena_c.Pool
	x    *T
}

// Unwrap lets a handler of the panic use errors.Is and errors.As.
func (b badPut[T]) Unwrap() error {
	offset := arena_c.Place(unsafe.Pointer(b.x), unsafe.Pointer(b.pool.header)) - b.was.Chunks
	switch {
	case b.was.Gen != b.pool.gen:
		return misusedPut(b.x, b.pool.gen, arena_c.Stale)
	case offset/b.was.Stride >= uint64(b.was.Count):
		return misusedPut(b.x, b.pool.gen, arena_c.Foreign)
	case offset%b.was.Stride != 0:
		return misusedPut(b.x, b.pool.gen, arena_c.Misaligned)
	}
	return misusedPut(b.x, b.pool.gen, arena_c.Double)
}

func (b badPut[T]) Error() string { return b.Unwrap().Error() }

func misusedPut[T any](x *T, gen uint64, code arena_c.Code) error {
	if x == nil {
		return stack.Misusef("Put of nil, pool of %T", *new(T))
	}
	return stack.PoolMisuse("Put of", *new(T), gen, code)
}

// Index returns the number of the chunk that holds x. Use the number in tables with a row for each
// chunk, and in references that are sent to other machines. Index panics where Put does.
func (p pool[T]) Index(x *T) int {
	index, code := itsHeader(p.header).Find(p.gen, unsafe.Pointer(x))
	if code != arena_c.OK {
		panic(stack.PoolMisuse("Index of", *new(T), p.gen, code))
	}
	return int(index)
}

var zeroPool = stack.Misusef("a zero pool: make one in a scope with Pool, HandlePool or SharedPool of a Maker")

// itsHeader returns the header of a pool, or panics if the pool is zero. Functions that must be
// inlined don't call it.
func itsHeader(header *arena_c.Pool) *arena_c.Pool {
	if header == nil {
		panic(zeroPool)
	}
	return header
}

func openHeader(header *arena_c.Pool, gen uint64) *arena_c.Pool {
	if itsHeader(header).Gen == gen {
		return header
	}
	return nil
}

// At returns the live value in chunk i. It returns nil if i is out of range, if the chunk is free,
// or if the pool is closed.
func (p pool[T]) At(i int) *T {
	h := openHeader(p.header, p.gen)
	if h == nil || uint64(i) >= uint64(h.Count) || *h.State(uint64(i)) != arena_c.ChunkLive {
		return nil
	}
	return (*T)(h.Chunk(uint64(i)))
}

// Cap returns the number of chunks, or 0 if the pool is closed.
func (p pool[T]) Cap() int {
	if h := openHeader(p.header, p.gen); h != nil {
		return int(h.Count)
	}
	return 0
}

// Live returns the number of chunks that hold a value, or 0 if the pool is closed. While the scope
// of an [ObjectPool] closes, free chunks count as well, because Get no longer returns them.
func (p pool[T]) Live() int {
	if h := openHeader(p.header, p.gen); h != nil {
		return int(h.Live())
	}
	return 0
}

// Peak returns the most chunks that were live or retired ([HandlePool]) at once, 0 if the pool is
// closed. Cost: O(log n).
func (p pool[T]) Peak() int {
	if h := openHeader(p.header, p.gen); h != nil {
		return int(h.Peak())
	}
	return 0
}

// All ranges over the live values and the numbers of their chunks. The loop may put any value or
// close the scope. All then skips the freed values. A value that Get returns during the loop may or
// may not be visited. Cost: for live chunks, as a loop over a slice; for eight free chunks, 1 or 2
// ns; nothing for chunks that were never taken; no Go allocation.
func (p pool[T]) All() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		h, i := itsHeader(p.header), uint64(0)
		for n := uint64(h.Count); ; { // for each run of live chunks
			if i = h.NextLive(p.gen, i); i >= n {
				return
			}
			state, at := unsafe.Pointer(h.State(i)), i*uint64(unsafe.Sizeof(arena_c.Chunk[T]{}))
			for {
				if !yield(int(i), chunkAt[T](h, p.first, i, at)) {
					return
				}
				i, at, state = i+1, at+uint64(unsafe.Sizeof(arena_c.Chunk[T]{})), unsafe.Add(state, -1)
				if i >= n || h.Gen != p.gen || *(*uint8)(state) != arena_c.ChunkLive {
					break
				}
			}
		}
	}
}

// chunkAt returns chunk i, which is at bytes from the first.
func chunkAt[T any](h *arena_c.Pool, first unsafe.Pointer, i, at uint64) *T {
	if arena_c.Crossing {
		return (*T)(h.Chunk(i))
	}
	return (*T)(unsafe.Add(first, at))
}

// ObjectPool is a Pool whose values have a finalizer. The finalizer runs at Put, and for each live
// value when the scope closes.
type ObjectPool[T any] struct {
	pool[T]
	fin   func(*T) error
	stack *stack.Stack
}

// Pool makes a pool of n objects in s and returns it. See [Maker.Pool]. The finalizer must accept
// the zero T that Get returns.
func (m ObjectMaker[T]) Pool(s Scope, n int) ObjectPool[T] {
	m.plain.declared()
	return ObjectPool[T]{openPool[T](s, n, m.class, false), m.fin, stack.Of(s.h)}
}

// Put runs the finalizer of x and returns the finalizer's error. x is freed in any case. Put panics
// where Put of a [Pool] does, before the finalizer runs.
func (p ObjectPool[T]) Put(x *T) error {
	index, code := itsHeader(p.header).Find(p.gen, unsafe.Pointer(x))
	if code != arena_c.OK {
		panic(misusedPut(x, p.gen, code))
	}
	state := p.header.State(index)
	*state = arena_c.ChunkLeaving
	p.stack.Finalized()
	defer func() { // also when the finalizer panics, or ends the goroutine
		if openHeader(p.header, p.gen) != nil { // it may have closed the scope
			*state = arena_c.ChunkLive
			p.pool.Put(x)
		}
	}()
	return p.fin(x)
}

// HandlePool is a Pool whose values are identified by handles. It detects a handle of a value that
// was put, even after the chunk was taken again. A handle is plain data of 8 bytes and may be
// stored in any block. A handle of another open pool of the same arena finds no value in this pool.
// After the scope closes, Get and At return nil and Put panics. A HandlePool is a small value; one
// goroutine at a time uses it.
//
// A handle is the number of a chunk and a generation, which is a number of 32 bits that changes at
// each put. The generations are divided among the planned pools (limits.pools), so that no two open
// pools of an arena share a handle. With 64 pools a chunk retires after 2^26-1 puts. The pool then
// has one chunk fewer to give. Cap and Peak still count it.
//
// A new pool begins with the same handles as the pool before it, so that the same input gives the
// same bytes everywhere. So a handle that is kept longer than its level may find a value of the
// next level. Keep handles in objects of the level. Data that lives longer can hold a [Ref] to an
// object of the level that holds the handle.
type HandlePool[T any] struct{ pool[T] }

// HandlePool makes a pool of n chunks in s and returns it. For each chunk it takes 4 bytes more
// than [Maker.Pool]. A full scope unwinds. HandlePool panics if n is negative, or 2^32 or more.
// Cost: O(n), one call into C.
func (m Maker[T]) HandlePool(s Scope, n int) HandlePool[T] {
	m.declared()
	checkHandles(n)
	return HandlePool[T]{openPool[T](s, n, 0, true)}
}

func checkHandles(n int) {
	if n >= 0 && uint64(n) > arena_c.HandleIndex {
		panic(stack.Misusef("a pool of %d chunks: handles name fewer than 2^32", n))
	}
}

// Get returns a zeroed T and its handle. If no chunk is free or the pool is closed, it returns nil
// and the zero Handle, which finds no value. Cost: a few ns and the zeroing; no Go allocation, no
// call into C.
func (p HandlePool[T]) Get() (*T, arena.Handle[T]) {
	x, h := arena_c.GetHandle[T](itsHeader(p.header), p.gen, p.first, p.numbers)
	return x, arena.Handle[T](h)
}

// At returns the value that h names. It returns nil if the value was put, if h is no handle of this
// pool, or if the pool is closed. Cost: a few comparisons, inlined.
func (p HandlePool[T]) At(h arena.Handle[T]) (x *T) { // written out, as Put
	header, i := itsHeader(p.header), uint64(h)&arena_c.HandleIndex
	if arena_c.Crossing {
		return (*T)(header.At(p.gen, uint64(h)))
	}
	if header.Gen == p.gen && i < uint64(header.Count) {
		if *(*uint32)(unsafe.Add(unsafe.Pointer(p.numbers), 4*(uint64(header.Count)+i))) == uint32(h>>32) &&
			*(*uint8)(unsafe.Add(p.first, ^i)) == arena_c.ChunkLive {
			x = (*T)(unsafe.Add(p.first, i*uint64(unsafe.Sizeof(arena_c.Chunk[T]{}))))
		}
	}
	return
}

// Index returns the number of the chunk that h names, or -1 where At returns nil. Use the number in
// arrays with an element for each chunk.
func (p HandlePool[T]) Index(h arena.Handle[T]) int {
	if p.At(h) == nil {
		return -1
	}
	return int(uint64(h) & arena_c.HandleIndex)
}

// Put frees the value that h names. It panics if the value was put before, if h is no handle of
// this pool, or if the pool is closed. The pool doesn't change then.
func (p HandlePool[T]) Put(h arena.Handle[T]) {
	if code := itsHeader(p.header).PutHandle(p.gen, uint64(h)); code != arena_c.OK {
		panic(stack.PoolMisuse("Put of a handle of", *new(T), p.gen, code))
	}
}

// All ranges over the live values and their handles. It works as All of a [Pool], and costs as
// much.
func (p HandlePool[T]) All() iter.Seq2[arena.Handle[T], *T] {
	return func(yield func(arena.Handle[T], *T) bool) {
		h, i := itsHeader(p.header), uint64(0)
		for n := uint64(h.Count); ; {
			if i = h.NextLive(p.gen, i); i >= n {
				return
			}
			state, at := unsafe.Pointer(h.State(i)), i*uint64(unsafe.Sizeof(arena_c.Chunk[T]{}))
			for {
				puts := *(*uint32)(unsafe.Add(unsafe.Pointer(p.numbers), 4*(n+i)))
				if !yield(arena.Handle[T](uint64(puts)<<32|i), chunkAt[T](h, p.first, i, at)) {
					return
				}
				i, at, state = i+1, at+uint64(unsafe.Sizeof(arena_c.Chunk[T]{})), unsafe.Add(state, -1)
				if i >= n || h.Gen != p.gen || *(*uint8)(state) != arena_c.ChunkLive {
					break
				}
			}
		}
	}
}

// SharedPool is a Pool that goroutines may share, because each method takes a lock. Between Get and
// Put a value belongs to the goroutine that called Get.
//
// The scope must stay open while goroutines use the pool, because closing the scope waits for none.
// A worker that uses the pool keeps the pool's region open with a budget.Reader. The addresses that
// a goroutine gets depend on the scheduler.
type SharedPool[T any] struct {
	mu   sync.Mutex
	pool Pool[T]
}

// SharedPool makes a pool of n chunks in s and returns it. See [Maker.Pool]. SharedPool makes a Go
// allocation for the lock.
func (m Maker[T]) SharedPool(s Scope, n int) *SharedPool[T] {
	return &SharedPool[T]{pool: m.Pool(s, n)}
}

// Get returns a zeroed T, or nil if no chunk is free or the pool is closed. Cost: as Pool.Get, and
// a lock; no Go allocation, no call into C.
func (p *SharedPool[T]) Get() *T {
	itsHeader(p.pool.header)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pool.Get()
}

// Put frees x. It panics where Put of a [Pool] does, and the pool stays usable.
func (p *SharedPool[T]) Put(x *T) {
	itsHeader(p.pool.header)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool.Put(x)
}

// Live returns the number of chunks that hold a value, or 0 if the pool is closed. Other goroutines
// may change the number at any time.
func (p *SharedPool[T]) Live() int {
	itsHeader(p.pool.header)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pool.Live()
}

// Peak returns the most chunks that were live at once, 0 if the pool is closed. Cost: O(log n).
func (p *SharedPool[T]) Peak() int {
	itsHeader(p.pool.header)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pool.Peak()
}

// ObjectHandles makes a pool of n objects in s whose values are named by handles, and also returns
// the finalizer. Put of the pool doesn't call the finalizer. The caller calls it once for each
// object, on any goroutine. A chunk in the state ChunkLeaving isn't finalized when s closes.
func ObjectHandles[T any](s Scope, m ObjectMaker[T], n int) (HandlePool[T], func(*T) error) {
	m.plain.declared()
	checkHandles(n)
	pool, ran := HandlePool[T]{openPool[T](s, n, m.class, true)}, stack.Of(s.h).CacheFinalizers()
	return pool, func(x *T) error {
		ran.Add(1)
		return m.fin(x)
	}
}

// HeaderOf and HeaderOfHandles return the header of a pool.
func HeaderOf[T any](p Pool[T]) *arena_c.Pool              { return p.header }
func HeaderOfHandles[T any](p HandlePool[T]) *arena_c.Pool { return p.header }
