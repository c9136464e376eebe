package arena

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Chunks is a pool as a proxy sees it. Pool is one, and so is a PoolProxy; the pools of package scope make a proxy by their
// method Proxy.
type Chunks[T any] interface {
	Get() *T
	Put(x *T) error
	Index(x *T) (int, error)
	At(i int) *T
	Cap() int
}

var (
	_ Chunks[int] = Pool[int]{}
	_ Chunks[int] = (*PoolProxy[int])(nil)
)

// PoolProxy stands before a pool under a name, as a Proxy does before a heap: with totals of its own, it takes back only
// what it gave, and Close names what didn't come back. Several may stand before one pool, and one before another: what
// the front one gives counts in both; put it to the front one.
//
// It keeps a bit for each chunk on the Go heap, allocated when it is made. Get and Put cost a call into C beside the
// pool's own work, and no Go allocation. It is used as its pool is: one goroutine at a time.
//
// It can't tell a chunk of its own that was put behind its back when the pool has given it to another. Nor can a back one
// tell a front one's chunks from its own: close the front one first.
type PoolProxy[T any] struct {
	tally
	pool  Chunks[T]
	owned []uint64 // a bit for each chunk
}

// PoolProxyStats are the totals of a proxy before a pool, in chunks: those that are live, the most that were at once,
// those that it ever gave, and the requests that it refused because all were live.
type PoolProxyStats struct {
	Live, Peak, Total, Failed uint64
}

// NewPoolProxy makes a proxy before a pool or before another proxy. Cost: a few Go allocations, with a bit for each chunk.
func NewPoolProxy[T any](name string, pool Chunks[T]) *PoolProxy[T] {
	return &PoolProxy[T]{tally: tally{name: name}, pool: pool, owned: make([]uint64, (pool.Cap()+63)/64)}
}

// Get gives a zeroed T, or nil when all chunks are live. After Close it panics.
func (x *PoolProxy[T]) Get() *T {
	x.check("Get")
	v := x.pool.Get()
	if v == nil {
		x.stats.Failed++
		return nil
	}
	i, err := x.pool.Index(v)
	if err != nil {
		panic(x.bug("Get", err.Error()).Error())
	}
	x.owned[i/64] |= 1 << (i % 64)
	x.gave()
	return v
}

// Put gives v back, and returns what the pool's Put does. What is no live chunk of this proxy is refused and changes
// nothing.
func (x *PoolProxy[T]) Put(v *T) error {
	i, err := x.find("Put", v)
	if err != nil {
		return err
	}
	x.owned[i/64] &^= 1 << (i % 64) // first: a finalizer may panic, and the chunk is put all the same
	x.stats.Live--
	return x.pool.Put(v)
}

// Index is the number of v's chunk in the pool. What is no live chunk of this proxy is refused.
func (x *PoolProxy[T]) Index(v *T) (int, error) { return x.find("Index", v) }

// At is the live value in chunk i, or nil: i is out of range, or the chunk is free or not of this proxy.
func (x *PoolProxy[T]) At(i int) *T {
	if i < 0 || i/64 >= len(x.owned) || x.owned[i/64]>>(i%64)&1 == 0 {
		return nil
	}
	return x.pool.At(i)
}

// Cap is that of the pool, which all its clients share.
func (x *PoolProxy[T]) Cap() int { return x.pool.Cap() }

// Close ends the proxy. Nil says that every chunk came back; otherwise the error names those that didn't, by their
// numbers, and they stay live in the pool. A second Close is refused. Cost: O(1) when every chunk came back, otherwise
// O(chunks).
func (x *PoolProxy[T]) Close() error {
	return x.close(func(leaked func(i int)) {
		for word, owned := range x.owned {
			for ; owned != 0; owned &= owned - 1 {
				i := word*64 + bits.TrailingZeros64(owned)
				if x.pool.At(i) != nil {
					leaked(i)
				}
			}
		}
	})
}

func (x *PoolProxy[T]) find(what string, v *T) (int, error) {
	if x.closed {
		return 0, x.bug(what, arena_c.Stale.String())
	}
	i, err := x.pool.Index(v)
	if err != nil {
		return 0, fmt.Errorf("arena: proxy %q: %s: %w", x.name, what, err)
	}
	if x.owned[i/64]>>(i%64)&1 == 0 {
		return 0, x.bug(what, "a chunk of another proxy, or of the pool itself")
	}
	return i, nil
}

// tally is what the proxies before pools have in common.
type tally struct {
	name   string
	stats  PoolProxyStats
	closed bool
}

// Name is the name that it was made with.
func (t *tally) Name() string { return t.name }

// Stats are the totals. They stay readable after Close.
func (t *tally) Stats() PoolProxyStats { return t.stats }

func (t *tally) gave() {
	t.stats.Live++
	t.stats.Total++
	t.stats.Peak = max(t.stats.Peak, t.stats.Live)
}

func (t *tally) check(what string) {
	if t.closed {
		panic(t.bug(what, arena_c.Stale.String()).Error())
	}
}

func (t *tally) bug(what, wrong string) error {
	return fmt.Errorf("arena: BUG: proxy %q: %s: %s", t.name, what, wrong)
}

// close is that of each; each calls leaked with the chunks that are its own and live in the pool.
func (t *tally) close(each func(leaked func(i int))) error {
	if t.closed {
		return t.bug("Close", arena_c.Stale.String())
	}
	t.closed = true
	if t.stats.Live == 0 {
		return nil
	}
	var live uint64
	var named, said []string
	each(func(i int) {
		if live++; live <= leaksNamed {
			named = append(named, strconv.Itoa(i))
		}
	})
	if live != 0 {
		said = append(said, fmt.Sprintf("%s %s never put back: %s", plural(live, "chunk"), was(live), list(named, live)))
	}
	if missing := t.stats.Live - live; missing != 0 {
		said = append(said, fmt.Sprintf("%s %s not found: put to the pool itself, or gone with it", plural(missing, "chunk"), was(missing)))
	}
	return fmt.Errorf("arena: proxy %q: %s", t.name, strings.Join(said, "; "))
}
