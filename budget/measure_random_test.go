package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// randomWork allocates in a scope and in scopes inside it; with temps, in temporaries too.
func randomWork(s scope.Scope, r *rand.Rand, temps bool) {
	for range 1 + r.IntN(8) {
		switch k := r.IntN(10); {
		case k < 6:
			s.BytesUnzeroed(r.IntN(3000), 1<<r.IntN(8))
		case k < 7:
			frogs.Pool(s, r.IntN(20))
		case k < 8 && temps:
			temp := s.Temp(r.IntN(20000))
			temp.Bytes(int(temp.Free()))
		default:
			child := s.Open("child")
			child.AllocUnzeroed(uint64(r.IntN(9000)), 16)
			_ = child.Close()
		}
	}
}

// randomProgram does the same each time: loads, slots, ticks and scratch arenas.
func randomProgram(seed uint64, temps bool) func(b *budget.Budget) error {
	return func(b *budget.Budget) error {
		r := rand.New(rand.NewPCG(seed, 1))
		var taken []*budget.Region
		for range 1 + r.IntN(3) {
			for _, name := range []string{"init", "level"}[r.IntN(2):] {
				if _, err := load(b, name, func(s scope.Scope) error { randomWork(s, r, temps); return nil }); err != nil {
					return err
				}
			}
			slot, err := b.Slots("match").Acquire()
			if err != nil {
				return err
			}
			taken = append(taken, slot)
			_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) { randomWork(s, r, temps); return nil, nil })
			if err != nil {
				return err
			}
			for range r.IntN(4) {
				randomWork(b.Frame(), r, false)
				scratch := b.Scratch(r.IntN(2), r.IntN(2)).Open("scratch")
				randomWork(scratch, r, false)
				if err := errors.Join(scratch.Close(), b.NextFrame()); err != nil {
					return err
				}
			}
		}
		var errs []error
		for _, slot := range taken {
			errs = append(errs, slot.Release(background))
		}
		return errors.Join(errs...)
	}
}

// sizesOf are the sizes of a plan's parts, to be changed one by one.
func sizesOf(p *budget.Plan) (sizes []*uint64) {
	for i := range p.Regions {
		sizes = append(sizes, &p.Regions[i].Size)
	}
	return append(sizes, &p.Frame.Size, &p.Scratch.Size)
}

func TestMeasureToTheByte(t *testing.T) {
	narrowMachine(t)
	seeds := uint64(25)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		for _, temps := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, temps), func(t *testing.T) {
				calls := 0
				fn := randomProgram(seed, temps)
				report, err := budget.Measure(measured(), func(b *budget.Budget) error { calls++; return fn(b) })
				require.NoError(t, err)
				if !temps {
					assert.Equal(t, 2, calls, "the peaks of the wide plan are what is needed")
				}
				assert.LessOrEqual(t, calls, 2+3, "the regions that have temporaries")
				checkMeasured(t, report, temps)
				assert.True(t, runs(t, report.Plan, fn))
				less := uint64(1)
				if temps {
					less = 64
				}
				for i, size := range sizesOf(&report.Plan) {
					if was := *size; was > less {
						*size -= less
						assert.False(t, runs(t, report.Plan, fn), "part %d with %d less than %d", i, less, was)
						*size = was
					}
				}
			})
		}
	}
}

// checkMeasured says that each part that was used is full to its last byte, and that each limit is what was open at once.
func checkMeasured(t *testing.T, r budget.Report, temps bool) {
	t.Helper()
	most, limits := map[string]uint64{}, budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1}
	for i, row := range append(r.Regions, r.Beside...) {
		part := []string{"init", "match", "match", "match", "level", "spare", "frame", "frame",
			"scratch", "scratch", "scratch", "scratch"}[i]
		most[part] = max(most[part], row.Peak)
		limits.Scopes, limits.Pools = max(limits.Scopes, row.MostOpen.Scopes), max(limits.Pools, row.MostOpen.Pools)
	}
	for part, size := range map[string]uint64{"init": r.Plan.Regions[0].Size, "match": r.Plan.Regions[1].Size,
		"level": r.Plan.Regions[2].Size, "spare": r.Plan.Regions[3].Size, "frame": r.Plan.Frame.Size, "scratch": r.Plan.Scratch.Size} {
		if most[part] == 0 {
			assert.EqualValues(t, 1, size, "%s was not used", part)
		} else if !temps {
			assert.Equal(t, most[part], size, part)
		}
		assert.LessOrEqual(t, most[part], size, part)
	}
	assert.Equal(t, limits, r.Plan.Limits)
	assert.Equal(t, "kept", r.Plan.Regions[2].Note)
	assert.NoError(t, r.Plan.Check())
}
