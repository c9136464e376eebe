package save_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

type (
	holes struct {
		A    uint8
		B    uint32
		Deep [2]struct{ C, D uint64 }
		E    uint16
	}
	addresses struct {
		Where uintptr
		Room  scope.Addr[room]
		Other scope.Ref[room]
		Own   scope.Owned
	}
	tree struct { // types that lead to each other, with a fault at depth
		Next  arena.Ptr[tree]
		Many  arena.Slice[arena.Ptr[holes]]
		Name  arena.String
		Short arena.Inline[[16]byte]
	}
	fine struct {
		A    uint8
		_    [3]byte
		B    uint32
		Next arena.Ptr[fine]
		None struct{}
		C    [3]struct{ X, Y int16 }
		D    float32
	}
)

var (
	holesMaker     = scope.Plain[holes]()
	addressesMaker = scope.Plain[addresses]()
	treeMaker      = scope.Plain[tree]()
	fineMaker      = scope.Plain[fine]()
)

var holesFaults = strings.ReplaceAll("\n\t3 bytes of padding after holes.A may have any value; write a field `_ "+
	"[3]byte` there, or put larger fields first"+
	"\n\tN bytes of padding after holes.E may have any value; write a field `_ [N]byte` there, or "+
	"put larger fields first", "N", map[int]string{32: "2", 64: "6"}[strconv.IntSize])

// TestTypesOfStates: a state region refuses padding and addresses, naming each field. Other regions
// accept them.
func TestTypesOfStates(t *testing.T) {
	b := open(t, twoRegions())
	begin := func(fn func(budget.Region, scope.Scope)) string {
		return panicOf(t, func() { load(t, b, "level", fn) })
	}
	assert.Equal(t, "save: BUG: the state of region level can't have a save_test.holes:"+holesFaults,
		begin(func(r budget.Region, s scope.Scope) { save.Begin(r, s, holesMaker) }))
	assert.Equal(t, "save: BUG: the state of region level can't have a save_test.tree:"+holesFaults,
		begin(func(r budget.Region, s scope.Scope) { save.Begin(r, s, treeMaker) }))
	assert.Equal(t, "save: BUG: the state of region level can't have a save_test.addresses:"+
		"\n\taddresses.Where (uintptr) is an address, or has another size on other machines; use arena.Ptr "+
		"for a value in the region, or "+
		"uint64 for a number"+
		"\n\taddresses.Room (scope.Addr[github.com/upfront-mem/upfront/budget/save_test.room]) means "+
		"nothing in another process; "+
		"use arena.Ptr, or the arena.Handle of a HandlePool"+
		"\n\taddresses.Other (scope.Ref[github.com/upfront-mem/upfront/budget/save_test.room]) means "+
		"nothing in another process; "+
		"use arena.Ptr, or the arena.Handle of a HandlePool"+
		"\n\taddresses.Own (scope.Owned) means nothing in another process; use a number of your own, and "+
		"keep the Owned outside of the state",
		begin(func(r budget.Region, s scope.Scope) { save.Begin(r, s, addressesMaker) }))
	type near scope.Addr[room]
	type line blob.Link[room]
	for fault, fn := range map[string]func(budget.Region, scope.Scope){
		"near (save_test.near) means nothing in another process; use arena.Ptr": func(r budget.Region,
			s scope.Scope) {
			save.Begin(r, s, scope.Plain[near]())
		},
		"line (save_test.line) is valid only in a verified blob; use an index": func(
			r budget.Region, s scope.Scope) {
			save.Begin(r, s, scope.Plain[line]())
		},
		"Str (blob.Str) is valid only in a verified blob": func(r budget.Region, s scope.Scope) {
			save.Begin(r, s, scope.Plain[blob.Str]())
		},
		"(flow.In[bool]) is valid only in a verified graph; use its value": func(
			r budget.Region, s scope.Scope) {
			save.Begin(r, s, scope.Plain[struct{ Says flow.In[bool] }]())
		},
	} {
		assert.Contains(t, begin(fn), fault)
	}
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, fineMaker)
		fineMaker.Pool(s, 3)
		save.NewRing(s, 1, state)
	})
	load(t, b, "extra", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, holesMaker)
		addressesMaker.Pool(s, 3)
		addressesMaker.New(s)
		save.NewRing(s, 1, state)
	})
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, fineMaker)
		holesMaker.HandlePool(s, 5)
		assert.Contains(t, panicOf(t, func() { save.NewRing(s, 1, state) }),
			holesFaults+"\n\tin a pool of 5")
	})
}

