package cache_test

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/tests/step"
)

// inScope calls fn with a scope of a region of size bytes.
func inScope(t testing.TB, size uint64, fn func(s scope.Scope)) {
	b, err := budget.Open(budget.Plan{Name: "test",
		Regions: []budget.RegionPlan{{Name: "level", Size: size + budget.MiB}}})
	require.NoError(t, err)
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*struct{ _ byte }, error) {
		fn(s)
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, b.Close())
}

func valueOf(key []byte, version uint64, size int) []byte {
	r := rand.NewPCG(binary.LittleEndian.Uint64(append(append([]byte{}, key...), make([]byte, 8)...)), version)
	v := make([]byte, size)
	for i := range v {
		v[i] = byte(r.Uint64())
	}
	return v
}

// TestBytesModel: each value is the last one that was passed to Set, or absent; the walk agrees
// after each operation.
func TestBytesModel(t *testing.T) {
	operations := step.Pick(20_000, 100_000, 1_000_000)
	if arena_c.Race || arena_c.Asan || arena_c.Checked {
		operations = step.Pick(5_000, 20_000, 1_000_000)
	}
	for _, shards := range []int{0, 4} {
		for _, size := range []int{20_000, 200_000} {
			inScope(t, uint64(size), func(s scope.Scope) {
				c := cache.NewBytes(s, size, cache.Options{Shards: shards, Entry: 64, Seed: 1})
				hits := playBytes(t, c, size, operations, 100, rand.NewPCG(1, 2))
				require.Greater(t, hits, operations/100)
			})
		}
	}
}

// playBytes does random operations with c, of a size, and compares it with a plain map. It resizes
// c once in so many steps of its clock. It returns the number of values that Get found.
func playBytes(t testing.TB, c *cache.Bytes, size, operations int, resizes int64, source rand.Source) (hits int) {
	r := rand.New(source)
	type known struct {
		value []byte
		until int64
	}
	model, now := map[string]known{}, int64(0)
	for i := range operations {
		key := fmt.Appendf(nil, "%d", r.IntN(3000))
		switch r.IntN(8) {
		case 0, 1, 2:
			value := valueOf(key, uint64(i), r.IntN(1+r.IntN(200)))
			if r.IntN(50) == 0 {
				value = make([]byte, c.Most())
			}
			until := int64(1<<63 - 1)
			if r.IntN(4) == 0 {
				until = now + r.Int64N(50)
			}
			if err := c.SetUntil(key, value, until); err != nil {
				require.ErrorIs(t, err, cache.ErrLarge)
				require.Greater(t, len(key)+len(value)+16, c.Most())
				require.False(t, c.Has(key), "the old value of a refused Set")
				delete(model, string(key))
				break
			}
			model[string(key)] = known{value, until}
		case 3:
			_, had := model[string(key)]
			if c.Delete(key) {
				require.True(t, had)
			}
			delete(model, string(key))
		case 4:
			now++
			c.Advance(now)
			if now%resizes == 0 {
				c.Resize(size - r.IntN(size/3))
				require.NoError(t, c.Walk())
				_, err := c.Trim()
				require.NoError(t, err)
			}
		default:
			value, ok := c.Get(nil, key)
			require.Equal(t, ok, c.Has(key))
			if ok {
				hits++
				require.Equal(t, string(model[string(key)].value), string(value))
				require.Greater(t, model[string(key)].until, now)
			}
		}
		if i%max(size/1000, 1) == 0 {
			require.NoError(t, c.Walk(), "operation %d", i)
		}
	}
	c.Clear()
	require.NoError(t, c.Walk())
	require.Zero(t, int(c.Stats().Entries))
	return hits
}

