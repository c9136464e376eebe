package scope_test

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// mapModel is a map of the language, and the order of its keys.
type mapModel struct {
	values map[int32]point
	order  []int32
}

func (m *mapModel) set(k int32, v point) {
	if _, ok := m.values[k]; !ok {
		m.order = append(m.order, k)
	}
	m.values[k] = v
}

func (m *mapModel) remove(k int32) {
	i, last := slices.Index(m.order, k), len(m.order)-1
	m.order[i] = m.order[last]
	m.order = m.order[:last]
	delete(m.values, k)
}

// TestMapIsAMap plays at random with a map and with one of the language. The sizes at which the index is as full as it
// gets, 3/4, are the ones that hunt. The seeds of the hashes are others in each run; the order never is.
func TestMapIsAMap(t *testing.T) {
	pad := open(t).Pad(0, 0)
	for _, n := range []int{0, 1, 2, 3, 5, 6, 12, 24, 48, 96} {
		for seed := range int64(12) {
			random := rand.New(rand.NewSource(seed))
			s := pad.Open("a")
			m, model := scope.NewMap(s, ids, points, n), mapModel{values: map[int32]point{}}
			for step := range 400 {
				k, v := int32(random.Intn(2*n+1)), point{int32(step), random.Int31()}
				old, known := model.values[k]
				switch op := random.Intn(100); {
				case op < 55:
					fits := known || len(model.order) < n
					require.Equal(t, fits, m.Set(k, v))
					if fits {
						model.set(k, v)
					}
				case op < 85:
					require.Equal(t, known, m.Delete(k))
					if known {
						model.remove(k)
					}
				case op < 99:
					got := m.Get(k)
					require.Equal(t, known, got != nil)
					if known {
						require.Equal(t, old, *got)
						got.X++
						model.set(k, *got)
					}
				default:
					m.Clear()
					model = mapModel{values: map[int32]point{}}
				}
				same(t, &m, &model)
			}
			require.NoError(t, s.Close())
		}
	}
}

func same(t *testing.T, m *scope.Map[int32, point], model *mapModel) {
	t.Helper()
	order := make([]int32, 0, len(model.order))
	for k, v := range m.All() {
		order = append(order, k)
		if *v != model.values[k] || v != m.Get(k) {
			t.Fatalf("%d has the value %v at %p, found at %p, want %v", k, *v, v, m.Get(k), model.values[k])
		}
	}
	if !slices.Equal(order, model.order) || m.Len() != len(order) {
		t.Fatalf("%d in the order %v, want %v", m.Len(), order, model.order)
	}
}

func TestMapOrderDoesNotDependOnTheHash(t *testing.T) {
	pad := open(t).Pad(0, 0)
	orders := map[string]bool{}
	for range 50 { // each with a seed of its own
		s := pad.Open("a")
		m := scope.NewMap(s, ids, ids, 96)
		for k := range int32(96) {
			m.Set(k*k, k)
		}
		for k := range int32(32) {
			m.Delete(9 * k * k)
		}
		order := ""
		for k := range m.All() {
			order += string(rune(k + 1))
		}
		orders[order] = true
		require.NoError(t, s.Close())
	}
	assert.Len(t, orders, 1)
}

func TestMapDeleteWhileRanging(t *testing.T) {
	s := open(t).Pad(0, 0).Open("a")
	m := scope.NewMap(s, ids, ids, 10)
	for k := range int32(10) {
		m.Set(k, k)
	}
	seen := []int32{}
	for k := range m.All() {
		if seen = append(seen, k); k%2 == 0 {
			m.Delete(k)
		}
	}
	assert.Equal(t, []int32{0, 9, 1, 2, 8, 7, 3, 4, 6, 5}, seen, "each once: what took the place comes next")
	left := []int32{}
	for k := range m.All() {
		if left = append(left, k); len(left) == 4 {
			break
		}
	}
	assert.Equal(t, []int32{9, 1, 7, 3}, left)
	for k := range m.All() {
		if m.Set(k+10, 0); k == 15 { // the last that had room
			m.Clear()
		}
	}
	assert.Zero(t, m.Len(), "what Set adds comes along")
	m.Set(1, 1)
	for range m.All() {
		require.NoError(t, s.Close())
	}
	assert.Nil(t, m.Get(1))
	assert.False(t, m.Delete(1))
}

