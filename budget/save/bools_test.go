package save_test

import (
	"bytes"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

type (
	lock struct {
		Number uint32
		Shut   bool
		Set    [2]bool
		_      bool
	}
	// house has bools at each depth, and links; shed has neither.
	house struct {
		Tick  uint64
		Lit   bool
		_     bool
		Rooms [3][5]bool
		_     [7]byte
		Doors [2]lock
		Gate  arena.Ptr[lock]
		Lane  arena.Slice[lock]
		Seen  arena.Slice[bool]
		Text  arena.String
	}
	shed struct {
		Tick uint64
		Open bool
		_    [7]byte
	}
)

var (
	houseMaker = scope.Plain[house]()
	shedMaker  = scope.Plain[shed]()
	lockMaker  = scope.Plain[lock]()
	boolMaker  = scope.Plain[bool]()
)

// made is a state of houses, with bools in all kinds of places.
type made struct {
	region budget.Region
	ring   *save.Ring
	house  *house
	gate   *lock
	lane   []lock
	seen   []bool
	pool   scope.Pool[lock]
	flags  scope.Pool[bool]
	kept   []lock // only Go code keeps it
}

func newMade(t testing.TB) *made {
	b := open(t, twoRegions())
	m := &made{region: b.Region("level")}
	base := m.region.Base()
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		var state *save.State
		state, m.house = save.Begin(m.region, s, houseMaker)
		m.gate, m.lane = lockMaker.New(s), lockMaker.Slice(s, 3)
		m.seen = boolMaker.Slice(s, 21)
		m.pool, m.flags = lockMaker.Pool(s, 3), boolMaker.Pool(s, 3)
		m.kept = lockMaker.Slice(s, 2)
		save.Values(state, m.kept)
		m.house.Gate = arena.PtrTo(base, m.gate)
		m.house.Lane, m.house.Seen = arena.SliceOf(base, m.lane), arena.SliceOf(base, m.seen)
		m.ring = save.NewRing(s, 3, state)
	})
	m.pool.Get()
	*m.flags.Get() = true
	m.flags.Get()
	for i := range m.seen {
		m.seen[i] = i%2 == 0
	}
	require.NoError(t, m.ring.Take(1))
	return m
}

// TestBools: a bool other than 0 and 1 is refused by name, in a delta and in a file, and nothing
// changes. Compiled Go would index beyond an array with it.
func TestBools(t *testing.T) {
	m := newMade(t)
	for _, at := range []struct {
		at   *bool
		says string
	}{
		{&m.house.Lit, "save_test.house.Lit is the bool 200: a bool is 0 or 1"},
		{&m.house.Rooms[0][0], "save_test.house.Rooms[0][0] is the bool"},
		{&m.house.Rooms[1][4], "save_test.house.Rooms[1][4] is the bool"},
		{&m.house.Rooms[2][4], "save_test.house.Rooms[2][4] is the bool"},
		{&m.house.Doors[1].Shut, "save_test.house.Doors[1].Shut is the bool"},
		{&m.house.Doors[1].Set[1], "save_test.house.Doors[1].Set[1] is the bool"},
		{&m.gate.Shut, "save_test.lock.Shut is the bool"},
		{&m.lane[0].Shut, "save_test.lock.Shut is the bool"},
		{&m.lane[2].Set[1], "save_test.lock.Set[1] is the bool"},
		{&m.seen[0], "bool is the bool"},
		{&m.seen[20], "bool is the bool"},
		{&m.pool.At(0).Set[0], "save_test.lock.Set[0] is the bool"},
		{m.flags.At(1), "bool is the bool"},
		{&m.kept[1].Shut, "save_test.lock.Shut is the bool"},
	} {
		refusesBool(t, m.ring, at.at, at.says)
	}
}

// refusesBool sends snapshots in which the bool is 200, 2 and 255.
func refusesBool(t *testing.T, r *save.Ring, at *bool, says string) {
	t.Helper()
	was := *at
	for _, value := range []byte{200, 2, 255} {
		*(*byte)(unsafe.Pointer(at)) = value
		require.NoError(t, r.Take(2))
		*at = was
		delta, err := r.Delta(nil, 1, 2)
		require.NoError(t, err)
		var file bytes.Buffer
		require.NoError(t, r.Write(&file, 2))
		require.NoError(t, r.Take(2))
		before := save.Image(r, 2)
		_, err = r.Apply(delta)
		require.ErrorContains(t, err, "region level, offset 0x")
		if value == 200 {
			require.ErrorContains(t, err, says)
		}
		_, err = r.Read(&file)
		require.ErrorContains(t, err, " is the bool ")
		require.Equal(t, before, save.Image(r, 2))
	}
}

// TestBoolsAlone: bools are also checked in a state without links.
func TestBoolsAlone(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	var root *shed
	var flags scope.HandlePool[shed]
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		var state *save.State
		state, root = save.Begin(r, s, shedMaker)
		flags = shedMaker.HandlePool(s, 2)
		flyMaker.Pool(s, 2)
		ring = save.NewRing(s, 3, state)
	})
	x, _ := flags.Get()
	require.NoError(t, ring.Take(1))
	refusesBool(t, ring, &root.Open, "save_test.shed.Open is the bool 200")
	refusesBool(t, ring, &x.Open, "save_test.shed.Open is the bool 200")
}

// TestBlankBools: a blank bool may have any value, since no code reads it.
func TestBlankBools(t *testing.T) {
	m := newMade(t)
	for _, lit := range []unsafe.Pointer{unsafe.Add(unsafe.Pointer(&m.house.Lit), 1),
		unsafe.Add(unsafe.Pointer(&m.gate.Set), 2)} {
		*(*byte)(lit) = 200
		require.NoError(t, m.ring.Take(2))
		delta, err := m.ring.Delta(nil, 1, 2)
		require.NoError(t, err)
		_, err = m.ring.Apply(delta)
		require.NoError(t, err)
	}
}