// TestBytesHitRatio: more reads find their key than in an LRU of as many bytes without overhead.
func TestBytesHitRatio(t *testing.T) {
	const size, reads = 256 << 10, 200_000
	for skew, more := range map[float64]float64{0.8: 0.03, 1: 0.015, 1.2: 0.002} {
		inScope(t, size, func(s scope.Scope) {
			c := cache.NewBytes(s, size, cache.Options{Entry: 80, Seed: 1})
			n := size / 80
			next, value, key := zipf(10*n, skew), make([]byte, 64), make([]byte, 16)
			lru, order, hits, lruHits := map[int]*list.Element{}, list.New(), 0, 0
			for i := range reads {
				k := next()
				binary.LittleEndian.PutUint64(key, uint64(k))
				_, ok := c.Get(nil, key)
				if !ok {
					require.NoError(t, c.Set(key, value))
				}
				e := lru[k]
				if i > reads/4 && ok {
					hits++
				}
				if i > reads/4 && e != nil {
					lruHits++
				}
				if e != nil {
					order.MoveToFront(e)
				} else if lru[k] = order.PushFront(k); order.Len() > n {
					delete(lru, order.Remove(order.Back()).(int))
				}
			}
			const counted = reads - reads/4 - 1
			t.Logf("zipf %.1f: %.4f of the reads, and %.4f in an LRU", skew, float64(hits)/counted,
				float64(lruHits)/counted)
			assert.Greater(t, float64(hits)/counted, float64(lruHits)/counted+more)
		})
	}
}

// zipf returns a source of numbers below n.
func zipf(n int, s float64) func() int {
	sum := make([]float64, n)
	total := 0.0
	for i := range sum {
		total += 1 / math.Pow(float64(i+1), s) //upfront:keeps the test needs no last bits
		sum[i] = total
	}
	r := rand.New(rand.NewPCG(1, 2))
	return func() int {
		x := r.Float64() * total
		lo, hi := 0, n-1
		for lo < hi {
			m := (lo + hi) / 2
			if sum[m] < x {
				lo = m + 1
			} else {
				hi = m
			}
		}
		return lo
	}
}

func TestBytesRefuses(t *testing.T) {
	inScope(t, 1<<20, func(s scope.Scope) {
		for text, make := range map[string]func(){
			"NewBytes with 3 shards: pass 0, or a power of two up to 4096": func() {
				cache.NewBytes(s, 1<<20, cache.Options{Shards: 3})
			},
			"NewBytes with 8192 shards": func() { cache.NewBytes(s, 1<<30, cache.Options{Shards: 8192}) },
			"NewBytes with an Options.Entry of -1: pass 0 for 256, or up to the 32768 bytes": func() {
				cache.NewBytes(s, 1<<20, cache.Options{Entry: -1})
			},
			"8191 bytes, 4032 for each shard (Options.Shards is 2): pass 8192 bytes or more": func() {
				cache.NewBytes(s, 8191, cache.Options{Shards: 2})
			},
			"NewBytes of -1 bytes": func() { cache.NewBytes(s, -1, cache.Options{}) },
		} {
			requirePanic(t, text, make)
		}
		if strconv.IntSize == 64 {
			requirePanic(t, "a shard has 34359738368 at most; use more shards", func() {
				cache.NewBytes(s, 1<<(strconv.IntSize-28), cache.Options{})
			})
		}
		inner := s.Open("inner")
		c := cache.NewBytes(inner, 64<<10, cache.Options{})
		require.Equal(t, 2048, c.Most())
		require.NoError(t, c.Set([]byte("key"), make([]byte, 2048-8-3)))
		err := c.Set([]byte("key"), make([]byte, 2048-8-2))
		require.ErrorIs(t, err, cache.ErrLarge)
		require.EqualError(t, err, "cache: the key and value are too large: a key of 3 bytes and a value of 2038 "+
			"take 2049 with the header, and one takes at most 2048, a 32nd of a shard (there are 1); pass NewBytes "+
			"65600 bytes or more")
		require.False(t, c.Has([]byte("key")), "the value before the refused one")
		require.NoError(t, c.Set([]byte("key"), make([]byte, 2048-8-3)))
		larger := cache.NewBytes(inner, 65600, cache.Options{})
		require.NoError(t, larger.Set([]byte("key"), make([]byte, 2048-8-2)))
		require.NoError(t, larger.SetUntil([]byte("ends"), nil, 5))
		larger.Advance(7)
		larger.Advance(4)
		require.False(t, larger.Has([]byte("ends")), "the clock doesn't go back")
		requirePanic(t, "View without a function", func() { larger.View(nil, nil) })
		value, ok := c.Get(nil, []byte("key"))
		require.True(t, ok)
		require.Len(t, value, 2048-8-3)
		require.True(t, c.View([]byte("key"), func(value []byte) { require.Len(t, value, 2048-8-3) }))
		require.False(t, c.View([]byte("no"), func([]byte) { t.Error("called") }))
		st := c.Stats()
		require.Equal(t, uint64(64<<10), st.KeyBytes+st.ValueBytes+st.Index+st.Padding)
		require.EqualValues(t, []uint64{2, 1, 1, 1}, []uint64{st.Hits, st.Misses, st.Rejected, st.Entries})

		require.NoError(t, inner.Close())
		_, ok = c.Get(nil, []byte("key"))
		require.False(t, ok)
		require.False(t, c.Has([]byte("key")) || c.Delete([]byte("key")) || c.View([]byte("key"), func([]byte) {}))
		require.Zero(t, c.Stats())
		all := s.Bytes(128 << 10)
		c.Advance(1)
		larger.Advance(1)
		require.Equal(t, make([]byte, 128<<10), all, "the bytes have another owner")
		requirePanic(t, `scope: BUG: Set in a cache.Bytes in a closed scope of region level`, func() {
			c.Set([]byte("key"), nil)
		})
	})
}

