package budget_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

// smallRooms is a plan of small slots, with limits of their own or the default.
func smallRooms(slots int, limits budget.Limits) budget.Plan {
	return budget.Plan{Name: "rooms",
		Regions: []budget.RegionPlan{{Name: "room", Size: 17 * budget.KiB, Slots: slots, Limits: limits}}}
}

var few = budget.Limits{Scopes: 4, Pools: 4, Owned: 4, Labels: 4}

// residentOf returns the resident bytes of the budget's addresses, edges included, as the kernel
// counts them page by page.
func residentOf(t *testing.T, b *budget.Budget) uint64 {
	t.Helper()
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./budget runs it")
	}
	bytes, ok := b.ResidentOf()
	if !ok {
		t.Skip("this system doesn't measure a budget's resident bytes: on Linux, go test ./budget runs it")
	}
	return bytes
}

func fillSlots(t *testing.T, b *budget.Budget, slots int) {
	for range slots {
		room, err := b.Slots("room").Acquire()
		require.NoError(t, err)
		_, err = budget.Load(background, room, func(s scope.Scope) (*frog, error) {
			for i, bytes := 0, s.Bytes(int(s.Free())); i < len(bytes); i++ {
				bytes[i] = 1
			}
			return nil, nil
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, room.Release(background)) }()
	}
}

// A slot costs its pages, its tables in the budget, and its tables on the Go heap. Edges of 64 KiB
// cost only addresses.
func TestASlotCostsWhatItHolds(t *testing.T) {
	const slots, most = 200, 26_000
	for _, c := range []struct {
		limits budget.Limits
		most   uint64 // bytes of a slot, Go heap included
	}{{budget.Limits{}, 76_000}, {few, most}, {budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1}, 24_000}} {
		for _, prefault := range []budget.Demand{budget.Required, budget.Off} {
			plan := smallRooms(slots, c.limits)
			plan.Pages.Prefault = prefault
			b := open(t, plan)
			at := residentOf(t, b)
			cost := b.Report().Cost
			if prefault == budget.Off {
				fillSlots(t, b, slots)
			}
			full := residentOf(t, b)
			each := (full + cost.GoHeap) / slots
			what := fmt.Sprintf("%+v, prefault %s: a slot takes %d bytes of pages, and %d with the Go heap's tables",
				c.limits, prefault, full/slots, each)
			t.Log(what)
			assert.LessOrEqual(t, each, c.most, what)
			// else its bytes are at other addresses
			if !instrumented || prefault == budget.Required {
				assert.Greater(t, full/slots, uint64(17*budget.KiB), "control: a slot's bytes are there")
			}
			assert.Greater(t, cost.Addresses, uint64(slots*64*budget.KiB), "edges are addresses")
			if os.Getpagesize() == 4*budget.KiB {
				assert.LessOrEqual(t, full, cost.Resident4K, "at most")
			}
			if prefault == budget.Required {
				assert.Equal(t, b.PartBytes(), at)
				missing, _ := b.Missing()
				assert.Zero(t, missing)
				fillSlots(t, b, slots)
				assert.Equal(t, at, residentOf(t, b), "nothing came on top")
			}
			require.NoError(t, b.Close())
		}
	}
}

// Plan.Cost equals the memory that Open makes resident, for any parts.
func TestCostIsWhatIsResident(t *testing.T) {
	plans := []budget.Plan{small(), paged(), worlds(256, 64, 512), guarded(320, 100, 333), smallRooms(3, few),
		smallRooms(9, budget.Limits{})}
	for _, plan := range plans {
		plan.Size = 0
		plan.Pages.Prefault = budget.Required
		whole := plan
		cost, err := plan.Cost()
		require.NoError(t, err)
		b := open(t, plan)
		assert.Equal(t, cost, b.Report().Cost)
		assert.Equal(t, b.Size(), cost.Addresses)
		resident := residentOf(t, b)
		if os.Getpagesize() == 4*budget.KiB {
			assert.Equal(t, cost.Resident4K, resident)
		}
		assert.LessOrEqual(t, cost.Resident4K, cost.Resident64K)
		assert.LessOrEqual(t, cost.Resident64K, cost.Addresses)
		require.NoError(t, b.Close())

		whole.Size = 16 * budget.MiB // mostly unplanned
		wide, err := whole.Cost()
		require.NoError(t, err)
		assert.Greater(t, wide.Addresses, uint64(16*budget.MiB))
		assert.Equal(t, [3]uint64{cost.Resident4K, cost.Resident64K, cost.GoHeap},
			[3]uint64{wide.Resident4K, wide.Resident64K, wide.GoHeap})
		b = open(t, whole)
		assert.Equal(t, resident, residentOf(t, b), "what isn't planned is addresses")
		require.NoError(t, b.Close())

		whole.Pages.Huge = budget.Wished
		huge, err := whole.Cost()
		require.NoError(t, err)
		assert.Equal(t, huge.Addresses, huge.Resident4K, "a huge page has its edges, too")
	}
	_, err := budget.Plan{}.Cost()
	assert.ErrorContains(t, err, "name")
	small := small()
	small.GoHeap = 5 * budget.MiB
	cost, err := small.Cost()
	require.NoError(t, err)
	assert.EqualValues(t, 5*budget.MiB, cost.GoHeap)
}

