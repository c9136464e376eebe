package scope

import "github.com/upfront-mem/upfront/arena"

// Proxy makes a proxy before the pool, for one of its clients: with totals of its own, and a Close that names the chunks
// that didn't come back. Where the pool panics over misuse, the proxy's Put returns the error. Own the proxy in the pool's
// scope after the pool, and it closes before the pool dies. Cost: a few Go allocations.
func (p Pool[T]) Proxy(name string) *arena.PoolProxy[T] {
	return arena.NewPoolProxy[T](name, poolChunks[T]{p})
}

// Proxy is Pool.Proxy. The proxy's Put finalizes, as the pool's does.
func (p ObjectPool[T]) Proxy(name string) *arena.PoolProxy[T] {
	return arena.NewPoolProxy[T](name, objectChunks[T]{p})
}

// Proxy is Pool.Proxy, for a pool with handles.
func (p HandlePool[T]) Proxy(name string) *arena.HandlePoolProxy[T] {
	return arena.NewHandlePoolProxy[T](name, handleChunks[T]{p})
}

// These are the pools with errors in place of panics.
type (
	poolChunks[T any]   struct{ Pool[T] }
	objectChunks[T any] struct{ ObjectPool[T] }
	handleChunks[T any] struct{ HandlePool[T] }
)

func (c poolChunks[T]) Put(x *T) error {
	if !c.tryPut(x) {
		_, err := c.find("Put", x)
		return err
	}
	return nil
}

func (c handleChunks[T]) Put(h arena.Handle[T]) error { return c.put(h) }
