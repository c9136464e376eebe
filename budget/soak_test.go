package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

const (
	soakMaps    = 12
	soakRound   = 100 // loads
	soakPages   = 512 // of 4 KiB that the process may gain: the Go runtime's own, which come and go
	soakObjects = 200 // of Go that may be live in addition
)

// soaking returns when a soak ends: after so many rounds, and not before UPFRONT_SOAK, a duration, is over.
func soaking(t *testing.T, rounds int) func(round int) bool {
	if testing.Short() {
		rounds = 1
	}
	var longer time.Duration
	if text := os.Getenv("UPFRONT_SOAK"); text != "" {
		var err error
		longer, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	end := time.Now().Add(longer)
	return func(round int) bool { return round < rounds || time.Now().Before(end) }
}

// How a random load ends.
const (
	endLoaded = iota
	endError
	endFull
	endPanic
	endGoexit
	endCount
	endThrough // as a load inside it: a panic or Goexit comes through
)

// soak loads maps in random order and looks at addresses and pages.
type soak struct {
	t         *testing.T
	b         *budget.Budget
	random    *rand.Rand
	rooms     []*budget.Region
	addresses map[string][]uint64 // of each thing that a map makes in a place, in order
	ends      [endThrough + 1]int
	nested    int
	shift     uint64 // bytes that each map makes first: the control
}

// placed is what a map made so far in a place, and where it ends.
type placed struct {
	script    *rand.Rand
	addresses []uint64
	end       int
}

func soakPlan() budget.Plan {
	return budget.Plan{Name: "soak", Regions: []budget.RegionPlan{{Name: "systems", Size: 256 * budget.KiB},
		{Name: "level", Size: 512 * budget.KiB}, {Name: "room", Size: 128 * budget.KiB, Slots: 3}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB},
		Limits:  budget.Limits{Scopes: 8, Pools: 32, Owned: 64, Labels: 8}}
}

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, b: open(t, soakPlan()), random: rand.New(rand.NewPCG(5, 4)), addresses: map[string][]uint64{}}
	for range s.b.Slots("room").Available() {
		s.rooms = append(s.rooms, acquire(t, s.b))
	}
	ran = make([]int64, 0, 1<<16)
	return s
}

// places are all that can be loaded, bottom first.
func (s *soak) places() []*budget.Region {
	return append([]*budget.Region{s.b.Region("systems"), s.b.Region("level")}, s.rooms...)
}

// load loads a map, which ends as it is told, unless one in it ends otherwise. calm says that all end well.
func (s *soak) load(r *budget.Region, place, number, end int, calm bool) (err error) {
	p := &placed{script: rand.New(rand.NewPCG(uint64(number), 6)), end: end}
	key := fmt.Sprintf("map %d in %s", number, r.Name())
	decided := false
	s.ends[end]++
	defer func() {
		s.compare(key, p.addresses, calm)
		if !decided && end != endPanic && end != endGoexit {
			s.ends[endThrough]++
		}
	}()
	l, err := budget.Load(background, r, func(sc scope.Scope) (*frog, error) {
		f := frogs.New(sc)
		p.addresses = append(p.addresses, placeOf(s.b, f))
		sc.Bytes(int(s.shift))
		steps := 4 + p.script.IntN(16)
		stop := steps
		if end != endLoaded {
			stop = s.random.IntN(steps + 1)
		}
		for range stop {
			s.make(p, sc, place, calm)
		}
		if p.script.IntN(2) == 0 {
			sc.Temp(9000)
		}
		return f, s.finish(sc, end)
	})
	decided = true
	assert.Equal(s.t, end == endLoaded, err == nil, "%s: %v", key, err)
	assert.Equal(s.t, end == endLoaded, l.Get() != nil, key)
	if end != endLoaded {
		assert.Zero(s.t, r.Report().Used, key)
	}
	return err
}

// make makes the next thing of a map. Whatever is decided here is decided by the map's number.
func (s *soak) make(p *placed, sc scope.Scope, place int, calm bool) {
	n := 1 + p.script.IntN(200)
	at := func(address uint64) { p.addresses = append(p.addresses, address) }
	switch p.script.IntN(8) {
	case 0:
		at(placeOf(s.b, newMark(sc, 1, 0)))
	case 1:
		at(placeOf(s.b, &frogs.Slice(sc, n)[0]))
	case 2:
		at(placeOf(s.b, &sc.Bytes(n)[0]))
	case 3:
		pool := frogs.Pool(sc, n)
		at(placeOf(s.b, pool.Get()))
	case 4:
		at(placeOf(s.b, &sc.Temp(20 * n).Bytes(20 * n)[0]))
	case 5:
		inner := sc.Open("inner")
		at(placeOf(s.b, frogs.New(inner)))
		at(placeOf(s.b, newMark(inner, 2, 0)))
		assert.NoError(s.t, inner.Close())
	case 6:
		sc.Own(&closer{3})
	default:
		number, above := p.script.IntN(soakMaps), place+1+p.script.IntN(4)
		if place > 1 || above > 4 {
			return
		}
		s.nested++
		end := endLoaded
		if !calm && s.random.IntN(4) == 0 {
			end = s.random.IntN(endCount)
		}
		_ = s.load(s.places()[above].In(sc), above, number, end, calm)
	}
}

