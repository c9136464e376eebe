package budget_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
)

// processHeap plays C's malloc: it takes any first plan, and the same again.
type processHeap struct {
	begun  []arena_c.ProcessPlan
	err    error
	refuse func(arena_c.ProcessPlan) (page string, err error)
	counts arena_c.ProcessCounts
	free   uint64

	at, again uint64
	crossed   func(used uint64)
	watchErr  error
}

func (h *processHeap) Begin(p arena_c.ProcessPlan) (page string, err error) {
	if h.refuse != nil {
		if page, err := h.refuse(p); err != nil {
			return page, err
		}
	}
	if h.err == nil {
		h.begun = append(h.begun, p)
	}
	return "", h.err
}
func (h *processHeap) Watch(at, again uint64, crossed func(uint64)) error {
	h.at, h.again, h.crossed = at, again, crossed
	return h.watchErr
}
func (h *processHeap) Counts() arena_c.ProcessCounts           { return h.counts }
func (h *processHeap) Trim() uint64                            { return h.free }
func (h *processHeap) WriteProfile(io.Writer) error            { return nil }
func (h *processHeap) Sampler(string) (unsafe.Pointer, uint32) { return nil, 0 }

func setProcessHeap(t *testing.T, h arena_c.ProcessHeap) {
	old := arena_c.ProcessHeapOf()
	arena_c.SetProcessHeap(h)
	t.Cleanup(func() { arena_c.SetProcessHeap(old) })
}

func cHeapPlan(size uint64) budget.Plan {
	return budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		CHeap: budget.CHeapPlan{Size: size, Reserve: budget.MiB, Fronts: 2}}
}

