package cache_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/tests/step"
)

// wide is a value of more than two pages, so that [cache.Of.Trim] returns pages next to it.
type wide struct {
	At   int64  // the key
	Made uint64 // the version of the key's source
	_    [1100]uint64
	Last uint64 // the same version
}

var wides = scope.Plain[wide]()

const (
	sharedKeys   = 40
	ofGoroutines = 4
	ofMostValues = 16
)

// sharers are goroutines that use one cache with all of its methods. The keys below sharedKeys are
// loaded by each of them, and those after it are one goroutine's each, which adds them. The methods
// are counted as [cache.OfStats] counts them.
type sharers struct {
	t       *testing.T
	c       *cache.Of[int64, wide]
	objects bool
	live    [sharedKeys + ofGoroutines]atomic.Int64 // values without a finalizer's end, of objects
	source  [sharedKeys]atomic.Uint64               // its version, which a loader reads
	least   [sharedKeys]atomic.Uint64               // the version that a later call may get
	handle  [sharedKeys]atomic.Uint64               // a value's, maybe gone

	made, ended, loads, failed, hits, misses atomic.Uint64
}

func (g *sharers) finalize(x *wide) error {
	g.ended.Add(1)
	if x.At < 0 || x.At >= int64(len(g.live)) || x.Made != x.Last || g.live[x.At].Add(-1) != 0 {
		panic(fmt.Sprintf("a finalizer of key %d, versions %d and %d", x.At, x.Made, x.Last))
	}
	return nil
}

// fill makes x a value of a key.
func (g *sharers) fill(x *wide, k int64, version uint64) {
	if x.At != 0 || x.Made != 0 || x.Last != 0 {
		panic("a new value isn't zero")
	}
	if g.live[k].Add(1) != 1 && g.objects {
		panic("two values of a key")
	}
	x.At, x.Made, x.Last = k, version, version
	g.made.Add(1)
}

// uses checks a pinned value while others run, and takes its pin back.
func (g *sharers) uses(x *wide, k int64, least uint64) {
	version := x.Made
	y := g.c.At(g.c.Handle(x))
	runtime.Gosched()
	if x.At != k || version < least || x.Made != version || x.Last != version || y != nil && y != x {
		g.t.Errorf("a value of key %d, version %d or higher, is of key %d, versions %d, %d and %d", k, least, x.At,
			version, x.Made, x.Last)
	}
	if y == nil { // no key leads to the value
		g.misses.Add(1)
	} else {
		g.hits.Add(1)
		g.c.Unpin(y)
	}
	g.c.Unpin(x)
}

// load gets or loads a key, in a loader at times within another one's. The other goroutines may
// wait for it until their contexts end.
func (g *sharers) load(ctx context.Context, random *rand.Rand, k int64, inside bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err, _ = v.(error); err != errLoad {
				panic(v)
			}
		}
	}()
	least, mine := g.least[k].Load(), false
	x, err := g.c.GetOrLoad(ctx, k, func(ctx context.Context, x *wide) (err error) {
		mine = true
		g.loads.Add(1)
		g.failed.Add(1)
		version := g.source[k].Load()
		switch how := random.IntN(16); {
		case how == 0:
			return errLoad
		case how == 1:
			panic(errLoad)
		case how < 4 && !inside:
			if err := g.load(ctx, random, random.Int64N(sharedKeys), true); err != nil {
				return err
			}
		case how < 8:
			runtime.Gosched()
		}
		g.fill(x, k, version)
		g.failed.Add(^uint64(0))
		return nil
	})
	if err != nil {
		return err
	}
	if !mine {
		g.hits.Add(1)
	}
	g.handle[k].Store(uint64(g.c.Handle(x)))
	g.uses(x, k, least)
	return nil
}

// found checks a value of Get or At, if there is one.
func (g *sharers) found(x *wide, k int64, least uint64) {
	if x == nil {
		g.misses.Add(1)
		return
	}
	g.hits.Add(1)
	g.uses(x, k, least)
}

