package container_test

import (
	"errors"
	"iter"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// mapModel is a Go map with the order of its keys.
type mapModel[K comparable] struct {
	values map[K]point
	places []K
	free   []int // places without a key, the last freed one last
}

func (m *mapModel[K]) set(k K, v point) {
	if _, ok := m.values[k]; !ok {
		if last := len(m.free) - 1; last >= 0 {
			m.places[m.free[last]] = k
			m.free = m.free[:last]
		} else {
			m.places = append(m.places, k)
		}
	}
	m.values[k] = v
}

func (m *mapModel[K]) remove(k K) {
	for i, other := range m.places {
		if other == k && !slices.Contains(m.free, i) {
			m.free = append(m.free, i)
		}
	}
	delete(m.values, k)
}

func (m *mapModel[K]) order() (order []K) {
	for i, k := range m.places {
		if !slices.Contains(m.free, i) {
			order = append(order, k)
		}
	}
	return order
}

// aMap is the common interface of Map and StringMap.
type aMap[K comparable] struct {
	set    func(K, point) bool
	get    func(K) *point
	remove func(K) bool
	clear  func()
	all    func(func(K, *point) bool)
}

// isAMap compares random operations on a map and a Go map. Some sizes make the index as full as
// possible, 3/4. The seeds of the hashes differ in each run, but never the order.
func isAMap[K comparable](t *testing.T, make func(s scope.Scope, n int) aMap[K], key func(i int) K) {
	scratch := open(t).Scratch(0, 0)
	for _, n := range []int{0, 1, 2, 3, 5, 6, 12, 24, 48, 96} {
		for seed := range int64(12) {
			random := rand.New(rand.NewSource(seed))
			s := scratch.Open("a")
			m, model := make(s, n), mapModel[K]{values: map[K]point{}}
			for step := range 400 {
				k, v := key(random.Intn(2*n+1)), point{int32(step), random.Int31()}
				old, known := model.values[k]
				switch op := random.Intn(100); {
				case op < 55:
					fits := known || len(model.values) < n
					require.Equal(t, fits, m.set(k, v))
					if fits {
						model.set(k, v)
					}
				case op < 85:
					require.Equal(t, known, m.remove(k))
					if known {
						model.remove(k)
					}
				case op < 99:
					got := m.get(k)
					require.Equal(t, known, got != nil)
					if known {
						require.Equal(t, old, *got)
						got.X++
						model.set(k, *got)
					}
				default:
					m.clear()
					model = mapModel[K]{values: map[K]point{}}
				}
				same(t, &m, &model)
			}
			require.NoError(t, s.Close())
		}
	}
}

func same[K comparable](t *testing.T, m *aMap[K], model *mapModel[K]) {
	t.Helper()
	order := make([]K, 0, len(model.values))
	for k, v := range m.all {
		order = append(order, k)
		if *v != model.values[k] || v != m.get(k) {
			t.Fatalf("%v has the value %v at %p, found at %p, want %v", k, *v, v, m.get(k), model.values[k])
		}
	}
	if want := model.order(); !slices.Equal(order, want) {
		t.Fatalf("the order is %v, want %v", order, want)
	}
}

func TestMapIsAMap(t *testing.T) {
	isAMap(t, func(s scope.Scope, n int) aMap[int32] {
		m := container.NewMap(s, ids, points, n)
		return aMap[int32]{m.Set, m.Get, m.Delete, m.Clear, m.All()}
	}, func(i int) int32 { return int32(i) })
}

// TestStringMapIsAMap has keys of all lengths, empty and of zeros too, as strings or as bytes in
// one buffer that it overwrites.
func TestStringMapIsAMap(t *testing.T) {
	key := func(i int) string {
		return strings.Repeat("\x00", i%5) + strings.Repeat("frog", i/5%3) + string(rune(i/15))
	}
	isAMap(t, stringMap, key)
}

func stringMap(s scope.Scope, n int) aMap[string] {
	m, step := container.NewStringMap(s, points, n, 16), 0
	var buffer [16]byte
	packet := func(k string, use func(key []byte)) bool {
		if step++; step%5 < 2 {
			return false
		}
		use(buffer[:copy(buffer[:], k)])
		for i := range buffer {
			buffer[i] = byte(step)
		}
		return true
	}
	set := func(k string, v point) bool {
		var err error
		if !packet(k, func(key []byte) { err = m.SetBytes(key, v) }) {
			err = m.Set(k, v)
		}
		if err != nil && !errors.Is(err, scope.ErrFull) {
			panic(err)
		}
		return err == nil
	}
	get := func(k string) (v *point) {
		if !packet(k, func(key []byte) { v = m.GetBytes(key) }) {
			v = m.Get(k)
		}
		return v
	}
	remove := func(k string) (there bool) {
		if !packet(k, func(key []byte) { there = m.DeleteBytes(key) }) {
			there = m.Delete(k)
		}
		return there
	}
	all := func(yield func(string, *point) bool) {
		for k, v := range m.All() {
			if !yield(strings.Clone(k), v) {
				return
			}
		}
	}
	return aMap[string]{set, get, remove, m.Clear, all}
}

func letters[V any](all func(func(string, V) bool)) (order string) {
	all(func(k string, _ V) bool { order += k; return true })
	return order
}

func TestMapWhileRanging(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	m, byID := container.NewStringMap(s, ids, 10, 1), container.NewMap(s, ids, ids, 10)
	for i, k := range "abcdefghij" {
		require.NoError(t, m.Set(string(k), int32(i)))
		byID.Set(k, int32(i))
	}
	seen, seenByID := "", ""
	for k, v := range m.All() {
		if seen += strings.Clone(k); *v%2 == 0 { // "" + k would be the view itself
			m.Delete(k)
		}
	}
	for k, v := range byID.All() {
		if seenByID += string(k); *v%2 == 0 {
			byID.Delete(k)
		}
	}
	assert.Equal(t, "abcdefghij", seen)
	assert.Equal(t, seen, seenByID)
	assert.Equal(t, "bdfhj", letters(m.All()))
	for k := range m.All() {
		if k == "h" {
			break
		}
		assert.ErrorIs(t, m.Set("too long", 0), container.ErrLongKey)
		_ = m.Set(strings.ToUpper(k), 0)
	}
	assert.Equal(t, "bdFfDhBj", letters(m.All()), "in the places that were freed, the last one first")
	m.Clear()
	for _, k := range "xyz" {
		require.NoError(t, m.Set(string(k), 0))
	}
	assert.Equal(t, "xyz", letters(m.All()), "in the order of insertion again")
	for range m.All() {
		require.NoError(t, s.Close())
	}
	assert.Nil(t, m.Get("y"))
	assert.False(t, m.Delete("y"))
	assert.False(t, byID.Delete('b'))
}

// TestMapsAreRangedAsGoDoes: a loop ends, and shows each key that stays once, for any set and
// delete of its body, in maps of one key and of many.
func TestMapsAreRangedAsGoDoes(t *testing.T) {
	type maps struct {
		all    iter.Seq2[int32, *int32]
		set    func(k int32)
		remove func(k int32)
	}
	const n = 6
	number := func(k string) int32 { return int32(k[0]) - 'a' }
	name := func(k int32) string { return string('a' + k) }
	for what, body := range map[string]func(m maps, k int32){
		"delete and set the current key": func(m maps, k int32) { m.remove(k); m.set(k) },
		"delete it, and set another":     func(m maps, k int32) { m.remove(k); m.set(k + n) },
		"delete an earlier one":          func(m maps, k int32) { m.remove(k - 1) },
		"and set it":                     func(m maps, k int32) { m.remove(k - 1); m.set(k - 1) },
		"delete a later one":             func(m maps, k int32) { m.remove(k + 1) },
		"and set it again":               func(m maps, k int32) { m.remove(k + 1); m.set(k + 1) },
		"both": func(m maps, k int32) {
			m.remove(k - 1)
			m.remove(k)
			m.set(k)
			m.set(k - 1)
		},
		"all": func(m maps, k int32) { remake(m.remove, n); remake(m.set, n) },
	} {
		for keys := int32(1); keys <= n; keys++ {
			s := open(t).Scratch(0, 0).Open("a")
			byID, byName := container.NewMap(s, ids, ids, n), container.NewStringMap(s, ids, n, 1)
			for _, m := range []maps{
				{byID.All(), func(k int32) { byID.Set(k, k) }, func(k int32) { byID.Delete(k) }},
				{func(yield func(int32, *int32) bool) {
					byName.All()(func(k string, v *int32) bool { return yield(number(k), v) })
				}, func(k int32) { _ = byName.Set(name(k), k) }, func(k int32) { byName.Delete(name(k)) }},
			} {
				for k := range keys {
					m.set(k)
				}
				touched := map[int32]bool{} // deleted at some time
				remove := m.remove
				m.remove = func(k int32) { touched[k] = true; remove(k) }
				shown, steps := map[int32]int{}, 0
				for k, v := range m.all {
					require.Equal(t, k, *v, what)
					shown[k]++
					steps++
					require.LessOrEqual(t, steps, n, what)
					body(m, k)
				}
				for k := range keys {
					require.True(t, shown[k] == 1 || touched[k], "%s: %d of %d was shown %d times",
						what, k, keys, shown[k])
				}
			}
			require.NoError(t, s.Close())
		}
	}
}

func remake(each func(int32), n int32) {
	for k := range n {
		each(k)
	}
}

func TestMapKeys(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	m := container.NewMap(s, scope.Plain[float64](), ids, 4)
	assert.True(t, m.Set(0, 1))
	assert.True(t, m.Set(math.Copysign(0, -1), 3))
	assert.Equal(t, 1, m.Len())
	assert.Equal(t, int32(3), *m.Get(0))
	assert.PanicsWithError(t, "scope: BUG: Set in a Map: a float64 that isn't equal to itself", func() {
		m.Set(math.NaN(), 1)
	})
	assert.Nil(t, m.Get(math.NaN()))
	assert.False(t, m.Delete(math.NaN()))

	type place struct {
		Kind uint8
		_    int16
		At   float32
		Name [3]uint16
	}
	at := func(i int32, kind uint8) place {
		return place{Kind: kind, At: float32(i), Name: [3]uint16{2: uint16(i)}}
	}
	places := container.NewMap(s, scope.Plain[place](), ids, 100)
	for i := range int32(100) {
		assert.True(t, places.Set(at(i, uint8(i)), i))
	}
	for i := range int32(100) {
		assert.Equal(t, i, *places.Get(at(i, uint8(i))))
		assert.Nil(t, places.Get(at(i, uint8(i)+1)))
	}
	odd := container.NewMap(s, scope.Plain[[3]byte](), scope.Plain[[1000]byte](), 3)
	for k := range byte(4) {
		assert.Equal(t, k < 3, odd.Set([3]byte{2: k}, [1000]byte{999: k}))
	}
	assert.Equal(t, byte(2), odd.Get([3]byte{2: 2})[999])
	require.NoError(t, s.Close())
}

type (
	named  struct{ Name arena.String }
	inside struct {
		ID    int64
		Names [2]struct{ Deep named }
	}
	renamed arena.String
)

// TestMapKeysThatCompareByOffset: such keys are refused at any depth, because two keys of the same
// text would differ.
func TestMapKeysThatCompareByOffset(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	refused := func(make func(), name string) {
		assert.PanicsWithError(t, "scope: BUG: a Map of keys "+name+": an arena.String or arena.Slice compares by "+
			"offset; use a StringMap, or an array of bytes", make)
	}
	refused(func() { keyed[arena.String](s) }, "arena.String")
	refused(func() { keyed[arena.Slice[uint16]](s) }, "arena.Slice[uint16]")
	refused(func() { keyed[named](s) }, "container_test.named")
	refused(func() { keyed[renamed](s) }, "container_test.renamed")
	refused(func() { keyed[inside](s) }, "container_test.inside")
	refused(func() { keyed[[3]named](s) }, "[3]container_test.named")
	refused(func() { keyed[struct{ Deep [1][1]inside }](s) }, "struct { Deep [1][1]container_test.inside }")
	assert.NotPanics(t, func() {
		keyed[arena.Ptr[point]](s) // a pointer compares by identity, not by contents
		keyed[struct{ A, B [2]point }](s)
	})
	require.NoError(t, s.Close())
}

func keyed[K comparable](s scope.Scope) { container.NewMap(s, scope.Plain[K](), ids, 1) }

// TestMapKeysOfEqualHashes: among so many keys about ten pairs have the same 32 bits.
func TestMapKeysOfEqualHashes(t *testing.T) {
	s := budgettest.Open(t, budget.Plan{Name: "large", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 9 * budget.MiB}}).Scratch(0, 0).Open("a")
	const n = 300_000
	m := container.NewMap(s, ids, ids, n)
	for k := range int32(n) {
		m.Set(k, -k)
	}
	require.Equal(t, n, m.Len())
	for k := range int32(n) {
		if v := m.Get(k); v == nil || *v != -k {
			t.Fatalf("%d has the value at %p", k, v)
		}
	}
	require.NoError(t, s.Close())
}

