package budget_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// treePart is a region or slot of the model: a node of a tree of lists.
type treePart struct {
	id     int64
	level  int
	region budget.Region
	above  []*treePart // those that stand on it directly
	loaded budget.Loaded[frog]
	alive  bool
	reader *budget.Reader
	busy   *treeLoad
}

// treeLoad is a load that runs fn.
type treeLoad struct {
	part  *treePart
	scope scope.Scope
	inner bool // a load inside runs
}

// tree is a budget of random regions, and its model.
type tree struct {
	t       *testing.T
	random  *rand.Rand
	plan    budget.Plan
	b       *budget.Budget
	parts   []*treePart
	running []*treeLoad
	pinned  *treePart
	ran     []int64 // of the model: the parts in the order of their ends
}

// newTree returns a plan in which each region stands on a random one of those on which it may, and
// some have slots. Some of these plans are as all plans without On.
func newTree(t *testing.T, random *rand.Rand) *tree {
	w := &tree{t: t, random: random, plan: budget.Plan{Name: "tree", Limits: budget.Limits{Scopes: 2, Pools: 1,
		Owned: 1, Labels: 2}, Pages: budget.Pages{Prefault: budget.Off}}}
	below := []int{} // of each region, the region on which it stands
	chain := random.IntN(4) == 0
	for i := range 2 + random.IntN(7) {
		r := budget.RegionPlan{Name: fmt.Sprintf("r%d", i), Size: uint64(1+random.IntN(3)) * 64 * budget.KiB}
		if random.IntN(4) == 0 {
			r.Slots, r.Size = 1+random.IntN(3), 64*budget.KiB
		}
		on := i - 1
		if !chain {
			for on >= 0 && (random.IntN(2) == 0 || w.plan.Regions[on].Slots != 0) {
				on = below[on]
			}
			if r.On = budget.Root; on >= 0 {
				r.On = w.plan.Regions[on].Name
			}
		}
		below = append(below, on)
		w.plan.Regions = append(w.plan.Regions, r)
	}
	var err error
	w.b, err = budget.Open(w.plan)
	require.NoError(t, err, "%s", w.plan)
	levels := make([][]*treePart, len(w.plan.Regions))
	for i, r := range w.plan.Regions {
		for range max(1, r.Slots) {
			p := &treePart{id: int64(len(w.parts) + 1), level: i}
			if r.Slots == 0 {
				p.region = w.b.Region(r.Name)
			} else {
				p.region, err = w.b.Slots(r.Name).Acquire()
				require.NoError(t, err)
			}
			p.reader = p.region.Reader("worker")
			w.parts, levels[i] = append(w.parts, p), append(levels[i], p)
		}
		if below[i] >= 0 {
			for _, on := range levels[below[i]] {
				on.above = append(on.above, levels[i]...)
			}
		}
	}
	return w
}

// along returns a part and all that stand on it, as Load empties them: those that are last in the
// plan first.
func (w *tree) along(p *treePart) (list []*treePart) {
	var walk func(p *treePart)
	walk = func(p *treePart) {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
		for _, above := range p.above {
			walk(above)
		}
	}
	walk(p)
	slices.SortFunc(list, func(a, b *treePart) int { return int(b.id - a.id) })
	return list
}

// ends empties the parts in the model.
func (w *tree) ends(list []*treePart) {
	for _, p := range list {
		if p.alive {
			w.ran = append(w.ran, p.id)
		}
		p.alive = false
	}
}