// changes changes the source of a key. No call after the Delete may return an older value.
func (g *sharers) changes(k int64) {
	version := g.source[k].Add(1)
	if err := g.c.Delete(k); err != nil {
		assert.True(g.t, g.objects, "%v", err)
		return // the value is pinned or in load, and stays
	}
	for {
		is := g.least[k].Load()
		if is >= version || g.least[k].CompareAndSwap(is, version) {
			return
		}
	}
}

// adds adds, gets and deletes a key that no other goroutine uses.
func (g *sharers) adds(k int64, version uint64) {
	x, err := g.c.Add(k)
	if errors.Is(err, cache.ErrPresent) {
		if x := g.c.Get(k); x != nil { // else another goroutine evicted it since
			g.found(x, k, 1)
			assert.NoError(g.t, g.c.Delete(k))
		} else {
			g.misses.Add(1)
		}
		return
	}
	if assert.NoError(g.t, err) {
		g.fill(x, k, version)
		g.uses(x, k, version)
	}
}

// step does one operation.
func (g *sharers) step(random *rand.Rand, me int64, version uint64) {
	k := random.Int64N(sharedKeys)
	switch random.IntN(80) {
	default:
		ctx, err := context.Context(background), error(nil)
		if random.IntN(8) == 0 {
			var end context.CancelFunc
			ctx, end = context.WithCancel(ctx)
			if random.IntN(4) == 0 {
				end()
			} else {
				go end()
			}
		}
		if err = g.load(ctx, random, k, false); err != nil {
			isEnd := errors.Is(err, context.Canceled) && ctx.Err() != nil
			assert.True(g.t, isEnd || errors.Is(err, errLoad) || errors.Is(err, cache.ErrCycle), "%v", err)
		}
	case 0, 1, 2, 3, 4, 5:
		g.changes(k)
	case 6, 7, 8, 9:
		g.adds(sharedKeys+me, version)
	case 10, 11, 12, 13, 14, 15, 16, 17, 18, 19:
		least := g.least[k].Load()
		g.found(g.c.Get(k), k, least)
	case 20, 21, 22, 23, 24, 25, 26, 27, 28, 29:
		if h := arena.Handle[wide](g.handle[k].Load()); h != 0 {
			g.found(g.c.At(h), k, 0)
		}
	case 30, 31:
		// A goroutine has three entries at most: in load, in load within it, and in a finalizer.
		assert.NoError(g.t, g.c.Resize(ofMostValues-random.IntN(ofMostValues-3*ofGoroutines)))
	case 32:
		if err := g.c.Clear(); err != nil {
			assert.ErrorIs(g.t, err, scope.ErrFull)
		}
	case 33, 34:
		_, err := g.c.Trim()
		assert.NoError(g.t, err)
	case 35, 36:
		st := g.c.Stats()
		if st.Len < 0 || st.Len > ofMostValues || st.Pinned < 0 || st.Loading < 0 || st.Pinned+st.Loading > st.Limit {
			g.t.Errorf("%+v", st)
		}
	}
}

// TestGoroutines: goroutines call all methods of a cache at once. Each value is its key's, and not
// older than the last Delete. With finalizers a key has one value at a time. The figures are the
// sums of the calls.
func TestGoroutines(t *testing.T) {
	for _, objects := range []bool{true, false} {
		t.Run(fmt.Sprintf("objects %v", objects), func(t *testing.T) {
			g := &sharers{t: t, objects: objects}
			s := open(t).Scratch(0, 0).Open("world")
			if objects {
				g.c = cache.NewObjects(s, places, scope.Object(g.finalize), ofMostValues)
			} else {
				g.c = cache.New(s, places, wides, ofMostValues)
			}
			var group sync.WaitGroup
			for me := range int64(ofGoroutines) {
				group.Go(func() {
					random := rand.New(rand.NewPCG(uint64(me), 7))
					for i := range step.Pick(1000, 3000, 150_000) {
						g.step(random, me, uint64(i+1))
					}
				})
			}
			group.Wait()
			st := g.c.Stats()
			assert.Equal(t, [4]uint64{g.hits.Load(), g.misses.Load() + g.loads.Load(), g.loads.Load(), g.failed.Load()},
				[4]uint64{st.Hits, st.Misses, st.Loads, st.Failed})
			assert.Zero(t, st.Pinned+st.Loading)
			assert.NotZero(t, st.Evictions)
			require.NoError(t, g.c.Clear())
			assert.Zero(t, g.c.Len())
			if objects {
				assert.Equal(t, g.made.Load(), g.ended.Load())
			}
			require.NoError(t, s.Close())
		})
	}
}