// TestTypesOfAllThatIsMade: checked builds check the types of all values of a state, however
// allocated, and none that were released.
func TestTypesOfAllThatIsMade(t *testing.T) {
	b := open(t, twoRegions())
	for name, make := range map[string]func(s scope.Scope){
		"New":    func(s scope.Scope) { holesMaker.New(s) },
		"TryNew": func(s scope.Scope) { holesMaker.TryNew(s) },
		"Slice":  func(s scope.Scope) { holesMaker.Slice(s, 2) },
		"Clone":  func(s scope.Scope) { holesMaker.Clone(s, []holes{{}}) },
		"Append": func(s scope.Scope) { holesMaker.Append(s, nil, holes{}) },
		"Make": func(s scope.Scope) {
			_, err := holesMaker.Make(s, func(*holes) error { fineMaker.New(s); return nil })
			require.NoError(t, err)
		},
		"Build": func(s scope.Scope) {
			list := holesMaker.Build(s)
			list.Push(holes{})
			list.Done()
		},
	} {
		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			state, _ := save.Begin(r, s, fineMaker)
			require.NoError(t, s.Do("gone", func(s scope.Scope) error { make(s); return nil }))
			_, err := fineMaker.Make(s, func(*fine) error { make(s); return assert.AnError })
			require.ErrorIs(t, err, assert.AnError)
			require.NoError(t, scope.Label(s, "things", func() error { fineMaker.New(s); return nil }))
			save.NewRing(s, 1, state)
		})
		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			state, _ := save.Begin(r, s, fineMaker)
			require.NoError(t, scope.Label(s, "things", func() error { make(s); return nil }))
			if !arena_c.Checked {
				save.NewRing(s, 1, state)
				return
			}
			text := panicOf(t, func() { save.NewRing(s, 1, state) })
			assert.Contains(t, text, holesFaults+"\n\tin scope \"level\", label \"things\"\n\tmade at:\n\t",
				name)
			assert.Contains(t, text, "/admit_test.go:", name)
		})
	}
}

// TestSameGaps: old bytes in gaps, of this load or another, are in no snapshot.
func TestSameGaps(t *testing.T) {
	b := open(t, twoRegions())
	var want uint64
	var ring *save.Ring
	for i := range 3 {
		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			dirty := func(n int) {
				require.NoError(t, s.Do("before", func(s scope.Scope) error {
					for k, bytes := 0, s.Bytes(n); k < n; k++ {
						bytes[k] = 0xee
					}
					return nil
				}))
			}
			if i > 0 {
				dirty(10 * budget.KiB)
			}
			temp := s.Temp(50 * budget.KiB)
			state, _ := save.Begin(r, s, fineMaker)
			if i > 1 {
				dirty(5 * budget.KiB)
				for k, bytes := 0, temp.Bytes(50*budget.KiB); k < len(bytes); k++ {
					bytes[k] = 0xee
				}
			}
			byteMaker.Slice(s, 3)
			pool := fineMaker.Pool(s, 4)
			pool.Get()
			byteMaker.Slice(s, 1)
			require.NoError(t, temp.Close())
			byteMaker.SliceAligned(s, 17*budget.KiB, 64)
			fineMaker.New(s)
			byteMaker.SliceAligned(s, 1, 1024)
			ring = save.NewRing(s, 1, state)
		})
		require.NoError(t, ring.Take(1))
		if h := hash(t, ring, 1); i == 0 {
			want = h
		} else {
			assert.Equal(t, want, h)
		}
	}
}

// TestWhatNeverChanges: in checked builds Take fails if memory from before Begin was written, and
// names the line that allocated it.
func TestWhatNeverChanges(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	var before, after []byte
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		before = byteMaker.Slice(s, 1000)
		state, _ := save.Begin(r, s, roomMaker)
		after = byteMaker.Slice(s, 100)
		ring = save.NewRing(s, 2, state)
	})
	after[99] = 1
	require.NoError(t, ring.Take(1))
	before[130] = 1
	err := ring.Take(2)
	if !arena_c.Checked {
		require.NoError(t, err)
		return
	}
	assert.ErrorContains(t, err,
		"save: BUG: region level: memory from before Begin was written since, and is in no snapshot: "+
			"64 bytes at offset 0x80\n\tmade at:\n\t")
	assert.ErrorContains(t, err, "/admit_test.go:")
	assert.True(t, ring.Has(1) && !ring.Has(2))
	before[130] = 0
	require.NoError(t, ring.Take(2))
}
