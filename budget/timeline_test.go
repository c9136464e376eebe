package budget_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/scope"
)

func lineOfArena(t testing.TB, d timeline.Data, name string) timeline.Arena {
	t.Helper()
	i := slices.IndexFunc(d.Arenas, func(line timeline.Arena) bool { return line.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s in %v", name, d.Arenas)
	return d.Arenas[i]
}

type tick struct {
	most uint64
	mark timeline.Mark
}

// folded returns the samples that a timeline must have after all ticks: the step is the least power
// of two with which the ticks fit.
func folded(all []tick, samples int) (step uint64, most []uint64, marks []timeline.Mark) {
	for step = 1; (uint64(len(all))+step-1)/step > uint64(samples); step *= 2 {
	}
	most = []uint64{}
	var any timeline.Mark
	for some := range slices.Chunk(all, int(step)) {
		var sum tick
		for _, one := range some {
			sum.most, sum.mark = max(sum.most, one.most), sum.mark|one.mark
		}
		most, marks = append(most, sum.most), append(marks, sum.mark)
		any |= sum.mark
	}
	if any == 0 {
		marks = nil
	}
	return step, most, marks
}

// TestTimelineBesideAModel plays at random, and after each tick compares all samples with a list of
// every tick so far.
func TestTimelineBesideAModel(t *testing.T) {
	for _, samples := range []int{1, 2, 3, 5, 8, 13, 64} {
		t.Run(fmt.Sprint(samples), func(t *testing.T) {
			b := open(t, small())
			line := timeline.Start(b, samples)
			rng := rand.New(rand.NewPCG(uint64(samples), 2))
			play := &timelinePlay{t: t, b: b, rng: rng, seen: map[string][]tick{}, now: map[string]uint64{}}
			for range 300 {
				play.tick()
				line.Sample()
				play.compare(line.Read(), samples)
			}
			require.NoError(t, b.Close())
			line.Sample()
			play.compare(line.Read(), samples) // unchanged
		})
	}
}

// timelinePlay changes a budget, and keeps the timeline that it must then have.
type timelinePlay struct {
	t    *testing.T
	b    *budget.Budget
	rng  *rand.Rand
	seen map[string][]tick
	now  map[string]uint64 // the use of each arena
	this map[string]tick
	turn int
}

func (p *timelinePlay) tick() {
	p.this = map[string]tick{}
	for name, used := range p.now {
		p.this[name] = tick{most: used}
	}
	for range p.rng.IntN(3) {
		p.region([]string{"init", "systems", "level"}[p.rng.IntN(3)])
	}
	p.scratch()
	p.frame()
	for _, arena := range p.b.Published().Arenas {
		p.seen[arena.Name] = append(p.seen[arena.Name], p.this[arena.Name])
	}
}

func (p *timelinePlay) saw(name string, most, now uint64, mark timeline.Mark) {
	one := p.this[name]
	p.this[name] = tick{max(one.most, most), one.mark | mark}
	p.now[name] = now
}

// region loads or rewinds a region; the regions above it are emptied.
func (p *timelinePlay) region(name string) {
	order := []string{"init", "systems", "level"}
	for _, above := range order[slices.Index(order, name)+1:] {
		if p.now[above] != 0 {
			p.saw(above, p.now[above], 0, timeline.MarkRewind)
		}
	}
	size, temp := 8*(1+p.rng.IntN(1000)), 64*p.rng.IntN(500)
	switch p.rng.IntN(3) {
	case 0:
		if p.now[name] != 0 {
			p.saw(name, p.now[name], 0, timeline.MarkRewind)
		}
		require.NoError(p.t, p.b.Region(name).Rewind(background))
	case 1:
		_, err := load(p.b, name, func(s scope.Scope) error {
			s.Bytes(size)
			if temp != 0 {
				s.Temp(temp).Bytes(temp / 2)
			}
			return nil
		})
		require.NoError(p.t, err)
		r := p.b.Region(name).Report()
		used := frogSize + size
		if temp != 0 {
			used += tempNode
		}
		require.EqualValues(p.t, used, r.Used)
		require.GreaterOrEqual(p.t, r.LoadPeak, r.Used+uint64(temp))
		p.saw(name, r.LoadPeak, r.Used, timeline.MarkLoad)
	case 2:
		_, err := load(p.b, name, func(s scope.Scope) error { s.Bytes(size); s.Bytes(1 << 20); return nil })
		require.ErrorIs(p.t, err, budget.ErrFull)
		p.saw(name, uint64(frogSize+size), 0, timeline.MarkLoad|timeline.MarkFull)
	}
}

// frogSize and tempNode are the bytes that a load takes besides its own request.
const frogSize, tempNode = 24, 16

// scratch is used and released within the tick, so a look after the tick doesn't see the use.
func (p *timelinePlay) scratch() {
	if p.rng.IntN(2) == 0 {
		return
	}
	size, mark := 8*p.rng.IntN(1000), timeline.Mark(0)
	_ = p.b.Scratch(1, 0).Do("work", func(s scope.Scope) error {
		s.Bytes(size)
		if size%3 == 0 {
			mark = timeline.MarkFull
			s.Bytes(1 << 20)
		}
		return nil
	})
	p.saw("scratch 1.0", uint64(size), 0, mark)
}

func (p *timelinePlay) frame() {
	size, inner := 8*p.rng.IntN(1000), 8*p.rng.IntN(1000)
	p.b.Frame().Bytes(size)
	if p.rng.IntN(2) == 0 {
		s := p.b.Frame().Open("inner")
		s.Bytes(inner)
		require.NoError(p.t, s.Close())
	} else {
		inner = 0
	}
	require.NoError(p.t, p.b.NextFrame())
	ending, next := fmt.Sprint("frame ", p.turn%2), fmt.Sprint("frame ", (p.turn+1)%2)
	p.saw(ending, uint64(size+inner), uint64(size), 0)
	p.saw(next, 0, 0, 0)
	p.turn++
}

func (p *timelinePlay) compare(d timeline.Data, samples int) {
	for _, line := range d.Arenas {
		step, most, marks := folded(p.seen[line.Name], samples)
		require.Equal(p.t, step, d.Step)
		require.EqualValues(p.t, p.turn, d.Ticks)
		require.Equal(p.t, most, line.Most, line.Name)
		require.Equal(p.t, marks, line.Marks, line.Name)
	}
}

func TestTimelineOfWhatSlotsAndLeasesDo(t *testing.T) {
	plan := small()
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "room", Size: 64 * budget.KiB, Slots: 2})
	b := open(t, plan)
	line := timeline.Start(b, 0)
	room, err := b.Slots("room").Acquire()
	require.NoError(t, err)
	_, err = loadRegion(room, nil)
	require.NoError(t, err)
	lent := take(t, b)
	require.NoError(t, lent.Scratch(0).Do("reply", func(s scope.Scope) error { s.Bytes(4000); return nil }))
	line.Sample()
	require.NoError(t, lent.Release())
	require.NoError(t, room.Release(background))
	line.Sample()
	line.Sample()

	d := line.Read()
	assert.Equal(t, timeline.Data{Budget: "small", Step: 1, Ticks: 3, Arenas: d.Arenas}, d)
	assert.Equal(t, timeline.Arena{Name: "room 0", Part: "room", Kind: "slot", Size: 64 * budget.KiB,
		Most:  []uint64{24, 24, 0},
		Marks: []timeline.Mark{timeline.MarkLoad, timeline.MarkRewind, 0}}, lineOfArena(t, d, "room 0"))
	assert.Nil(t, lineOfArena(t, d, "room 1").Marks)
	reply := lineOfArena(t, d, "scratch 1.0")
	assert.Equal(t, "scratch", reply.Part)
	assert.Equal(t, []uint64{0, 4000, 0}, reply.Most, "a lease's peak is known when it ends")
	assert.Equal(t, "load, full", (timeline.MarkLoad | timeline.MarkFull).String())

	text, err := json.Marshal(d)
	require.NoError(t, err)
	var back timeline.Data
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, d, back)
}