func requirePanic(t *testing.T, text string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, _ := recover().(error)
		require.ErrorContains(t, err, text)
	}()
	fn()
}

// TestBytesTakesItsBytes: a cache takes exactly its size when it is made, and nothing later, on
// neither heap.
func TestBytesTakesItsBytes(t *testing.T) {
	inScope(t, 1<<20, func(s scope.Scope) {
		free := s.Free()
		c := cache.NewBytes(s, 1<<20, cache.Options{})
		require.EqualValues(t, 1<<20, free-s.Free())
		key, value, buf := make([]byte, 16), make([]byte, 100), make([]byte, 0, 100)
		i := uint64(0)
		require.Zero(t, testing.AllocsPerRun(20_000, func() {
			binary.LittleEndian.PutUint64(key, i*7919%20_000)
			i++
			if _, ok := c.Get(buf, key); !ok {
				_ = c.Set(key, value)
			}
		}))
		require.NotZero(t, c.Stats().Evictions)
		require.EqualValues(t, 1<<20, free-s.Free())
	})
	// a scope with a byte less unwinds
	b, err := budget.Open(budget.Plan{Name: "test",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	require.NoError(t, err)
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*struct{ _ byte }, error) {
		cache.NewBytes(s, int(s.Free())+1, cache.Options{})
		return nil, nil
	})
	require.ErrorIs(t, err, scope.ErrFull)
	require.NoError(t, b.Close())
}

// TestBytesExamined: an eviction examines few entries, also if each entry was read three times.
func TestBytesExamined(t *testing.T) {
	inScope(t, 256<<10, func(s scope.Scope) {
		c := cache.NewBytes(s, 256<<10, cache.Options{Entry: 40})
		key := make([]byte, 8)
		for i := range uint64(30_000) {
			if i%3000 == 0 {
				for n := range 3 * i {
					binary.LittleEndian.PutUint64(key, n%i)
					c.Get(nil, key)
				}
			}
			binary.LittleEndian.PutUint64(key, i)
			before := c.Stats()
			require.NoError(t, c.Set(key, key))
			after := c.Stats()
			require.LessOrEqual(t, after.Examined-before.Examined, 18*(after.Evictions-before.Evictions+2))
		}
		require.NotZero(t, c.Stats().Evictions)
	})
}

// TestBytesResize: a smaller cache keeps the newest entries of its main queue, and Trim returns the
// pages that are free.
func TestBytesResize(t *testing.T) {
	inScope(t, 4<<20, func(s scope.Scope) {
		c := cache.NewBytes(s, 4<<20, cache.Options{Entry: 1000})
		key, value := make([]byte, 8), make([]byte, 1000)
		set := func(from, to uint64) {
			for i := from; i < to; i++ {
				binary.LittleEndian.PutUint64(key, i)
				require.NoError(t, c.Set(key, value))
			}
		}
		set(0, 20_000)
		full := int(c.Stats().Entries)
		c.Resize(1 << 20)
		require.NoError(t, c.Walk())
		require.InDelta(t, full/4, int(c.Stats().Entries), float64(full)/20)
		require.EqualValues(t, 1<<20, c.Stats().KeyBytes+c.Stats().ValueBytes+c.Stats().Index+c.Stats().Padding)
		bytes, err := c.Trim()
		require.NoError(t, err)
		if bytes != 0 || !arena_c.Checked && !arena_c.Asan && !platform.GoBacked {
			require.InDelta(t, 3<<20, bytes, 200<<10)
		}
		set(20_000, 30_000)
		require.NoError(t, c.Walk())
		require.InDelta(t, full/4, int(c.Stats().Entries), float64(full)/20)
		c.Resize(4 << 20)
		set(30_000, 50_000)
		require.NoError(t, c.Walk())
		require.InDelta(t, full, int(c.Stats().Entries), float64(full)/50)
		requirePanic(t, "Resize of a cache.Bytes to 4194305 bytes: from ", func() { c.Resize(4<<20 + 1) })
		requirePanic(t, "Resize of a cache.Bytes to 400000 bytes", func() { c.Resize(400_000) })
	})
}