func TestStringMapCopiesItsKeys(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	m := container.NewStringMap(s, ids, 2, 4)
	key := []byte("frog")
	view := string(key)
	require.NoError(t, m.Set(view, 1))
	key[0] = 'F'
	assert.Equal(t, int32(1), *m.Get("frog"))
	long := m.Set("toads", 2)
	assert.ErrorIs(t, long, container.ErrLongKey, "not full")
	assert.EqualError(t, long, `budget "test": scratch 0.0: scope "a": a StringMap has keys of at most 4 bytes; `+
		`make it with a larger k, or refuse the key: container: the key is too long`)
	assert.Equal(t, []any{false, (*int32)(nil), 1}, []any{m.Delete("toads"), m.Get("toads"), m.Len()})
	require.NoError(t, m.Set("", 3))
	assert.EqualError(t, m.Set("toad", 2), `budget "test": scratch 0.0: scope "a": a StringMap has 2 of 2 keys; `+
		`make it with an n of 3 or more`)
	var full *scope.FullError
	require.ErrorAs(t, m.Set("toad", 2), &full)
	assert.Equal(t, []any{"a", uint64(2), uint64(3)}, []any{full.Scope, full.Size, full.Need})
	assert.Same(t, long, m.Set("toads", 2), "also when it is full, without another allocation")
	require.NoError(t, m.Set("frog", 4), "a key that is known")
	assert.Equal(t, int32(4), *m.Get("frog"))
	require.NoError(t, s.Close())
	assert.PanicsWithError(t, "scope: BUG: Set in a StringMap in a closed scope of scratch 0.0",
		func() { _ = m.Set("toads", 1) })
}