// TestTimelineOfNestedLoads: a load inside another load has one mark.
func TestTimelineOfNestedLoads(t *testing.T) {
	b := open(t, small())
	line := timeline.Start(b, 0)
	_, err := budget.Load(background, b.Region("systems"), func(s scope.Scope) (*frog, error) {
		_, err := budget.Load(background, b.Region("level").In(s), func(s scope.Scope) (*frog, error) {
			s.Temp(64 * budget.KiB)
			return frogs.New(s), nil
		})
		line.Sample()
		line.Sample()
		return frogs.New(s), err
	})
	require.NoError(t, err)
	line.Sample()
	level, systems := lineOfArena(t, line.Read(), "level"), lineOfArena(t, line.Read(), "systems")
	assert.Greater(t, level.Most[0], uint64(64*budget.KiB))
	assert.Equal(t, []uint64{frogSize + tempNode, frogSize + tempNode}, level.Most[1:],
		"the peak is that of the tick in which its load ended")
	assert.Equal(t, []timeline.Mark{timeline.MarkLoad, 0, 0}, level.Marks)
	assert.Equal(t, []uint64{0, 0, 24}, systems.Most)
	assert.Equal(t, []timeline.Mark{0, 0, timeline.MarkLoad}, systems.Marks)
}

func TestTimelineAfterReconfigure(t *testing.T) {
	b := open(t, small())
	line := timeline.Start(b, 0)
	mustLoad(t, b, "systems", nil)
	line.Sample()
	require.NoError(t, b.Region("systems").Rewind(background))
	plan := b.Plan()
	plan.Regions[1].Size, plan.Regions[2].Size = 192*budget.KiB, 640*budget.KiB
	require.NoError(t, b.Reconfigure(background, plan))
	line.Sample()
	line.Sample()
	systems := lineOfArena(t, line.Read(), "systems")
	assert.EqualValues(t, 192*budget.KiB, systems.Size)
	assert.Equal(t, []uint64{24, 24, 0}, systems.Most)
	assert.Equal(t, []timeline.Mark{timeline.MarkLoad, timeline.MarkRewind | timeline.MarkMoved, 0}, systems.Marks)
}

