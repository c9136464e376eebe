package pprof

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// The columns of a sample that names have. Those of the figures follow.
const (
	inuseObjects = iota
	allocObjects
	peakObjects
	allocated
	labelsInuse
	labelsAllocated
	labelsPeak
	scopesPeak
	figures

	counts = peakObjects + 1 // columns that are of objects
)

var (
	types, ofArena       = columns() // the figures of an arena are the columns from figures on
	planned, peak, inuse = column("planned_space"), column("peak_space"), column("inuse_space")
)

// columns has those of names, and of the figures those that add up over arenas, in bytes, and the peak.
func columns() (types []*profile.ValueType, ofArena []budget.Figure) {
	types = []*profile.ValueType{
		inuseObjects:    {Type: "inuse_objects", Unit: "count"},
		allocObjects:    {Type: "alloc_objects", Unit: "count"},
		peakObjects:     {Type: "scopes_peak_objects", Unit: "count"},
		allocated:       {Type: "alloc_space", Unit: "bytes"},
		labelsInuse:     {Type: "labels_inuse_space", Unit: "bytes"},
		labelsAllocated: {Type: "labels_alloc_space", Unit: "bytes"},
		labelsPeak:      {Type: "labels_peak_space", Unit: "bytes"},
		scopesPeak:      {Type: "scopes_peak_space", Unit: "bytes"},
	}
	names := map[string]string{"size": "planned_space", "used": "inuse_space", "arena_peak": "peak_space"}
	for _, f := range budget.Figures() {
		name := names[f.Name]
		if name == "" && (f.Most || f.Unit != budget.Bytes) {
			continue
		}
		types = append(types, &profile.ValueType{Type: cmp.Or(name, f.Name+"_space"), Unit: "bytes"})
		ofArena = append(ofArena, f)
	}
	return types, ofArena
}

func column(name string) int {
	return slices.IndexFunc(types, func(t *profile.ValueType) bool { return t.Type == name })
}

// tables is the function of what a plan takes beyond its arenas.
const tables = "tables and edges"

// Profile is what lives in a budget, as a profile: its sample types and stacks are those that the
// package lists. The report may come from JSON. An error says what in it contradicts itself, or is
// beyond 63 bits. It has no time: set TimeNanos where one is known. Cost: O(lines of the report)
// and Go allocations; any goroutine may call it with a report of its own.
func Profile(r budget.Report) (*profile.Profile, error) {
	b := newBuilder(r)
	rest := r.Size
	for _, a := range r.Arenas {
		if a.Size > rest {
			return nil, fmt.Errorf("report of budget %q: %d bytes are less than its parts have", r.Name, r.Size)
		}
		rest -= a.Size
		if err := b.arena(a); err != nil {
			return nil, fmt.Errorf("report of budget %q: %s: %w", r.Name, a.Name, err)
		}
	}
	if rest != 0 {
		s := b.sample(b.root, nil)
		s.frames = append(s.frames, frame{name: tables, file: b.root[0].file})
		s.tags["what"] = tables
		s.values[planned] = rest
		b.add(s)
	}
	return b.done()
}

// frame is a level of a stack: a part of the budget by its name, or a line of code.
type frame struct {
	name, file string
	line       int64
}

// sample is a stack, the budget first, and its values.
type sample struct {
	frames []frame
	tags   map[string]string
	values []uint64 // by types
}

// builder makes a profile of samples.
type builder struct {
	p         *profile.Profile
	root      []frame
	locations map[frame]*profile.Location
	functions map[frame]*profile.Function // by name and file
	sums      []uint64                    // by types
}

func newBuilder(r budget.Report) *builder {
	name := shown(r.Name)
	// A mapping that says that it has all names: else the tool looks for a program to find them in.
	all := &profile.Mapping{ID: 1, File: name, HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
	return &builder{
		p:         &profile.Profile{Mapping: []*profile.Mapping{all}, DefaultSampleType: types[inuse].Type},
		root:      []frame{{name: "budget " + name, file: name}},
		locations: map[frame]*profile.Location{},
		functions: map[frame]*profile.Function{},
		sums:      make([]uint64, len(types)),
	}
}

// sample begins one below the frames.
func (b *builder) sample(frames []frame, tags map[string]string) *sample {
	s := &sample{frames: frames[:len(frames):len(frames)], tags: map[string]string{}, values: make([]uint64, len(types))}
	for key, value := range tags {
		s.tags[key] = value
	}
	return s
}

// below is a sample of a part that has a name: "scope level", with a tag of its own.
func (b *builder) below(s *sample, kind, name string) *sample {
	name = shown(name)
	inner := b.sample(s.frames, s.tags)
	inner.frames = append(inner.frames, frame{name: kind + " " + name, file: s.frames[len(s.frames)-1].file + "/" + name})
	inner.tags[kind] = name
	return inner
}

// add adds a sample, unless it says nothing.
func (b *builder) add(s *sample) {
	if isZero(s.values) {
		return
	}
	line := &profile.Sample{Label: map[string][]string{}}
	for i := len(s.frames) - 1; i >= 0; i-- { // a profile's stacks begin at the leaf
		line.Location = append(line.Location, b.location(s.frames[i]))
	}
	for key, value := range s.tags {
		line.Label[key] = []string{value}
	}
	for i, value := range s.values {
		b.sums[i] = plus(b.sums[i], value)
		line.Value = append(line.Value, int64(value)) // done looks whether it fits
	}
	b.p.Sample = append(b.p.Sample, line)
}

func isZero(values []uint64) bool {
	return !slices.ContainsFunc(values, func(v uint64) bool { return v != 0 })
}

// plus is a sum that stays at the largest number.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

func (b *builder) location(f frame) *profile.Location {
	if l := b.locations[f]; l != nil {
		return l
	}
	line := profile.Line{Function: b.function(frame{name: f.name, file: f.file}), Line: f.line}
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: b.p.Mapping[0], Line: []profile.Line{line}}
	b.p.Location, b.locations[f] = append(b.p.Location, l), l
	return l
}

func (b *builder) function(of frame) *profile.Function {
	if f := b.functions[of]; f != nil {
		return f
	}
	f := &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: of.name, SystemName: of.name, Filename: of.file}
	b.p.Function, b.functions[of] = append(b.p.Function, f), f
	return f
}

// done is the profile, without the columns of objects where none were counted, and without those of other figures that
// nobody has.
func (b *builder) done() (*profile.Profile, error) {
	var kept []int
	for i, sum := range b.sums {
		switch known := i < figures || i == planned || i == inuse || i == peak; {
		case sum > math.MaxInt64:
			return nil, fmt.Errorf("report of %s: %s is beyond 63 bits", b.root[0].name, types[i].Type)
		case i < counts && isZero(b.sums[:counts]), !known && sum == 0:
			continue
		}
		kept = append(kept, i)
		b.p.SampleType = append(b.p.SampleType, &profile.ValueType{Type: types[i].Type, Unit: types[i].Unit})
	}
	for _, s := range b.p.Sample {
		for to, from := range kept {
			s.Value[to] = s.Value[from]
		}
		s.Value = s.Value[:len(kept)]
	}
	return b.p, b.p.CheckValid()
}

// nameMax is how many bytes of a name are shown, about: the file of each level repeats those of the levels above.
const nameMax = 128

// shown is a name as a level has it.
func shown(name string) string {
	name = jsonfile.Printable(name)
	for at := range name {
		if at >= nameMax {
			return name[:at]
		}
	}
	return name
}