func (s *soak) finish(sc scope.Scope, end int) error {
	switch end {
	case endError:
		return errLoader
	case endFull:
		frogs.Slice(sc, 1<<20)
	case endPanic:
		panic("boom")
	case endGoexit:
		runtime.Goexit()
	}
	return nil
}

// compare holds what a map made against what it made before; one that failed made only the first of it.
func (s *soak) compare(key string, addresses []uint64, whole bool) {
	known, ok := s.addresses[key]
	if !ok && whole {
		s.addresses[key], known = addresses, addresses
	}
	assert.LessOrEqual(s.t, len(addresses), len(known), key)
	assert.Equal(s.t, known[:min(len(known), len(addresses))], addresses, "%s: elsewhere than before", key)
}

// round loads each map in each place, or some at random.
func (s *soak) round(first bool) {
	for i := range soakRound {
		place, number, end := s.random.IntN(5), s.random.IntN(soakMaps), endLoaded
		if first && i < 5*soakMaps {
			place, number = i%5, i/5
		} else if !first && s.random.IntN(2) == 0 {
			end = s.random.IntN(endCount)
		}
		o := attempt(func() error { return s.load(s.places()[place], place, number, end, first) })
		assert.True(s.t, o.panicked == nil || o.panicked == "boom", "%v", o.panicked)
		if i%16 == 0 {
			room := s.random.IntN(len(s.rooms))
			assert.NoError(s.t, s.rooms[room].Release(background))
			s.rooms[room] = acquire(s.t, s.b)
			assert.NoError(s.t, s.b.Region([]string{"systems", "level"}[i%2]).Rewind(background))
		}
		assert.NoError(s.t, s.b.NextFrame())
		ran = ran[:0]
		requireWalk(s.t, s.b)
		s.present()
	}
}

// present says that no page of the budget is absent.
func (s *soak) present() {
	if platform.GoBacked {
		return // the pages are the runtime's
	}
	missing, ok := s.b.Missing()
	assert.True(s.t, !ok || missing == 0, "%d pages are absent", missing)
}

// footprint is what the process has: pages of 4 KiB, and live objects of Go.
type footprint struct{ pages, objects int }

// footprintNow collects all that is dead first. There are no pages where they aren't told.
func footprintNow(t *testing.T) (f footprint) {
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	f.objects = int(memory.HeapObjects)
	status, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, os.ErrNotExist) {
		return f
	}
	require.NoError(t, err)
	if _, rest, found := strings.Cut(string(status), "\nVmRSS:"); found {
		_, err = fmt.Sscan(rest, &f.pages)
		require.NoError(t, err)
	}
	f.pages /= 4
	return f
}

// grew says whether the process is larger than before.
func (f footprint) grew(before footprint) bool {
	if !instrumented && f.pages > before.pages+soakPages { // else there are books of every address and stack
		return true
	}
	return f.objects > before.objects+soakObjects
}

// TestSoak loads a thousand maps in random order, in regions and slots, some in each other, and half of them fail. The
// same map gives the same addresses, no page of the budget is ever absent, and the process doesn't grow. UPFRONT_SOAK=2m
// makes it longer.
func TestSoak(t *testing.T) {
	s, goes := newSoak(t), soaking(t, 10)
	for round := range 4 { // the Go runtime has what it needs after some
		s.round(round == 0)
	}
	before, after := footprintNow(t), footprint{}
	for round := 0; goes(round) && !t.Failed(); round++ {
		s.round(false)
		after = footprintNow(t)
		assert.False(t, after.grew(before), "round %d: %+v, then %+v", round, before, after)
	}
	for end, count := range s.ends {
		assert.Equal(t, end != endCount, count > 0, "loads that ended so: %d", end)
	}
	assert.Positive(t, s.nested)
	t.Logf("loaded, error, full, panic, Goexit, none, ended by one inside: %d; %d nested; %+v, then %+v", s.ends, s.nested, before, after)
}

// TestSoakSees is the control: what the soak looks for is seen when it is there.
func TestSoakSees(t *testing.T) {
	s := newSoak(t)
	s.round(true)
	watched := &testing.T{}
	s.t, s.shift = watched, 8
	assert.NoError(t, s.load(s.places()[1], 1, 3, endLoaded, true))
	assert.True(t, watched.Failed(), "a map that begins 8 bytes higher")

	plan := soakPlan()
	plan.Name, plan.Pages.Prefault = "absent", budget.Off
	plan.Limits.Scopes = 9 // another shape: not a range that was there
	absent := open(t, plan)
	if missing, ok := absent.Missing(); ok && !platform.GoBacked {
		watched = &testing.T{}
		(&soak{t: watched, b: absent}).present()
		assert.True(t, watched.Failed(), "pages that were never touched: %d", missing)
	}

	before := footprintNow(t)
	kept := make([]byte, 4*soakPages*4*budget.KiB)
	for i := range kept {
		kept[i] = 1
	}
	assert.True(t, before.pages == 0 || instrumented || footprintNow(t).grew(before), "a process with more pages")
	runtime.KeepAlive(kept)
	before = footprintNow(t)
	var leak []*int
	for range 2 * soakObjects {
		leak = append(leak, new(int), new(int))
	}
	assert.True(t, footprintNow(t).grew(before), "a process with more objects")
	runtime.KeepAlive(leak)
}