// TestNoTimeline: a timeline that is off is nil, and its methods do nothing.
func TestNoTimeline(t *testing.T) {
	var off *timeline.Timeline
	off.Sample()
	assert.Zero(t, off.Read())
	b := open(t, small())
	timeline.Start(b, 1)
	assert.Contains(t, panics(t, func() { timeline.Start(b, 1) }), "a second timeline.Start")
	assert.Contains(t, panics(t, func() { timeline.Start(b, -1) }), "-1 samples")
	sealed := open(t, small())
	require.NoError(t, sealed.Seal())
	assert.Contains(t, panics(t, func() { timeline.Start(sealed, 1) }), "after Seal")
	require.NoError(t, sealed.Close())
	assert.Contains(t, panics(t, func() { timeline.Start(sealed, 1) }), "closed")
}

// TestTimelineLeavesTheReportAsItIs: a timeline changes no figure of the report, although it resets
// peaks.
func TestTimelineLeavesTheReportAsItIs(t *testing.T) {
	reports := map[bool]budget.Report{}
	for _, on := range []bool{false, true} {
		b := open(t, small())
		if on {
			timeline.Start(b, 4)
		}
		for i := range 20 {
			b.Frame().Bytes(8 * (i * 7 % 11))
			_ = b.Scratch(0, 0).Do("x", func(s scope.Scope) error { s.Bytes(8 * (i * 5 % 13)); return nil })
			if i%6 == 0 {
				mustLoad(t, b, "level", func(s scope.Scope) { s.Temp(8 * (i + 1)) })
			}
			require.NoError(t, b.NextFrame())
		}
		r := quiet(b)
		r.Resident = 0
		reports[on] = r
		r = planned(b.Published())
		r.Resident = 0
		require.Equal(t, reports[on], r)
		require.NoError(t, b.Close())
	}
	assert.Equal(t, reports[false], reports[true])
}