func TestCHeap(t *testing.T) {
	setProcessHeap(t, nil)
	_, err := budget.Open(cHeapPlan(64 * budget.MiB))
	assert.EqualError(t, err, `budget "pond": c_heap is 64MiB, but the program keeps C's own malloc; `+
		`import github.com/upfront-mem/upfront/arena/with/malloc, or remove c_heap`)

	h := &processHeap{err: errors.New("the static heap has 300 bytes in use")}
	setProcessHeap(t, h)
	_, err = budget.Open(cHeapPlan(64 * budget.MiB))
	assert.EqualError(t, err, `budget "pond": c_heap: the static heap has 300 bytes in use`)

	h.err = nil
	b := open(t, cHeapPlan(64*budget.MiB))
	require.Equal(t, []arena_c.ProcessPlan{{Size: 64 * budget.MiB, Reserve: budget.MiB, Fronts: 2,
		Profile: 512 * budget.KiB, Prefault: true}},
		h.begun)
	_, err = budget.Open(cHeapPlan(64 * budget.MiB))
	assert.EqualError(t, err, `budget "pond": c_heap: budget "pond", which is open, has C's malloc; remove c_heap here`)
	other := open(t, budget.Plan{Name: "other", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	for _, c := range []budget.CHeapPlan{{}, {Size: 32 * budget.MiB, Reserve: budget.MiB, Fronts: 2}} {
		plan := b.Plan()
		plan.CHeap = c
		assert.ErrorContains(t, b.Reconfigure(t.Context(), plan),
			`c_heap is {"size":"64MiB","reserve":"1MiB","fronts":2} and can't change`)
	}
	h.free = budget.GiB
	trimmed, err := other.Trim(t.Context())
	require.NoError(t, err)
	assert.Less(t, trimmed.Bytes, uint64(budget.GiB), "C's heap isn't this budget's")
	trimmed, err = b.Trim(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, trimmed.Bytes, uint64(budget.GiB))
	require.NoError(t, other.Close())

	require.NoError(t, b.Close())
	b = open(t, cHeapPlan(64*budget.MiB))
	assert.Len(t, h.begun, 2, "a later Open takes the heap")
	require.NoError(t, b.Close())
}

func TestCHeapOfAnotherBuild(t *testing.T) {
	setProcessHeap(t, &processHeap{err: fmt.Errorf("AddressSanitizer has a malloc of its own: %w",
		errors.ErrUnsupported)})
	b := open(t, cHeapPlan(64*budget.MiB))
	assert.Contains(t, b.Report().NotGranted, "c_heap: AddressSanitizer has a malloc of its own: unsupported operation")
	require.NoError(t, b.Close())
}

func TestCHeapReport(t *testing.T) {
	h := &processHeap{counts: arena_c.ProcessCounts{Size: 64 * budget.MiB, Used: 3 * budget.MiB, Peak: 5 * budget.MiB,
		Live: 7, Fulls: 2, FullSize: 60 * budget.MiB, FullUsed: 3 * budget.MiB,
		FullCaller: 0x1234, Static: budget.MiB, StaticUsed: 300, Trimmed: 8 * budget.KiB}}
	setProcessHeap(t, h)
	b := open(t, cHeapPlan(64*budget.MiB))
	defer func() { require.NoError(t, b.Close()) }()
	r := b.Published()
	assert.Equal(t, uint64(61*budget.MiB), r.CHeap.Free)
	assert.Equal(t,
		`budget "pond": C's malloc is full: 62914560 bytes asked by 0x1234; 63963136 of 67108864 were free, in pieces too small for it; set c_heap to 128MiB or more`,
		r.CHeap.LastFull)
	h.counts.Samples = budget.MiB
	h.counts.FullHolders, h.counts.FullHeld = [3]uintptr{0x4711, 0x4712}, [3]uint64{2 * budget.MiB, budget.MiB}
	with := b.Published().CHeap
	assert.Equal(t, uint64(60*budget.MiB), with.Free, "the samples take a part")
	assert.Contains(t, with.LastFull, " asked by 0x1234; the profile's largest users: 0x4711 (2048KiB), 0x4712 "+
		"(1024KiB); 62914560 of 66060288 were free")
	h.counts.Samples, h.counts.FullHolders, h.counts.FullHeld = 0, [3]uintptr{}, [3]uint64{}
	parts := r.Parts()
	last := parts[len(parts)-1]
	assert.Equal(t, "c_heap", last.Name)
	assert.Equal(t, uint64(5*budget.MiB), last.Value("arena_peak"))
	assert.Equal(t, uint64(2), last.Value("fulls"))
	assert.Contains(t, r.String(), "c_heap     [##+.............................] used    3072KiB  peak    5120KiB  "+
		"of   65536KiB\n")
	assert.Contains(t, r.String(), ", C heap 65536KiB\n")
	assert.Contains(t, r.String(), "\n  c_heap: full 2 times; the last: "+r.CHeap.LastFull+"\n")
	assert.NotContains(t, r.String(), "runtime")

	data, err := json.Marshal(r)
	require.NoError(t, err)
	var again budget.Report
	require.NoError(t, json.Unmarshal(data, &again))
	assert.Equal(t, r.CHeap, again.CHeap)

	// a request for Go's runtime, from a line of Go
	pc, _, _, _ := runtime.Caller(0)
	h.counts.Runtime, h.counts.RuntimeUsed, h.counts.RuntimePeak = 64*budget.KiB, 48*budget.KiB, 60*budget.KiB
	h.counts.FullRuntime, h.counts.FullSize, h.counts.FullUsed, h.counts.FullGo = true, 24*budget.KiB, 48*budget.KiB,
		[8]uintptr{pc}
	h.counts.Larges, h.counts.LargeSize = 1, 1<<63-1
	text := b.Report().String()
	assert.Contains(t, text, "c_heap: for Go's runtime used 48KiB, peak 60KiB, of 64KiB; refused once: larger than "+
		"the heap; the last of 9223372036854775807 bytes\n")
	assert.Regexp(t,
		`C's malloc is full: 24576 bytes asked by 0x1234, from Go at \S+\.TestCHeapReport \S+process_test.go:\d+; 16384 of 65536 of the part for Go's runtime were free; set c_heap.runtime to 128KiB or more`,
		text)

	h.counts = arena_c.ProcessCounts{Static: budget.MiB, StaticUsed: 300}
	first := b.Report().CHeap
	assert.Equal(t, uint64(budget.MiB), first.Size, "until a budget has a c_heap, the static heap is the bound")
	assert.Equal(t, []uint64{budget.MiB, 300}, []uint64{first.Static, first.StaticUsed})
	arena_c.SetProcessHeap(nil)
	assert.NotContains(t, b.Report().String(), "c_heap ")
	arena_c.SetProcessHeap(h)
}

// TestCHeapWarns: the heap is watched at its share, and a crossing is passed on.
func TestCHeapWarns(t *testing.T) {
	h := &processHeap{counts: arena_c.ProcessCounts{Size: 64 * budget.MiB}}
	setProcessHeap(t, h)
	plan := cHeapPlan(64 * budget.MiB)
	plan.CHeap.Warn, plan.CHeap.Runtime = 50, 2*budget.MiB
	var got []budget.Warning
	plan.OnWarn = func(w budget.Warning) { got = append(got, w) }
	b := open(t, plan)
	samples := arena_c.ProcessPlan{Size: 64 * budget.MiB, Profile: 512 * budget.KiB}.Samples()
	room := 61*budget.MiB - samples // without reserve, runtime and samples
	assert.Equal(t, []uint64{(room + 1) / 2, (room+1)/2 - (room+1)/2/10}, []uint64{h.at, h.again})
	line := timeline.Start(b, 16)
	sample := func(used uint64) {
		h.counts.Used, h.counts.Peak = used, max(used, h.counts.Peak)
		line.Sample()
	}
	sample(20 * budget.MiB)
	require.Empty(t, got)
	h.counts.Warnings, h.counts.Warned = 1, 33*budget.MiB
	h.crossed(33 * budget.MiB)
	require.Equal(t, []budget.Warning{{Arena: "c_heap", Key: "c_heap", Used: 33 * budget.MiB, Size: room, Share: 50}},
		got)
	sample(33 * budget.MiB)
	sample(33 * budget.MiB)
	r := b.Report()
	assert.Equal(t, 1, r.CHeap.Warnings)
	assert.Equal(t, uint64(33*budget.MiB), r.CHeap.LastWarning)
	assert.Zero(t, testing.AllocsPerRun(10, func() { _ = b.NextFrame(); line.Sample() }))
	arenas := line.Read().Arenas
	c := arenas[len(arenas)-1]
	assert.Equal(t, timeline.Arena{Name: "c_heap", Part: "c_heap", Kind: "c_heap", Size: 64 * budget.MiB, Most: c.Most,
		Marks: c.Marks}, c)
	assert.Equal(t, []uint64{20 * budget.MiB, 33 * budget.MiB, 33 * budget.MiB}, c.Most[:3])
	assert.Equal(t, []timeline.Mark{0, timeline.MarkWarn, 0}, c.Marks[:3])
	require.NoError(t, b.Close())
	assert.Nil(t, h.crossed, "Close ends the watch")

	h.watchErr = errors.New("the system refuses")
	_, err := budget.Open(plan)
	assert.EqualError(t, err, `budget "pond": c_heap.warn: the system refuses`)
	h.watchErr = nil
	require.NoError(t, open(t, plan).Close())
}

func TestCHeapPages(t *testing.T) {
	h := &processHeap{refuse: func(p arena_c.ProcessPlan) (page string, err error) {
		switch {
		case p.Lock:
			return "lock", errors.New("no rights")
		case p.Prefault:
			return "prefault", errors.New("no memory")
		}
		return "", nil
	}}
	setProcessHeap(t, h)
	plan := cHeapPlan(64 * budget.MiB)
	plan.Pages.Lock = budget.Wished
	b := open(t, plan)
	refused := b.Report().NotGranted
	assert.Contains(t, refused, "pages.lock: c_heap: no rights")
	assert.Contains(t, refused, "pages.prefault: c_heap: no memory")
	require.Len(t, h.begun, 1)
	require.NoError(t, b.Close())

	plan.Pages.Prefault = budget.Required
	_, err := budget.Open(plan)
	assert.EqualError(t, err, `budget "pond": c_heap: no memory`)
}
