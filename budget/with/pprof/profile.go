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

// Columns of a sample that scopes, labels and objects set. The columns of [budget.Figures] follow.
const (
	inuseObjects = iota
	allocObjects
	peakObjects
	allocated
	labelsInuse
	labelsAllocated
	labelsPeak
	scopesPeak
	outside
	figures

	counts = peakObjects + 1 // columns of objects
)

var (
	types, ofArena       = columns() // an arena's metrics are the columns from figures on
	planned, peak, inuse = column("planned_space"), column("peak_space"), column("inuse_space")
)

// columns returns all sample types, and the metrics of an arena among them: sums of bytes, and the
// peak.
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
		outside:         {Type: "outside_space", Unit: "bytes"},
	}
	names := map[string]string{"size": "planned_space", "used": "inuse_space", "arena_peak": "peak_space"}
	for _, f := range budget.Figures() {
		name := names[f.Name]
		if name == "" && (f.Most || !f.Bytes) {
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

const tables = "tables and padding"

// Profile returns the profile of a report, with the sample types and stacks of the package doc. The
// report may come from JSON. Profile fails if parts of the report have more bytes than their whole,
// or a sum exceeds 63 bits. Profile leaves the profile's TimeNanos 0. Set TimeNanos if you know the
// time. Cost: O(lines of the report), and Go allocations. Any goroutine may call Profile with a
// report of its own.
func Profile(r budget.Report) (*profile.Profile, error) {
	b := newBuilder(r)
	rest := r.Size
	for _, a := range r.Arenas {
		if a.Size > rest {
			return nil, fmt.Errorf("report of budget %q: its size of %d bytes is less than its arenas have",
				r.Name, r.Size)
		}
		rest -= a.Size
		if err := b.arena(a); err != nil {
			return nil, fmt.Errorf("report of budget %q: %s: %w", r.Name, a.Name, err)
		}
	}
	if r.CHeap.Name != "" {
		if err := b.arena(r.CHeap.ArenaReport); err != nil {
			return nil, fmt.Errorf("report of budget %q: %s: %w", r.Name, r.CHeap.Name, err)
		}
	}
	for _, q := range r.Quotas {
		if err := b.arena(q); err != nil {
			return nil, fmt.Errorf("report of budget %q: %s: %w", r.Name, q.Name, err)
		}
	}
	b.other(tables, planned, rest)
	b.other("outside", outside, r.Outside.Bytes)
	return b.done()
}

// other adds bytes that no arena has.
func (b *builder) other(what string, column int, bytes uint64) {
	if bytes == 0 {
		return
	}
	s := b.sample(b.root, nil)
	s.frames = append(s.frames, frame{name: what, file: b.root[0].file})
	s.tags["what"] = what
	s.values[column] = bytes
	b.add(s)
}

// frame is a level of a stack: a part of the budget, or a line of code.
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

type builder struct {
	p         *profile.Profile
	root      []frame
	locations map[frame]*profile.Location
	functions map[frame]*profile.Function // by name and file
	sums      []uint64                    // by types
}

func newBuilder(r budget.Report) *builder {
	name := shown(r.Name)
	// Without a mapping that has all names, the tool looks for a program to find them in.
	all := &profile.Mapping{ID: 1, File: name, HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
	return &builder{
		p:         &profile.Profile{Mapping: []*profile.Mapping{all}, DefaultSampleType: types[inuse].Type},
		root:      []frame{{name: "budget " + name, file: name}},
		locations: map[frame]*profile.Location{},
		functions: map[frame]*profile.Function{},
		sums:      make([]uint64, len(types)),
	}
}

// sample returns an empty sample below the frames.
func (b *builder) sample(frames []frame, tags map[string]string) *sample {
	s := &sample{frames: frames[:len(frames):len(frames)], tags: map[string]string{},
		values: make([]uint64, len(types))}
	for key, value := range tags {
		s.tags[key] = value
	}
	return s
}

// below returns a sample of a named part, such as "scope level", with a tag.
func (b *builder) below(s *sample, kind, name string) *sample {
	name = shown(name)
	inner := b.sample(s.frames, s.tags)
	inner.frames = append(inner.frames,
		frame{name: kind + " " + name, file: s.frames[len(s.frames)-1].file + "/" + name})
	inner.tags[kind] = name
	return inner
}

func (b *builder) add(s *sample) {
	if isZero(s.values) {
		return
	}
	line := &profile.Sample{Label: map[string][]string{}}
	for i := len(s.frames) - 1; i >= 0; i-- { // a profile's stack starts at the leaf
		line.Location = append(line.Location, b.location(s.frames[i]))
	}
	for key, value := range s.tags {
		line.Label[key] = []string{value}
	}
	for i, value := range s.values {
		b.sums[i] = plus(b.sums[i], value)
		line.Value = append(line.Value, int64(value)) // done checks that it fits
	}
	b.p.Sample = append(b.p.Sample, line)
}

func isZero(values []uint64) bool {
	return !slices.ContainsFunc(values, func(v uint64) bool { return v != 0 })
}

// plus returns a+b, or the largest number if that is too large.
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

// done returns the profile, without empty columns of objects and of minor metrics.
func (b *builder) done() (*profile.Profile, error) {
	var kept []int
	for i, sum := range b.sums {
		switch known := i < outside || i == planned || i == inuse || i == peak; {
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

// nameMax is about the number of bytes of a name that are shown, because the file of each level
// repeats the names above it.
const nameMax = 128

func shown(name string) string {
	name = jsonfile.Printable(name)
	for at := range name {
		if at >= nameMax {
			return name[:at]
		}
	}
	return name
}