// turn does a random operation on a random part. depth is the number of loads around it.
func (w *tree) turn(depth int) {
	t, p := w.t, w.parts[w.random.IntN(len(w.parts))]
	along := w.along(p)
	region, outer := p.region, (*treeLoad)(nil)
	may := !slices.ContainsFunc(along, func(x *treePart) bool { return x.busy != nil })
	if len(w.running) > 0 && w.random.IntN(3) != 0 { // by the scope of a running load
		outer = w.running[w.random.IntN(len(w.running))]
		region = region.In(outer.scope)
		may = p != outer.part && !outer.inner && slices.Contains(w.along(outer.part), p)
	}
	waits := may && outer == nil && w.pinned != nil && slices.Contains(along, w.pinned)
	ctx := context.Background()
	if waits {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, 10*time.Microsecond)
		defer cancel()
	}
	verify := func(err error) bool {
		switch {
		case !may:
			require.ErrorIs(t, err, budget.ErrLoading, "%s, with %d loads", p.region.Name(), len(w.running))
		case waits:
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		return may && !waits
	}
	switch w.random.IntN(8) {
	case 0: // a worker pins a part that is loaded, or unpins it
		if w.pinned != nil {
			w.pinned.reader.Unpin()
			w.pinned = nil
		} else if shut := p.busy != nil; p.reader.Pin() {
			require.False(t, shut, "a pin of %s, in a load", p.region.Name())
			w.pinned = p
		} else {
			require.True(t, shut, "no pin of %s, outside of loads", p.region.Name())
		}
	case 1, 2:
		if err := region.Rewind(ctx); verify(err) {
			require.NoError(t, err)
			w.ends(along)
		}
	case 3:
		w.reconfigure()
	default:
		entered := &treeLoad{part: p}
		fails := w.random.IntN(4) == 0
		loaded, err := budget.Load(ctx, region, func(s scope.Scope) (*frog, error) {
			require.True(t, may && !waits, "a load of %s", p.region.Name())
			w.ends(along)
			newMark(s, p.id, 0)
			p.alive, entered.scope = true, s
			w.running = append(w.running, entered)
			busy := map[*treePart]*treeLoad{}
			for _, x := range along {
				busy[x], x.busy = x.busy, entered
			}
			if outer != nil {
				outer.inner = true
			}
			for range w.random.IntN(3) {
				if depth < 3 {
					w.turn(depth + 1)
				}
			}
			if outer != nil {
				outer.inner = false
			}
			for x, was := range busy {
				x.busy = was
			}
			w.running = w.running[:len(w.running)-1]
			if fails {
				w.ends(along)
				return nil, errLoader
			}
			return frogs.New(s), nil
		})
		if !verify(err) {
			break
		}
		if fails {
			require.ErrorIs(t, err, errLoader)
			break
		}
		require.NoError(t, err)
		p.loaded = loaded
	}
	if depth == 0 {
		w.compare()
	}
}

// reconfigure moves an edge by 64 KiB between two regions without slots.
func (w *tree) reconfigure() {
	plan := w.b.Plan()
	i, j := w.random.IntN(len(plan.Regions)), w.random.IntN(len(plan.Regions))
	from, to := &plan.Regions[i], &plan.Regions[j]
	if i == j || from.Slots+to.Slots != 0 || from.Size == 64*budget.KiB {
		return
	}
	from.Size, to.Size = from.Size-64*budget.KiB, to.Size+64*budget.KiB
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Microsecond)
	defer cancel()
	err := w.b.Reconfigure(ctx, plan)
	between := func(p *treePart) bool { return min(i, j) <= p.level && p.level <= max(i, j) }
	loaded := slices.ContainsFunc(w.parts, func(p *treePart) bool { return p.alive && between(p) })
	switch {
	case len(w.running) > 0:
		require.ErrorIs(w.t, err, budget.ErrLoading)
	case loaded:
		require.ErrorContains(w.t, err, "is loaded; Rewind it first")
	case w.pinned != nil && between(w.pinned):
		require.ErrorIs(w.t, err, context.DeadlineExceeded)
	default:
		require.NoError(w.t, err)
	}
}

func (w *tree) compare() {
	for _, p := range w.parts {
		require.Equal(w.t, p.alive, p.loaded.Get() != nil, "%s is loaded\n%s", p.region.Name(), w.plan)
	}
	require.Equal(w.t, w.ran, ran, "parts in the order of their ends\n%s", w.plan)
}

// TestTrees compares random trees of regions with a model: random loads, some inside each other,
// rewinds, pins, failures and moves of edges.
func TestTrees(t *testing.T) {
	for seed := range uint64(step.Pick(100, 2_000, 100_000)) {
		ran = nil
		w := newTree(t, rand.New(rand.NewPCG(seed, 1)))
		for range 20 {
			w.turn(0)
		}
		if w.pinned != nil {
			w.pinned.reader.Unpin()
		}
		for _, p := range w.parts {
			if w.plan.Regions[p.level].Slots != 0 {
				require.NoError(t, p.region.Release(background))
			}
		}
		require.NoError(t, w.b.Close(), "seed %d", seed)
		alive := slices.ContainsFunc(w.parts, func(p *treePart) bool { return p.loaded.Get() != nil })
		require.False(t, alive, "after Close; seed %d", seed)
	}
}