// TestStringMapOfBytes: a key of bytes equals the key of that text, also in errors, and the map
// keeps no reference to the bytes.
func TestStringMapOfBytes(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	m := container.NewStringMap(s, ids, 2, 4)
	packet := []byte("frogtoad!")
	require.NoError(t, m.SetBytes(packet[:4], 1))
	require.NoError(t, m.SetBytes(packet[4:8], 2))
	assert.ErrorIs(t, m.SetBytes(packet, 3), container.ErrLongKey)
	assert.ErrorIs(t, m.SetBytes(packet[8:], 3), scope.ErrFull)
	copy(packet, "ToadFrog?")
	assert.Equal(t, "frogtoad", letters(m.All()))
	for _, key := range []string{"frog", "toad", "Toad", "fro", "frogs", ""} {
		assert.Equal(t, m.Get(key), m.GetBytes([]byte(key)), key)
	}
	assert.Same(t, m.Get("toad"), m.GetBytes([]byte("toad")))
	assert.Nil(t, m.GetBytes(nil))
	assert.False(t, m.DeleteBytes(packet[:4]) || m.DeleteBytes(packet) || m.DeleteBytes(nil))
	assert.True(t, m.DeleteBytes([]byte("frog")))
	require.NoError(t, m.SetBytes(nil, 4), "a key of no bytes")
	assert.Equal(t, int32(4), *m.Get(""))
	require.NoError(t, s.Close())
	assert.Equal(t, []any{(*int32)(nil), false}, []any{m.GetBytes([]byte("toad")), m.DeleteBytes([]byte("toad"))})
	assert.PanicsWithError(t, "scope: BUG: Set in a StringMap in a closed scope of scratch 0.0",
		func() { _ = m.SetBytes([]byte("toad"), 1) })
	var zero container.StringMap[int32]
	for _, use := range []func(){
		func() { _ = zero.SetBytes(nil, 1) }, func() { zero.GetBytes(nil) }, func() { zero.DeleteBytes(nil) },
	} {
		assert.Panics(t, use)
	}
}

