package budget_test

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

func guardsOf(t *testing.T, b *budget.Budget) (guards []budget.Range) {
	t.Helper()
	for _, r := range requireWalk(t, b) {
		if r.What == "slack: guard" {
			guards = append(guards, r)
		}
	}
	return guards
}

// faults reports whether fn touches a page without access.
func faults(fn func()) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			_, faulted = cause.(runtime.Error)
		}
	}()
	fn()
	return false
}

var sink byte

// guardsInForce returns the number of guards that have no access.
func guardsInForce(t *testing.T, b *budget.Budget) (count int) {
	base := unsafe.Pointer(unsafe.SliceData(b.Base().Bytes()))
	for _, g := range guardsOf(t, b) {
		guard := (*byte)(unsafe.Add(base, g.Offset))
		if runtime.GOOS == "linux" && strings.Contains(mapping(t, "maps", uint64(addressOf(guard))), " ---p ") ||
			runtime.GOOS != "linux" && faults(func() { sink = *guard }) {
			count++
		}
	}
	return count
}

// requireGuards checks that the guards, and no other bytes, have no access.
func requireGuards(t *testing.T, b *budget.Budget) {
	t.Helper()
	base := unsafe.Pointer(unsafe.SliceData(b.Base().Bytes()))
	for _, r := range requireWalk(t, b) {
		want := r.What == "slack: guard"
		if want {
			require.EqualValues(t, 64*budget.KiB, r.Size)
			require.Zero(t, r.Offset%(64*budget.KiB))
		}
		for _, offset := range []uint64{r.Offset, r.Offset + r.Size - 1} {
			if runtime.GOOS == "linux" {
				line := mapping(t, "maps", uint64(uintptr(base))+offset)
				require.Regexp(t, map[bool]string{true: ` ---p `, false: ` rw-p `}[want], line, "%v at %d", r, offset)
			}
			if !instrumented { // else the byte is poisoned, and the tool ends the process
				require.Equal(t, want, faults(func() { sink = *(*byte)(unsafe.Add(base, offset)) }), "%v at %d",
					r, offset)
			}
		}
	}
}

func fillRegions(t *testing.T, b *budget.Budget) {
	t.Helper()
	whole := func(r budget.Region) {
		size := int(r.Report().Size)
		_, err := budget.Load(background, r, func(s scope.Scope) (*frog, error) {
			bytes := s.Bytes(size)
			for i := range bytes {
				bytes[i] = 1
			}
			return nil, nil
		})
		require.NoError(t, err)
	}
	whole(b.Region("init"))
	whole(b.Region("systems"))
	for range 2 {
		room := acquire(t, b)
		whole(room)
		defer func() { require.NoError(t, room.Release(background)) }()
	}
	whole(b.Region("level"))
	for range 4 {
		b.Frame().Bytes(int(beside(b.Report())[0].Free))
		require.NoError(t, b.NextFrame())
	}
}

func guarded(systems, room, level uint64) budget.Plan {
	plan := worlds(systems, room, level)
	plan.Pages.Guards = budget.Wished
	return plan
}

func TestGuards(t *testing.T) {
	for range 2 {
		b := open(t, guarded(256, 64, 512))
		assert.Equal(t, []string{"/slack: guard 65536", "init/free 65536", "init/slack: guard 65536",
			"systems/free 262144", "systems/slack: guard 65536", "room 0/free 65536", "room 0/slack: guard 65536",
			"room 1/free 65536", "room 1/slack: guard 65536", "level/free 524288", "level/slack: guard 65536",
			"frame 0/free 65536", "frame 0/slack: guard 65536", "frame 1/free 65536", "frame 1/slack: guard 65536"},
			names(requireWalk(t, b))[2:])
		if platform.GoBacked {
			assert.Equal(t, []string{"pages.guards: the pages of a race build are Go's"}, b.Report().NotGranted)
		} else {
			assert.Empty(t, b.Report().NotGranted)
			requireGuards(t, b)
			missing, ok := b.Missing()
			assert.True(t, !ok || missing == 0, "a guard's pages count as there")
		}
		fillRegions(t, b)
		requireCovers(t, b, requireWalk(t, b))
		require.NoError(t, b.Close())
	}
}

func TestGuardsMove(t *testing.T) {
	b := open(t, guarded(256, 64, 512))
	for _, sizes := range [][3]uint64{{64, 64, 704}, {320, 192, 192}, {256, 64, 512}, {256, 64, 512}, {704, 64, 64}} {
		require.NoError(t, b.Region("init").Rewind(background))
		require.NoError(t, b.Reconfigure(background, guarded(sizes[0], sizes[1], sizes[2])))
		assert.Len(t, guardsOf(t, b), 8)
		if !platform.GoBacked {
			requireGuards(t, b)
		}
		fillRegions(t, b)
	}
	require.NoError(t, b.Close())
	b = open(t, guarded(256, 64, 512))
	fillRegions(t, b)
	require.NoError(t, b.Close())
}

func TestGuardsInAGivenBlock(t *testing.T) {
	b, err := budget.OpenIn(static[:], guarded(256, 64, 512))
	require.NoError(t, err)
	require.NoError(t, b.Reconfigure(background, guarded(64, 64, 704)))
	fillRegions(t, b)
	assert.Len(t, guardsOf(t, b), 8)
	require.NoError(t, b.Close())
}