// When edges move, pages that were edges become present, also in a sealed budget, without a request
// to the system.
func TestReconfigureMakesPresent(t *testing.T) {
	plan := func(systems, level uint64) budget.Plan {
		p := worlds(64, 64, 64)
		p.Regions[1].Size, p.Regions[3].Size = systems*budget.KiB, level*budget.KiB
		p.Pages.Prefault = budget.Required
		return p
	}
	for _, sealed := range []bool{false, true} {
		b := open(t, plan(17, 300))
		residentOf(t, b)
		if sealed {
			require.NoError(t, b.Seal())
		}
		require.NoError(t, b.Region("init").Rewind(background))
		for _, sizes := range [][2]uint64{{60, 257}, {1, 320}, {200, 100}, {128, 256}} {
			if err := b.Reconfigure(background, plan(sizes[0], sizes[1])); err != nil {
				t.Fatal(sizes, err)
			}
			missing, ok := b.Missing()
			assert.True(t, ok)
			assert.Zero(t, missing, "%v, sealed %v", sizes, sealed)
			cost, err := b.Plan().Cost()
			require.NoError(t, err)
			assert.Equal(t, cost, b.Report().Cost)
		}
		require.NoError(t, b.Close())
	}
}

// Pages in use are locked, and so are pages that come into use, except in a sealed budget.
func TestLockIsOfWhatHolds(t *testing.T) {
	if why := ungranted(t, "lock"); why != "" {
		t.Skip("where the system grants it, go test ./budget runs it:", why)
	}
	for _, guards := range []budget.Demand{budget.Off, budget.Wished} {
		plan := worlds(17, 64, 300)
		plan.Pages.Lock, plan.Pages.Guards = budget.Required, guards
		b := open(t, plan)
		assert.EqualValues(t, b.PartBytes(), locked(t)*budget.KiB)
		other := b.Plan()
		other.Regions[1].Size, other.Regions[3].Size = 60*budget.KiB, 257*budget.KiB
		require.NoError(t, b.Reconfigure(background, other))
		missing, ok := b.Missing()
		assert.True(t, !ok || missing == 0)
		assert.GreaterOrEqual(t, locked(t)*budget.KiB, b.PartBytes())
		require.NoError(t, b.Seal())
		if guards == budget.Off {
			other.Regions[1].Size = 33 * budget.KiB
			assert.EqualError(t, b.Reconfigure(background, other),
				`budget "worlds": Reconfigure after Seal: to move regions[1].size, the `+
					`system would have to lock the pages at the old edges; set pages.lock to "off", or Reconfigure before Seal`)
		}
		require.NoError(t, b.Close())
		assert.Zero(t, locked(t))
	}
}

// Locked parts take mappings, and the system has a limited number of them.
func TestLockWithoutMappings(t *testing.T) {
	if why := ungranted(t, "lock"); why != "" {
		t.Skip("where the system grants it, go test ./budget runs it:", why)
	}
	defer budget.SetMappings(1000, 1200)()
	plan := smallRooms(100, few) // in 8 MiB, which most systems lock for anybody
	plan.Pages.Lock = budget.Required
	_, err := budget.Open(plan)
	assert.EqualError(t, err,
		`budget "rooms": pages.lock is required: to lock 103 parts, with edges between them, takes 206 mappings more; `+
			`vm.max_map_count allows 1200 (1000 in use, 18 kept for the runtime): raise it (sysctl -w vm.max_map_count=1226) `+`or have fewer slots, give them sizes that are multiples of 64KiB, or set pages.lock to "off"`)
	plan.Regions[0].Size = 64 * budget.KiB
	require.NoError(t, open(t, plan).Close(), "one behind the other they are one part or two")
}

// TestStateCostsWhatLoadsUse: a state region begins with zeros, and Open's are zeros already.
func TestStateCostsWhatLoadsUse(t *testing.T) {
	b := open(t, budget.Plan{Name: "state", Pages: budget.Pages{Prefault: budget.Off},
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.MiB, State: true}}})
	mustLoad(t, b, "level", func(s scope.Scope) { s.BytesUnzeroed(budget.MiB, 64) })
	if !arena_c.Checked && !arena_c.Asan {
		assert.Less(t, residentOf(t, b), uint64(8*budget.MiB), "a few pages, also if each has 2 MiB")
	}
	require.NoError(t, b.Region("level").Rewind(background))
}