// getOrSet gets random keys, and sets those that c doesn't have.
func getOrSet(t testing.TB, c *cache.Bytes, r *rand.Rand, count int) {
	for range count {
		key := fmt.Appendf(nil, "%d", r.IntN(800))
		if _, ok := c.Get(nil, key); !ok {
			require.NoError(t, c.Set(key, valueOf(key, 0, r.IntN(90))))
		}
	}
}

// TestBytesInAState: snapshots hold the cache, equal programs have equal hashes, and no forged word
// is taken from outside.
func TestBytesInAState(t *testing.T) {
	begin := func() (c *cache.Bytes, ring *save.Ring) {
		b := budgettest.Open(t,
			budget.Plan{Name: "test",
				Regions: []budget.RegionPlan{{Name: "level", Size: 512 * budget.KiB, State: true}}})
		r := b.Region("level")
		_, err := budget.Load(background, r, func(s scope.Scope) (*world, error) {
			state, w := save.Begin(r, s, worlds)
			c = cache.NewBytes(s, 32<<10, cache.Options{Shards: 2, Entry: 60})
			ring = save.NewRing(s, 4, state)
			return w, nil
		})
		require.NoError(t, err)
		return c, ring
	}
	play := func(c *cache.Bytes, seed uint64) { getOrSet(t, c, rand.New(rand.NewPCG(seed, 1)), 200) }
	c, ring := begin()
	other, otherRing := begin()
	for _, c := range []*cache.Bytes{c, other} {
		play(c, 1)
	}
	require.NoError(t, ring.Take(1))
	play(c, 7) // and back
	require.NoError(t, ring.Restore(background, 1))
	require.NoError(t, c.Walk())
	for _, c := range []*cache.Bytes{c, other} {
		play(c, 2)
	}
	require.NoError(t, ring.Take(2))
	require.NoError(t, otherRing.Take(2))
	hash, err := ring.Hash(2)
	require.NoError(t, err)
	otherHash, err := otherRing.Hash(2)
	require.NoError(t, err)
	require.Equal(t, otherHash, hash)

	raw, refused, taken := other.Raw(), 0, 0
	r, rounds := rand.New(rand.NewPCG(5, 5)), step.Pick(300, 1000, 20_000)
	for range rounds {
		image := slices.Clone(raw)
		require.NoError(t, other.LookAt(image, 60))
		at := r.IntN(len(raw)) &^ 7
		if r.IntN(3) != 0 {
			at = r.IntN(len(raw)/2/8) &^ 7 // words and index of the first shard
		}
		binary.LittleEndian.PutUint64(image[at:],
			[...]uint64{0, 1, ^uint64(0), r.Uint64(), binary.LittleEndian.Uint64(image[at:]) + 8}[r.IntN(5)])
		if other.LookAt(image, 60) != nil {
			refused++
			continue
		}
		taken++
		copy(raw, image)
		play(other, r.Uint64()) // no word makes it panic
		require.NoError(t, other.Walk())
	}
	require.Greater(t, refused, rounds/20)
	require.Greater(t, taken, rounds/10)
}

// TestFits: an entry fits that fills the bytes behind the head, before the tail or between both.
func TestFits(t *testing.T) {
	for _, q := range []struct{ head, tail, most int64 }{{32, 8, 32}, {56, 16, 16}, {16, 56, 40}} {
		assert.True(t, cache.Fits(64, q.head, q.tail, q.most))
		assert.False(t, cache.Fits(64, q.head, q.tail, q.most+1))
	}
}