// TestTimelineIsReadWhileOthersWork: owners load, one goroutine reads, one samples. The timeline
// counts all ticks, and no peak is lost.
func TestTimelineIsReadWhileOthersWork(t *testing.T) {
	plan := small()
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "room", Size: 64 * budget.KiB, Slots: 3})
	b := open(t, plan)
	line := timeline.Start(b, 7)
	b.Scratch(0, 0)
	var all sync.WaitGroup
	var over atomic.Bool
	var most [3]uint64
	for i := range 3 {
		room, err := b.Slots("room").Acquire()
		require.NoError(t, err)
		all.Go(func() {
			for n := uint64(1); !over.Load(); n++ {
				size := 24 + n*8*2654435761%(60*budget.KiB)&^7
				_, err := loadRegion(room, func(s scope.Scope) error { s.Bytes(int(size) - 24); return nil })
				assert.NoError(t, err)
				most[i] = max(most[i], size)
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for last := uint64(0); !over.Load(); {
				d := line.Read()
				assert.GreaterOrEqual(t, d.Ticks, last)
				last = d.Ticks
				for _, line := range d.Arenas {
					assert.EqualValues(t, (d.Ticks+d.Step-1)/d.Step, len(line.Most))
				}
			}
		})
	}
	for range 2000 {
		b.Frame().Bytes(16)
		require.NoError(t, b.NextFrame())
		line.Sample()
	}
	over.Store(true)
	all.Wait()
	line.Sample()
	d := line.Read()
	assert.EqualValues(t, 2001, d.Ticks, "those that a reader held up were written later")
	for i := range 3 {
		assert.Equal(t, most[i], slices.Max(lineOfArena(t, d, fmt.Sprint("room ", i)).Most))
	}
}

// eightyFour is a plan with as many arenas as a server of 64 rooms.
func eightyFour() budget.Plan {
	plan := small()
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "room", Size: budget.KiB, Slots: 64})
	plan.Scratch.Workers = 7
	plan.Frame.Buffers = 3
	return plan
}

func TestSampleAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate: go test ./budget runs it")
	}
	b := open(t, eightyFour())
	line := timeline.Start(b, 5)
	require.Len(t, line.Read().Arenas, 84)
	b.Scratch(0, 0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		frogs.New(b.Frame())
		s := b.Scratch(0, 0).Open("x")
		frogs.New(s)
		_ = s.Close()
		_ = b.NextFrame()
		line.Sample()
	}))
}

// BenchmarkSample measures a tick, by arena, of a budget with 84 arenas.
func BenchmarkSample(t *testing.B) {
	b := open(t, eightyFour())
	line := timeline.Start(b, 0)
	arenas := len(line.Read().Arenas)
	for t.Loop() {
		line.Sample()
	}
	t.ReportMetric(float64(t.Elapsed().Nanoseconds())/float64(t.N)/float64(arenas), "ns/arena")
}

// TestReportHasTheLastFull: the published figures have the last full of each arena.
func TestReportHasTheLastFull(t *testing.T) {
	b := open(t, small())
	_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(1 << 20); return nil })
	require.ErrorIs(t, err, budget.ErrFull)
	for _, r := range []budget.ArenaReport{b.Report().Arenas[2], b.Published().Arenas[2], b.Region("level").Report()} {
		assert.Equal(t, 1, r.Fulls)
		assert.Equal(t, err.Error(), r.LastFull)
	}
	require.ErrorIs(t, b.Scratch(0, 0).Do("work", func(s scope.Scope) error { s.Bytes(1 << 20); return nil }),
		budget.ErrFull)
	frogs.TrySlice(b.Frame(), 1<<20)
	scratch := func() budget.ArenaReport { return beside(b.Published())[2] }
	assert.Zero(t, scratch().Fulls, "not yet")
	assert.ErrorIs(t, b.NextFrame(), budget.ErrFull)
	assert.Equal(t, 1, scratch().Fulls)
	assert.Contains(t, scratch().LastFull, `scratch 0.0 is full: scope "work"`)
	assert.Contains(t, beside(b.Published())[0].LastFull, `frame 0 is full`)
	assert.Empty(t, beside(b.Published())[1].LastFull)
	mustLoad(t, b, "level", nil)
	assert.Equal(t, 1, b.Published().Arenas[2].Fulls, "since Open")
	requireRoundTrip(t, b.Published())
	_ = b.Close()
	assert.Contains(t, b.Report().Arenas[2].LastFull, "level is full")
}