// TestUnseenBools: a checked build names an allocation with a bool that a release can't check.
func TestUnseenBools(t *testing.T) {
	type crate struct{ Locks [2]lock }
	b := open(t, twoRegions())
	for _, test := range []struct {
		makes func(*save.State, scope.Scope)
		says  string
	}{
		{func(_ *save.State, s scope.Scope) { boolMaker.Slice(s, 5) }, "has a bool with bools or links"},
		{func(_ *save.State, s scope.Scope) { scope.Plain[[2]crate]().New(s) }, "has a [2]save_test.crate"},
		{func(_ *save.State, s scope.Scope) { scope.Plain[arena.Ptr[fly]]().New(s) }, "has a arena.Ptr"},
		{func(_ *save.State, s scope.Scope) { scope.Plain[[2]lock]().New(s) }, ""},
		{func(_ *save.State, s scope.Scope) { lampMaker.Slice(s, 2) }, ""},
		{func(st *save.State, s scope.Scope) { save.Values(st, boolMaker.Slice(s, 5)) }, ""},
	} {
		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			state, _ := save.Begin(r, s, scope.Plain[struct{ All arena.Slice[lock] }]())
			test.makes(state, s)
			if test.says == "" || !arena_c.Checked {
				save.NewRing(s, 1, state)
				return
			}
			defer func() {
				err, _ := recover().(error)
				require.ErrorContains(t, err, test.says)
				require.ErrorContains(t, err, "call save.Values\n\t")
				require.ErrorContains(t, err, "bools_test.go:")
			}()
			save.NewRing(s, 1, state)
		})
	}
}

// TestTenantsValues: a tenant's Go values are checked like the root.
func TestTenantsValues(t *testing.T) {
	type root struct {
		Lane arena.Slice[lock]
		Word arena.Slice[uint64]
	}
	b := open(t, twoRegions())
	r := b.Region("level")
	var ring *save.Ring
	var at *root
	// They are a tenant's bytes. Links may lead to block[4:8] and to block[8:].
	var block, own []uint64
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		var state *save.State
		state, at = save.Begin(r, s, scope.Plain[root]())
		words := scope.Plain[uint64]()
		block, own = words.Slice(s, 12), words.Slice(s, 12)
		offset := storedOf(r, &block[0]) - storedOf(r, at)
		state.AddTenant(save.Tenant{At: offset, Size: 96,
			Live: func(image []byte, from, to uint64) bool {
				return image[0] == 1 && (from >= 32 && to <= 64 || from >= 64)
			}})
		state.AddTenant(save.Tenant{At: offset + 96, Size: 96, Values: []save.TenantValues{
			{At: offset + 96 + 8, Count: 3, Stride: 16, Of: reflect.TypeFor[lock]()}}})
		ring = save.NewRing(s, 3, state)
	})
	require.Equal(t, storedOf(r, &block[0])+96, storedOf(r, &own[0]))
	block[0] = 1
	require.NoError(t, ring.Take(1))
	refusesBool(t, ring, (*bool)(unsafe.Add(unsafe.Pointer(&own[1]), 32+4)),
		"save_test.lock.Shut is the bool")
	holds := func(lane []lock, word []uint64) error {
		at.Lane, at.Word = arena.SliceOf(r.Base(), lane), arena.SliceOf(r.Base(), word)
		require.NoError(t, ring.Take(1))
		return save.Hold(ring, 2, save.Image(ring, 1))
	}
	locks := func(from *uint64, n int) []lock { return unsafe.Slice((*lock)(unsafe.Pointer(from)), n) }
	require.NoError(t, holds(nil, block[4:8]))
	require.NoError(t, holds(nil, block[5:6]))
	require.NoError(t, holds(locks(&block[4], 4), block[8:]))
	const no = "over a tenant, and not in one live block of it, at 0x"
	require.ErrorContains(t, holds(nil, block[4:9]), no)
	require.ErrorContains(t, holds(nil, block[3:5]), no)
	require.ErrorContains(t, holds(nil, block[:1]), no)
	if !arena_c.Checked && !arena_c.Asan {
		require.ErrorContains(t, holds(nil, unsafe.Slice(&block[8], 5)), no)
		across := (*uint64)(unsafe.Add(unsafe.Pointer(&block[0]), -8))
		require.ErrorContains(t, holds(nil, unsafe.Slice(across, 2)), no)
	}
	require.ErrorContains(t, holds(nil, own[1:2]), "over a tenant, at 0x")
	require.ErrorContains(t, holds(locks(&block[4], 1), block[4:5]), "where two types overlap")
	block[4] = 9 << 32
	require.ErrorContains(t, holds(locks(&block[4], 1), nil), "save_test.lock.Shut is the bool 9")
	block[0] = 0
	require.ErrorContains(t, holds(nil, block[4:8]), no, "who is asked sees the image")
}

// TestBoolsAllocateNothing: only the first check allocates.
func TestBoolsAllocateNothing(t *testing.T) {
	if arena_c.Checked || arena_c.Crossing || arena_c.Race {
		t.Skip("only a release build allocates nothing: go test ./budget/save runs it")
	}
	m := newMade(t)
	m.house.Tick++
	require.NoError(t, m.ring.Take(2))
	delta, err := m.ring.Delta(nil, 1, 2)
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		if _, err := m.ring.Apply(delta); err != nil {
			panic(err)
		}
	}))
}
