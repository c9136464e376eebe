package scope

import "sync"

// SharedPool is a Pool that goroutines may share: each of its methods takes one lock. What a goroutine does with a value
// between Get and Put is its own affair.
//
// The scope must outlive its users, as with all that is in it: closing it takes no lock. A worker that uses the pool of a
// level is inside the level meanwhile (budget.Reader). Which goroutine gets which address depends on how they are
// scheduled.
type SharedPool[T any] struct {
	mu   sync.Mutex
	pool Pool[T]
}

// SharedPool makes a pool of n chunks in s. See [Maker.Pool]. It costs one Go allocation, for the lock.
func (m Maker[T]) SharedPool(s Scope, n int) *SharedPool[T] {
	return &SharedPool[T]{pool: m.Pool(s, n)}
}

// Get gives a zeroed T, or nil when all chunks are live or the pool is closed. Cost: that of Pool.Get and of a lock; no
// Go allocation, no call into C.
func (p *SharedPool[T]) Get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pool.Get()
}

// Put gives x back. It panics as Pool.Put does, and the pool is good still.
func (p *SharedPool[T]) Put(x *T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool.Put(x)
}

// Live is the number of chunks taken, 0 when the pool is closed. Others may Get and Put before the caller looks at it.
func (p *SharedPool[T]) Live() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pool.Live()
}

// Peak is the largest number of chunks that were live at once. Cost: O(log n).
func (p *SharedPool[T]) Peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pool.Peak()
}
