package budget

import (
	"context"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

func TestExpectedWarnings(t *testing.T) {
	plan := handheld()
	plan.CHeap.Size = 8 * MiB
	plan.Expected = []Expected{
		{Part: "level", Boot: 40 * MiB, Load: 40*MiB + 1, Play: math.MaxUint64},
		{Part: "level", Label: "frogs", Play: 41 * MiB},
		{Part: "frame", Play: MiB + 1}, {Part: "scratch", Load: MiB + 1}, {Part: "c_heap", Boot: 9 * MiB},
	}
	err := plan.Check()
	assert.ErrorIs(t, err, ErrWarning)
	assert.EqualError(t, err, `plan "handheld": expected[0].load: warning: 41943041, but level has 40MiB
plan "handheld": expected[0].play: warning: 18446744073709551615, but level has 40MiB
plan "handheld": expected[1].play: warning: 41MiB, but level has 40MiB
plan "handheld": expected[2].play: warning: 1048577, but frame has 1MiB
plan "handheld": expected[3].load: warning: 1048577, but scratch has 1MiB
plan "handheld": expected[4].boot: warning: 9MiB, but c_heap has 8MiB`)
	plan.Size, plan.Regions[2].Size, plan.Expected = 64*MiB, Rest, plan.Expected[:2]
	assert.NoError(t, plan.Check(), "the bytes of a rest are known after Open")
}

func TestExpectedBand(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	largest := new(big.Int).SetUint64(math.MaxUint64)
	for range 10_000 {
		size, e := random.Uint64()>>random.IntN(64), Expected{Tolerance: Percent(random.IntN(100))}
		share := new(big.Int).SetUint64(size)
		share.Mul(share, big.NewInt(int64(e.Tolerance))).Div(share, big.NewInt(100))
		high := new(big.Int).SetUint64(size)
		if high.Add(high, share).Cmp(largest) > 0 {
			high = largest
		}
		least, most := e.Band(size)
		require.Equal(t, size-share.Uint64(), least, "%d %d", size, e.Tolerance)
		require.Equal(t, high.Uint64(), most, "%d %d", size, e.Tolerance)
	}
	least, most := Expected{Tolerance: math.MaxInt}.Band(700) // from a file
	assert.Equal(t, [2]uint64{0, 1400}, [2]uint64{least, most})
	least, most = Expected{Tolerance: math.MinInt}.Band(700)
	assert.Equal(t, [2]uint64{700, 700}, [2]uint64{least, most})
}

// An expectation is no layout: the budget is the same with and without, and calls allocate as much.
func TestExpectedChangesNothing(t *testing.T) {
	with := handheld()
	with.GoHeap = 0
	with.Expected = []Expected{{Part: "level", Load: 1, Play: 1, Tolerance: 5},
		{Part: "level", Label: "frogs", Play: 1}}
	without := with
	without.Expected = nil
	allocs := map[bool]float64{}
	for _, plan := range []Plan{with, without} {
		b, err := Open(plan)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, b.Close()) })
		assert.Equal(t, plan.Expected, b.Plan().Expected)
		tick := func() {
			_, err := Load(context.Background(), b.Region("level"), func(s scope.Scope) (*byte, error) {
				return &s.Bytes(100)[0], nil
			})
			require.NoError(t, err)
			require.NoError(t, b.NextFrame())
		}
		least := math.Inf(1) // other goroutines allocate, too, and tables of checked builds grow
		for range 10 {
			least = min(least, testing.AllocsPerRun(20, tick))
		}
		allocs[plan.Expected != nil] = least
		if plan.Expected != nil {
			b.Plan().Expected[0].Play = 99
			assert.Equal(t, plan.Expected, b.Report().Plan.Expected)
			text, err := json.Marshal(b.Report())
			require.NoError(t, err)
			var read Report
			require.NoError(t, json.Unmarshal(text, &read))
			assert.Equal(t, plan.Expected, read.Plan.Expected)
			small := b.Plan()
			small.Expected = nil
			assert.NoError(t, b.onlySizesDiffer(small), "Reconfigure takes a plan without")
		}
	}
	assert.Equal(t, allocs[false], allocs[true])
	costs, err := with.Cost()
	require.NoError(t, err)
	same, err := without.Cost()
	require.NoError(t, err)
	assert.Equal(t, same, costs)
	list, err := with.resolved().layout()
	require.NoError(t, err)
	others, err := without.resolved().layout()
	require.NoError(t, err)
	assert.Equal(t, others.parts(), list.parts())
}