// TestMapValuesStay: the pointer, Ref and Addr of a value stay valid until its key is deleted, in
// spite of other deletions.
func TestMapValuesStay(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	const n = 24
	byID, byName := container.NewMap(s, ids, points, n), container.NewStringMap(s, points, n, 1)
	name := func(i int32) string { return string('a' + i) }
	type held struct {
		at  *point
		ref scope.Ref[point]
	}
	inID, inName := map[int32]held{}, map[int32]held{}
	random := rand.New(rand.NewSource(1))
	for range 4000 {
		i := int32(random.Intn(n))
		if _, known := inID[i]; known {
			require.True(t, byID.Delete(i) && byName.Delete(name(i)))
			delete(inID, i)
			delete(inName, i)
		} else {
			require.True(t, byID.Set(i, point{i, -i}))
			require.NoError(t, byName.Set(name(i), point{i, -i}))
			inID[i] = held{byID.Get(i), scope.RefTo(s, byID.Get(i))}
			inName[i] = held{byName.Get(name(i)), scope.RefTo(s, byName.Get(name(i)))}
		}
		for k, h := range inID {
			require.Same(t, h.at, byID.Get(k))
			require.Equal(t, point{k, -k}, *h.ref.Get())
		}
		for k, h := range inName {
			require.Same(t, h.at, byName.Get(name(k)))
			require.Equal(t, point{k, -k}, *h.ref.Get())
		}
	}
	require.NoError(t, s.Close())
}
