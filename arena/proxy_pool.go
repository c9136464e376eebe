package arena

import "unsafe"

// Chunks is a pool as a proxy sees it: a BlockPool, or a PoolProxy. The pools of package scope make a proxy by their method
// Proxy.
type Chunks[T any] interface {
	Get() *T
	Put(x *T) error
}

// HandleChunks is a pool with handles as a proxy sees it: a scope.HandlePool, which makes a proxy by
// its method Proxy, or a HandlePoolProxy.
type HandleChunks[T any] interface {
	Get() (*T, Handle[T])
	Put(h Handle[T]) error
}

var (
	_ Chunks[int]       = BlockPool[int]{}
	_ Chunks[int]       = (*PoolProxy[int])(nil)
	_ HandleChunks[int] = (*HandlePoolProxy[int])(nil)
)

// PoolProxy stands before a pool under a name, as a Proxy does before an allocator.
type PoolProxy[T any] struct {
	tally
	pool Chunks[T]
}

// NewPoolProxy makes a proxy before a pool or before another proxy. Cost: a few Go allocations.
func NewPoolProxy[T any](name string, pool Chunks[T]) *PoolProxy[T] {
	return &PoolProxy[T]{newTally(name), pool}
}

// Get gives a zeroed T, or nil when all chunks are live. After Close it panics.
func (x *PoolProxy[T]) Get() *T {
	x.book.check("Get")
	v := x.pool.Get()
	if v == nil {
		x.book.refused(uint64(unsafe.Sizeof(*v)))
	} else {
		x.book.gave(keyOf(unsafe.Pointer(v)), uint64(unsafe.Sizeof(*v)))
	}
	return v
}

// Put gives v back, and returns what the pool's Put does. What this proxy didn't give, or has back already, is refused and
// changes nothing.
func (x *PoolProxy[T]) Put(v *T) error {
	key := keyOf(unsafe.Pointer(v))
	if _, err := x.book.find("Put", key); err != nil {
		return err
	}
	x.book.took(key) // first: a finalizer may panic, and the chunk is put all the same
	return x.pool.Put(v)
}

// HandlePoolProxy is a PoolProxy before a pool whose chunks are named by handles: it also tells a chunk that was put behind
// its back from what lies there now.
type HandlePoolProxy[T any] struct {
	tally
	pool HandleChunks[T]
}

// NewHandlePoolProxy makes a proxy before a pool or before another proxy. Cost: a few Go allocations.
func NewHandlePoolProxy[T any](name string, pool HandleChunks[T]) *HandlePoolProxy[T] {
	return &HandlePoolProxy[T]{newTally(name), pool}
}

// Get gives a zeroed T and its handle, or nil and the zero Handle when all chunks are live. After Close it panics.
func (x *HandlePoolProxy[T]) Get() (*T, Handle[T]) {
	x.book.check("Get")
	v, h := x.pool.Get()
	if v == nil {
		x.book.refused(uint64(unsafe.Sizeof(*v)))
	} else {
		x.book.gave(uint64(h), uint64(unsafe.Sizeof(*v)))
	}
	return v, h
}

// Put gives the value back that h names. What this proxy didn't give, or has back already, is refused and changes nothing.
func (x *HandlePoolProxy[T]) Put(h Handle[T]) error {
	if _, err := x.book.find("Put", uint64(h)); err != nil {
		return err
	}
	x.book.took(uint64(h))
	return x.pool.Put(h)
}