// TestGuardsThatAreRefusedHalfway: a guard that the report calls refused isn't in force, and
// Reconfigure doesn't add it.
func TestGuardsThatAreRefusedHalfway(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./budget runs it")
	}
	limits := fresh(t, paged()).Limits
	plan := func(systems, level uint64) budget.Plan {
		plan := guarded(systems, 64, level)
		plan.Limits = limits
		return plan
	}
	commits := 1 // requests before the guards'
	require.NoError(t, open(t, plan(256, 512)).Close())
	for n := 1; n <= 8; n++ {
		restore := platform.InjectFault("protect", commits+n)
		b := open(t, plan(256, 512))
		require.True(t, restore())
		require.Len(t, b.Report().NotGranted, 1)
		assert.Regexp(t,
			`^pages\.guards: platform: protect 65536 bytes at offset \d+: injected fault: cannot allocate memory$`,
			b.Report().NotGranted[0])
		assert.Zero(t, guardsInForce(t, b), "guard %d was refused", n)
		require.NoError(t, b.Reconfigure(background, plan(64, 704)))
		assert.Zero(t, guardsInForce(t, b))
		fillRegions(t, b)
		require.NoError(t, b.Close())
	}
	first, second := platform.InjectFault("protect", commits+3), platform.InjectFault("protect", commits+4)
	b := open(t, plan(256, 512))
	require.True(t, first())
	require.True(t, second())
	assert.Regexp(t, `(?s)injected fault.*some guards are in force all the same: platform: unprotect .*injected`,
		b.Report().NotGranted[0])
	assert.Equal(t, 2, guardsInForce(t, b))
	fillRegions(t, b)
	require.NoError(t, b.Region("init").Rewind(background))
	require.NoError(t, b.Reconfigure(background, plan(64, 704)))
	fillRegions(t, b)
	require.NoError(t, b.Close())
}

// TestGuardsMoveWithFaults makes the system refuse each change of access in turn; a refusal changes
// no byte.
func TestGuardsMoveWithFaults(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./budget runs it")
	}
	for n, struck := 1, true; struck; n++ {
		b := open(t, guarded(256, 64, 512))
		restore := platform.InjectFault("protect", n)
		err := b.Reconfigure(background, guarded(64, 64, 704))
		struck = restore()
		if struck {
			assert.ErrorContains(t, err, "injected fault", n)
		} else {
			require.NoError(t, err)
		}
		fillRegions(t, b)
		require.NoError(t, b.Region("init").Rewind(background))
		require.NoError(t, b.Reconfigure(background, guarded(320, 64, 448)))
		requireGuards(t, b)
		require.NoError(t, b.Close())
	}
}

// TestGuardsBeyondTheMappings: the plan has more guards than one process may have mappings.
func TestGuardsBeyondTheMappings(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./budget runs it")
	}
	plan := guarded(256, 64, 512)
	const text = "7 arenas with guards need 16 mappings more; vm.max_map_count allows 640 (615 in use, 10 kept for " +
		"the runtime): raise it (sysctl -w vm.max_map_count=642) or have fewer guards (fewer slots, or guards off)"
	restore := budget.SetMappings(615, 640)
	b := open(t, plan)
	assert.Equal(t, []string{"pages.guards: " + text}, b.Report().NotGranted)
	fillRegions(t, b)
	require.NoError(t, b.Close())
	_, err := budget.Open(demanding(plan, "guards", budget.Required))
	assert.EqualError(t, err, `budget "worlds": pages.guards is required: `+text)
	restore()
	defer budget.SetMappings(615, 642)()
	b = open(t, demanding(plan, "guards", budget.Required))
	requireGuards(t, b)
	require.NoError(t, b.Close())
}

func TestGuardsBeyondTheSystem(t *testing.T) {
	_, most, ok := platform.Mappings()
	switch {
	case platform.GoBacked:
		t.Skip("with -race the pages are the Go heap's, without guards: go test ./budget runs it")
	case !ok:
		t.Skip("this system has no limit of mappings: on Linux, go test ./budget runs it")
	case most > 70_000:
		t.Skipf("this system has %d mappings for a process: enough for this plan", most)
	}
	if strconv.IntSize == 32 {
		t.Skip("the plan takes 4.6 GiB of addresses: on a 64-bit machine, go test ./budget runs it")
	}
	step.Machine(t, step.Addresses(8*budget.GiB))
	plan := budget.Plan{Name: "many", Limits: budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1},
		Pages: budget.Pages{Prefault: budget.Off, Guards: budget.Required}}
	for i := range 9 {
		plan.Regions = append(plan.Regions, budget.RegionPlan{Name: string(rune('a' + i)), Size: 1, Slots: 4096})
	}
	_, err := budget.Open(plan)
	require.Error(t, err)
	assert.Regexp(t,
		`^budget "many": pages.guards is required: 36864 arenas with guards need 73730 mappings more; vm.max_map_count allows `+`\d+ \(\d+ in use, \d+ kept for the runtime\): raise it \(sysctl -w vm.max_map_count=\d+\) or have`,
		err.Error())
	plan.Pages.Guards = budget.Off
	require.NoError(t, open(t, plan).Close())
}