// versioned is a value of a key: the key, a version, and bytes that both determine.
func versioned(key []byte, version uint64, size int) []byte {
	value := binary.LittleEndian.AppendUint64(append([]byte{}, key...), version)
	for len(value) < size {
		value = append(value, byte(version)^byte(len(value)))
	}
	return value
}

// TestBytesGoroutines: goroutines call all methods of a cache with shards at once. Each value is
// whole, its key's, and not older than the last Set or Delete. The figures are the sums of the
// calls.
func TestBytesGoroutines(t *testing.T) {
	const goroutines, size, keys = 4, 512 << 10, 6000
	inScope(t, size, func(s scope.Scope) {
		c := cache.NewBytes(s, size, cache.Options{Shards: 4})
		var all sync.WaitGroup
		var least [keys]atomic.Uint64 // the version of the last Set or Delete that has returned
		var clock atomic.Int64
		var hits, misses atomic.Uint64
		check := func(key, value []byte, from uint64) {
			n := len(key)
			if len(value) < n+8 || string(value[:n]) != string(key) {
				t.Errorf("key %s has the value %x", key, value)
				return
			}
			version := binary.LittleEndian.Uint64(value[n:])
			if version < from || string(versioned(key, version, len(value))) != string(value) {
				t.Errorf("key %s, version %d or higher, has version %d: %x", key, from, version, value)
			}
		}
		count := func(ok bool) {
			if ok {
				hits.Add(1)
			} else {
				misses.Add(1)
			}
		}
		for me := range goroutines {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(me), 1))
				var buffer []byte
				for i := range step.Pick(4000, 20_000, 300_000) {
					k := random.IntN(keys)
					key, version := fmt.Appendf(nil, "%d", k), uint64(i+1)
					switch op := random.IntN(4000); {
					case op < 1600: // only one goroutine sets a key
						k = k - k%goroutines + me
						key = fmt.Appendf(key[:0], "%d", k)
						until := int64(1<<63 - 1)
						if op < 200 {
							until = clock.Load() + random.Int64N(30)
						}
						if err := c.SetUntil(key, versioned(key, version, random.IntN(400)), until); err != nil {
							t.Error(err)
						}
						least[k].Store(version)
					case op < 1800:
						k = k - k%goroutines + me
						c.Delete(fmt.Appendf(key[:0], "%d", k))
						least[k].Store(version)
					case op < 2800:
						from, ok := least[k].Load(), false
						if buffer, ok = c.Get(buffer[:0], key); ok {
							check(key, buffer, from)
						}
						count(ok)
					case op < 3800:
						from := least[k].Load()
						count(c.View(key, func(value []byte) { check(key, value, from) }))
					case op < 3900:
						c.Has(key)
					case op < 3940:
						c.Advance(clock.Add(1))
					case op < 3960:
						c.Resize(size - random.IntN(size/2))
					case op < 3965:
						c.Clear()
					case op < 3980:
						_, err := c.Trim()
						assert.NoError(t, err)
					default:
						if st := c.Stats(); st.Padding > size || st.Hits > hits.Load()+goroutines {
							t.Errorf("%+v", st)
						}
					}
				}
			})
		}
		all.Wait()
		require.NoError(t, c.Walk())
		st := c.Stats()
		assert.Equal(t, [2]uint64{hits.Load(), misses.Load()}, [2]uint64{st.Hits, st.Misses})
		assert.True(t, st.Evictions != 0 && st.Hits != 0)
		for k := range keys {
			key := fmt.Appendf(nil, "%d", k)
			if value, ok := c.Get(nil, key); ok {
				check(key, value, least[k].Load())
			}
		}
		c.Clear()
		assert.Zero(t, c.Stats().Entries)
		require.NoError(t, c.Walk())
	})
}