// TestMapKeys: keys are equal when == says so, whatever their bytes are.
func TestMapKeys(t *testing.T) {
	s := open(t).Pad(0, 0).Open("a")
	numbers := scope.Plain[float64]()
	m := scope.NewMap(s, numbers, ids, 4)
	zero := 0.0
	assert.True(t, m.Set(zero, 1))
	assert.True(t, m.Set(-zero, 2))
	assert.True(t, m.Set(math.Copysign(0, -1), 3))
	assert.Equal(t, 1, m.Len())
	assert.Equal(t, int32(3), *m.Get(0))
	assert.PanicsWithError(t, "scope: BUG: Set in a Map: a float64 that differs from itself", func() { m.Set(math.NaN(), 1) })
	assert.Nil(t, m.Get(math.NaN()))
	assert.False(t, m.Delete(math.NaN()))

	type place struct {
		Kind uint8
		_    int16
		At   float32
		Name [3]uint16
	}
	places := scope.NewMap(s, scope.Plain[place](), ids, 100)
	for i := range int32(100) {
		assert.True(t, places.Set(place{Kind: uint8(i), At: float32(i), Name: [3]uint16{2: uint16(i)}}, i))
	}
	for i := range int32(100) {
		assert.Equal(t, i, *places.Get(place{Kind: uint8(i), At: float32(i), Name: [3]uint16{2: uint16(i)}}))
		assert.Nil(t, places.Get(place{Kind: uint8(i) + 1, At: float32(i), Name: [3]uint16{2: uint16(i)}}))
	}
	names := scope.NewMap(s, scope.Plain[[1]byte](), scope.Plain[byte](), 200) // no alignment but the index's
	for i := range 200 {
		assert.True(t, names.Set([1]byte{byte(i)}, byte(i)))
	}
	assert.Equal(t, byte(77), *names.Get([1]byte{77}))
	assert.Nil(t, names.Get([1]byte{200}))
	wide := scope.NewMap(s, ids, scope.Plain[[1000]byte](), 3)
	for k := range int32(4) {
		assert.Equal(t, k < 3, wide.Set(k, [1000]byte{999: byte(k)}))
	}
	assert.Equal(t, byte(2), wide.Get(2)[999])
	require.NoError(t, s.Close())
}

// TestMapKeysOfEqualHashes: of so many keys, ten pairs have the same 32 bits, more or less.
func TestMapKeysOfEqualHashes(t *testing.T) {
	pad := budgettest.Open(t, budget.Plan{Name: "large", Regions: []budget.Region{{Name: "level", Size: budget.MiB}},
		Pads: budget.Pads{Workers: 1, Size: 8 * budget.MiB}}).Pad(0, 0)
	s := pad.Open("a")
	const n = 300_000
	m := scope.NewMap(s, ids, ids, n)
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

func TestMapKeysStayOffTheGoHeap(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate")
	}
	s := open(t).Pad(0, 0).Open("a")
	staysOff(t, s, func(i int) int32 { return int32(i) })
	staysOff(t, s, func(i int) uint64 { return uint64(i) << 40 })
	staysOff(t, s, func(i int) float64 { return float64(i) })
	staysOff(t, s, func(i int) [16]byte { return [16]byte{3: byte(i)} })
	staysOff(t, s, func(i int) [300]int64 { return [300]int64{200: int64(i)} })
	staysOff(t, s, func(i int) point { return point{int32(i), 1} })
	staysOff(t, s, func(i int) mixed { return mixed{Kind: uint8(i), Names: [2]point{1: {X: 1}}} })
	assert.Zero(t, testing.AllocsPerRun(100, func() { scope.NewMap(s, ids, points, 10) }))
	require.NoError(t, s.Close())
}

type mixed struct {
	Kind  uint8
	At    complex64
	Names [2]point
}

// staysOff plays with a map of 4 without a Go allocation.
func staysOff[K comparable](t *testing.T, s scope.Scope, key func(int) K) {
	t.Helper()
	m := scope.NewMap(s, scope.Plain[K](), ids, 4)
	sum := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range 6 {
			if m.Set(key(i), int32(i)) {
				sum += int(*m.Get(key(i)))
			}
		}
		for k, v := range m.All() {
			if *v++; *v == 3 {
				m.Delete(k)
			}
		}
		m.Delete(key(0))
		m.Clear()
	}), "%T", key(0))
	assert.NotZero(t, sum)
}
