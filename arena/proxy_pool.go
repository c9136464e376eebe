package arena

import "unsafe"

// Chunks is a pool for a PoolProxy: a BlockPool, or another PoolProxy. The method Proxy of a
// scope.Pool or scope.ObjectPool makes a PoolProxy.
type Chunks[T any] interface {
	Get() *T
	Put(x *T) error
}

// HandleChunks is a pool with handles for a HandlePoolProxy, such as another HandlePoolProxy. The
// method Proxy of a scope.HandlePool makes a HandlePoolProxy.
type HandleChunks[T any] interface {
	Get() (*T, Handle[T])
	Put(h Handle[T]) error
}

var (
	_ Chunks[int]       = BlockPool[int]{}
	_ Chunks[int]       = (*PoolProxy[int])(nil)
	_ HandleChunks[int] = (*HandlePoolProxy[int])(nil)
)

// PoolProxy stands in front of a pool, as a Proxy does in front of an allocator.
type PoolProxy[T any] struct {
	tally
	pool Chunks[T]
}

// NewPoolProxy makes a proxy in front of a pool or another proxy. Cost: a few Go allocations.
func NewPoolProxy[T any](name string, pool Chunks[T]) *PoolProxy[T] {
	return &PoolProxy[T]{newTally(name), pool}
}

// Get returns a zeroed T, or nil when all chunks are live. It panics after Close.
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

// Put frees v and returns the result of the pool's Put. If v isn't live in this proxy, Put returns
// an error and changes nothing.
func (x *PoolProxy[T]) Put(v *T) error {
	key := keyOf(unsafe.Pointer(v))
	if _, err := x.book.find("Put", key); err != nil {
		return err
	}
	x.book.took(key) // first, because the chunk is put even if its finalizer panics
	return x.pool.Put(v)
}

// HandlePoolProxy is a PoolProxy for a pool with handles. It also detects a chunk that was put, and
// reused, without the proxy.
type HandlePoolProxy[T any] struct {
	tally
	pool HandleChunks[T]
}

// NewHandlePoolProxy makes a proxy in front of a pool or another proxy. Cost: a few Go allocations.
func NewHandlePoolProxy[T any](name string, pool HandleChunks[T]) *HandlePoolProxy[T] {
	return &HandlePoolProxy[T]{newTally(name), pool}
}

// Get returns a zeroed T and its handle, or nil and the zero Handle when all chunks are live. It
// panics after Close.
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

// Put frees the value of h. If h isn't live in this proxy, Put returns an error and changes
// nothing.
func (x *HandlePoolProxy[T]) Put(h Handle[T]) error {
	if _, err := x.book.find("Put", uint64(h)); err != nil {
		return err
	}
	x.book.took(uint64(h))
	return x.pool.Put(h)
}