// TestRefusedInATree: the error names the running load and the refused one, and how their regions
// are related.
func TestRefusedInATree(t *testing.T) {
	b := open(t, budget.Plan{Name: "tiles", Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB},
		{Name: "map", Size: 64 * budget.KiB}, {Name: "streets", Size: 64 * budget.KiB},
		{Name: "styles", Size: 64 * budget.KiB, On: "systems"}}})
	refused := func(err error, text string) {
		t.Helper()
		require.EqualError(t, err, `budget "tiles": `+text+": "+budget.ErrLoading.Error())
	}
	mustLoad(t, b, "map", func(s scope.Scope) {
		_, err := load(b, "streets", nil)
		refused(err, "Load of region streets refused during a Load of region map, on which streets stands; in the "+
			"function of that load call Load(ctx, streets.In(s), ...) with its scope s, elsewhere wait")
		refused(b.Region("systems").Rewind(background), "Rewind of region systems refused during a Load of region "+
			"map, which stands on systems; call it when that has returned")
		_, err = loadRegion(b.Region("styles").In(s), nil)
		refused(err, "Load of region styles refused inside a Load of region map: only regions that stand on map may "+
			"be touched")
		mustLoad(t, b, "styles", nil)
	})
	mustLoad(t, b, "systems", func(s scope.Scope) {
		styles := b.Region("styles")
		_, err := styles.Trim(background)
		refused(err, "Trim of region styles refused during a Load of region systems, on which styles stands; in the "+
			"function of that load call styles.In(s).Trim(ctx) with its scope s, elsewhere wait")
		mustLoadRegion(t, styles.In(s), func(scope.Scope) {
			refused(b.Region("map").In(s).Rewind(background), "Rewind of region map refused inside a Load of region "+
				"systems, during a Load of region styles there; wait for the inner one first")
			refused(b.Close(), "Close refused during a Load of region systems; call it when that has returned")
		})
	})
}

// TestSizesOfATree: the regions' places, and so their cost, are those of a plan without on, and
// each plan that is made of another one keeps on.
func TestSizesOfATree(t *testing.T) {
	plan := budget.Plan{Name: "tiles", Regions: []budget.RegionPlan{{Name: "systems", Size: budget.MiB},
		{Name: "map", Size: budget.MiB}, {Name: "styles", Size: budget.MiB, On: "systems"},
		{Name: "sound", Size: budget.MiB, On: budget.Root}}}
	chain := plan
	chain.Regions = slices.Clone(plan.Regions)
	ons := func(p budget.Plan) (list []string) {
		for _, r := range p.Regions {
			list = append(list, r.On)
		}
		return list
	}
	for i := range chain.Regions {
		chain.Regions[i].On = ""
	}
	cost, err := plan.Cost()
	require.NoError(t, err)
	ofChain, err := chain.Cost()
	require.NoError(t, err)
	require.Equal(t, ofChain, cost)
	require.Equal(t, ons(plan), ons(plan.Headroom(10)))

	report, err := budget.Measure(plan, func(b *budget.Budget) error {
		for _, name := range []string{"systems", "map", "styles", "sound", "map"} {
			if _, err := load(b, name, func(s scope.Scope) error {
				frogs.Slice(s, 100*len(name))
				return nil
			}); err != nil {
				return err
			}
		}
		if b.Region("styles").Report().Used == 0 || b.Region("sound").Report().Used == 0 {
			return errLoader
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, ons(plan), ons(report.Plan))
	require.EqualValues(t, 601*24, report.Plan.Regions[2].Size)
	suggested, err := budget.Suggest(report, report)
	require.NoError(t, err)
	require.Equal(t, ons(plan), ons(suggested))
}

// TestSiblingsAtOnce: two goroutines load and trim siblings while the program goes from frame to
// frame and publishes reports. No load is refused, and none ends its sibling.
func TestSiblingsAtOnce(t *testing.T) {
	plan := workersPlan(1)
	plan.Frame = budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}
	b := open(t, plan)
	var all sync.WaitGroup
	var left atomic.Int32
	for _, name := range []string{"map", "styles"} {
		left.Add(1)
		all.Go(func() {
			defer left.Add(-1)
			for n := range uint64(200) {
				loaded, err := budget.Load(background, b.Region(name), numbered(n))
				if !assert.NoError(t, err) || !assert.NotNil(t, loaded.Get()) {
					return
				}
				assert.Equal(t, n, *loaded.Get())
				_, err = b.Region(name).Trim(background)
				assert.NoError(t, err)
				assert.NotNil(t, loaded.Get())
			}
		})
	}
	for left.Load() > 0 {
		b.Frame().Bytes(8)
		assert.NoError(t, b.NextFrame())
		b.Published()
	}
	all.Wait()
}
