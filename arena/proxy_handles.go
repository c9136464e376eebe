package arena

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// HandleChunks is a pool with handles as a proxy sees it. HandlePool is one, and so is a HandlePoolProxy; that of package
// scope makes a proxy by its method Proxy.
type HandleChunks[T any] interface {
	Get() (*T, Handle[T])
	At(h Handle[T]) *T
	Put(h Handle[T]) error
	Cap() int
}

var (
	_ HandleChunks[int] = HandlePool[int]{}
	_ HandleChunks[int] = (*HandlePoolProxy[int])(nil)
)

// HandlePoolProxy is a PoolProxy before a pool whose chunks are named by handles. It keeps the handles that it gave, 8
// bytes for each chunk, on the Go heap; so it also tells what was put behind its back. Get and Put cost a few ns beside
// the pool's own work, and no Go allocation.
type HandlePoolProxy[T any] struct {
	tally
	pool  HandleChunks[T]
	owned []Handle[T] // by chunk; 0 for none
}

// NewHandlePoolProxy makes a proxy before a pool or before another proxy. Cost: a few Go allocations, with 8 bytes for
// each chunk.
func NewHandlePoolProxy[T any](name string, pool HandleChunks[T]) *HandlePoolProxy[T] {
	return &HandlePoolProxy[T]{tally: tally{name: name}, pool: pool, owned: make([]Handle[T], pool.Cap())}
}

// Get gives a zeroed T and its handle, or nil and the zero Handle when all chunks are live. After Close it panics.
func (x *HandlePoolProxy[T]) Get() (*T, Handle[T]) {
	x.check("Get")
	v, h := x.pool.Get()
	if v == nil {
		x.stats.Failed++
		return nil, 0
	}
	x.owned[h&arena_c.HandleIndex] = h
	x.gave()
	return v, h
}

// Put gives the value back that h names. What this proxy didn't give, or was put already, is refused and changes nothing.
func (x *HandlePoolProxy[T]) Put(h Handle[T]) error {
	if x.closed {
		return x.bug("Put", arena_c.Stale.String())
	}
	if !x.owns(h) && x.pool.At(h) != nil {
		return x.bug("Put", "a chunk of another proxy, or of the pool itself")
	}
	if err := x.pool.Put(h); err != nil { // also for what was put already
		return fmt.Errorf("arena: proxy %q: Put: %w", x.name, err)
	}
	x.owned[h&arena_c.HandleIndex] = 0
	x.stats.Live--
	return nil
}

// At is the value that h names, or nil: it was put, or this proxy didn't give it.
func (x *HandlePoolProxy[T]) At(h Handle[T]) *T {
	if !x.owns(h) {
		return nil
	}
	return x.pool.At(h)
}

// Cap is that of the pool, which all its clients share.
func (x *HandlePoolProxy[T]) Cap() int { return x.pool.Cap() }

// Close is PoolProxy.Close.
func (x *HandlePoolProxy[T]) Close() error {
	return x.close(func(leaked func(i int)) {
		for i, h := range x.owned {
			if h != 0 && x.pool.At(h) != nil {
				leaked(i)
			}
		}
	})
}

func (x *HandlePoolProxy[T]) owns(h Handle[T]) bool {
	i := uint64(h & arena_c.HandleIndex)
	return h != 0 && i < uint64(len(x.owned)) && x.owned[i] == h
}
