package save

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// layout describes a snapshot, for files and for names of fields. All sizes and offsets are bytes.
type layout struct {
	Plan  string        `json:"plan"`
	Parts []partLayout  `json:"parts"`
	Types []*typeLayout `json:"types"`
}

// partLayout is the state of one region. Its flat image is two 32-bit words for each pool, the
// counts of free and retired chunks, and then the bytes, padded to a cache line. See pack.go for
// the packed form.
type partLayout struct {
	Region string `json:"region"` // the name in the plan
	// Slot is the slot's name; a snapshot of one slot fits another.
	Slot    string       `json:"slot,omitempty"`
	Version uint32       `json:"version,omitempty"` // of State.Version
	Mark    uint64       `json:"mark"`              // the first byte, counted from Region.Base
	Size    uint64       `json:"size"`
	Root    string       `json:"root"`
	Of      []subject    `json:"of,omitempty"` // data that its play depends on
	Pools   []poolLayout `json:"pools,omitempty"`
	Kept    []keptLayout `json:"kept,omitempty"`
	Heaps   []heapLayout `json:"heaps,omitempty"`
	// Values and Rooms are only in files of a program with a State.Version.
	Values  []valuesLayout `json:"values,omitempty"` // of Values
	Rooms   []roomLayout   `json:"rooms,omitempty"`  // allocators
	Changes []changeLayout `json:"changes,omitempty"`
	Objects []object       `json:"objects,omitempty"` // sorted by offset; in checked builds only
}

// poolLayout is a pool in a state. Offsets count from the state's first byte.
type poolLayout struct {
	Type   string `json:"type"`
	Count  uint64 `json:"count"`
	Stride uint64 `json:"stride"`
	// Offset is that of chunk 0; the chunks' states precede it, the last chunk's first.
	Offset  uint64 `json:"offset"`
	Numbers uint64 `json:"numbers"` // of the numbers of free chunks; generations follow them
	Handles bool   `json:"handles,omitempty"`
	Name    string `json:"name,omitempty"` // of State.Name
	// Mask is the bits of a generation that count, in files of a program with a State.Version.
	Mask uint32 `json:"mask,omitempty"`
}

// roomLayout is an allocator in a state.
type roomLayout struct {
	Name   string `json:"name"` // "arena.Buddy"
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
}

// heapLayout is a heap whose free bytes aren't in the image. Offset counts from the state's first
// byte.
type heapLayout struct {
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
}

type object struct {
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
	Type   string `json:"type"` // of one value
	Pool   bool   `json:"pool,omitempty"`
	Scope  string `json:"scope"`
	Label  string `json:"label,omitempty"`
	Made   string `json:"made,omitempty"` // function and file:line
}

// describe returns the layout of the ring's snapshots.
func (r *Ring) describe() *layout {
	if r.layout != nil {
		return r.layout
	}
	d := describer{enums: map[reflect.Type][]enumerator{}}
	for i := range r.parts {
		maps.Copy(d.enums, r.parts[i].enums)
	}
	l := &layout{Plan: r.parts[0].saved.Budget}
	for i := range r.parts {
		p := &r.parts[i]
		part := partLayout{Region: p.saved.Region, Slot: p.saved.Slot,
			Mark: p.mark - p.header().Start, Size: p.Size(), Root: d.of(p.root).Name,
			Version: p.version,
			Of:      p.of}
		for k := range p.pools {
			pool, h := &p.pools[k], p.pools[k].header
			part.Pools = append(part.Pools, poolLayout{d.of(pool.of).Name, uint64(h.Count), h.Stride,
				pool.first,
				pool.first + h.Numbers - h.Chunks, h.Handles != 0, pool.name, 0})
			if p.version != 0 {
				part.Pools[k].Mask = h.Handles
			}
		}
		part.Kept = d.kept(p.tenants)
		for k := range p.heaps {
			part.Heaps = append(part.Heaps, heapLayout{p.heaps[k].at, p.heaps[k].size})
		}
		if p.version != 0 {
			part.Values, part.Rooms = d.values(p.values), roomsOf(p.tenants)
		}
		l.Parts = append(l.Parts, part)
	}
	for i := range r.parts { // last, so that a release build has the same names for other types
		for _, m := range r.parts[i].made {
			o := object{Offset: m.Offset - r.parts[i].mark, Size: m.Size, Type: d.of(m.Type).Name, Pool: m.Pool,
				Scope: m.Scope, Label: m.Label}
			if calls := m.Site.Calls(); len(calls) != 0 {
				o.Made = calls[0]
			}
			l.Parts[i].Objects = append(l.Parts[i].Objects, o)
		}
	}
	for i := range r.parts {
		for _, c := range r.parts[i].changes {
			if c.old != nil {
				c.is.Name, c.is.Old = d.of(c.now).Name, d.of(c.old).Name
			}
			l.Parts[i].Changes = append(l.Parts[i].Changes, c.is)
		}
	}
	l.Types, r.layout = d.Types, l
	return l
}

// fingerprint returns a hash of all that must be equal for a snapshot to fit.
func (l *layout) fingerprint() uint64 {
	same := layout{Plan: l.Plan, Parts: slices.Clone(l.Parts), Types: l.needed()}
	for i := range same.Parts {
		same.Parts[i].Objects, same.Parts[i].Changes, same.Parts[i].Slot = nil, nil, ""
	}
	text, _ := json.Marshal(same) // never fails
	h := fnv.New64a()
	_, _ = h.Write(text) // never fails
	return h.Sum64()
}

// needed returns the types of roots, pools and containers, and then all types that these contain or
// point to.
func (l *layout) needed() (list []*typeLayout) {
	known, seen := l.byName(), map[string]bool{}
	var names []string
	for i := range l.Parts {
		names = append(names, l.Parts[i].Root)
		for _, p := range l.Parts[i].Pools {
			names = append(names, p.Type)
		}
		for _, k := range l.Parts[i].Kept {
			for _, v := range k.Values {
				names = append(names, v.Type)
			}
		}
		for _, v := range l.Parts[i].Values {
			names = append(names, v.Type)
		}
	}
	for ; len(names) != 0; names = names[1:] {
		t := known[names[0]]
		if t == nil || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		list, names = append(list, t), append(names, t.Of)
		for _, f := range t.Fields {
			names = append(names, f.Type)
		}
	}
	return list
}

func (l *layout) byName() map[string]*typeLayout {
	known := maps.Clone(numbers)
	for _, t := range l.Types {
		if t != nil { // any may be nil in a file
			known[t.Name] = t
		}
	}
	return known
}

// shapes returns the shapes of the parts.
func (l *layout) shapes() (list []shape) {
	for i := range l.Parts {
		p := &l.Parts[i]
		s := shape{pools: len(p.Pools), size: p.Size}
		for _, h := range p.Heaps {
			s.heaps = append(s.heaps, span{h.Offset, h.Offset + h.Size})
		}
		list = append(list, s)
	}
	return list
}

// sizes returns the bytes of a flat image, and of those outside of packed heaps. pre: check has
// passed.
func (l *layout) sizes() (flat, fixed uint64) {
	heaps := uint64(0)
	for i := range l.Parts {
		_, _, flat = l.Parts[i].span(flat)
		for _, h := range l.Parts[i].Heaps {
			heaps += h.Size
		}
	}
	return flat, flat - heaps
}

// span returns the range of the part's bytes in an image, and the next part's start.
func (p *partLayout) span(begin uint64) (from, to, next uint64) {
	from = begin + poolWords*uint64(len(p.Pools))
	to = from + p.Size
	return from, to, (to + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1)
}

// differs returns the first difference from a file's layout, or "". Causes come before effects.
func (l *layout) differs(file *layout) string {
	differ := func(what string, here, there any) string {
		return fmt.Sprintf("%s: %v here, and %v in the file", what, here, there)
	}
	if l.Plan != file.Plan {
		return differ("the plan", fmt.Sprintf("%q", l.Plan), fmt.Sprintf("%q", file.Plan))
	}
	if len(l.Parts) != len(file.Parts) {
		return differ("regions with a state", len(l.Parts), len(file.Parts))
	}
	for i := range l.Parts {
		here, there := &l.Parts[i], &file.Parts[i]
		if here.Region != there.Region {
			return differ("the region", here.Region, there.Region)
		}
		if text := differIn("the state of region %[2]s depends on %[3]s here, and on %[4]s in the file",
			here.Region, "nothing", here.Of, there.Of, (*subject).String); text != "" {
			return text
		}
		if here.Version != there.Version {
			return differ("the version of region "+here.Region, here.Version, there.Version)
		}
		if here.Root != there.Root {
			return differ("the root of region "+here.Region, here.Root, there.Root)
		}
		for k := range min(len(here.Pools), len(there.Pools)) {
			if a, b := &here.Pools[k], &there.Pools[k]; a.Type != b.Type {
				return differ(fmt.Sprintf("pool %d of region %s", k, here.Region), a.Type, b.Type)
			}
		}
		if len(here.Pools) != len(there.Pools) {
			return differ("pools of region "+here.Region, len(here.Pools), len(there.Pools))
		}
		for k := range min(len(here.Kept), len(there.Kept)) {
			if a, b := here.Kept[k].Name, there.Kept[k].Name; a != b {
				return differ(fmt.Sprintf("container %d of region %s", k, here.Region), a, b)
			}
		}
	}
	known := file.byName()
	for _, t := range l.needed() {
		if text := t.differs(known[t.Name]); text != "" {
			return text
		}
	}
	for i := range l.Parts {
		here, there := &l.Parts[i], &file.Parts[i]
		for k := range here.Pools {
			a, b := here.Pools[k], there.Pools[k]
			switch what := "the pool of " + a.Type; {
			case a.Count != b.Count:
				return fmt.Sprintf("%s has %d chunks here, and %d in the file", what, a.Count, b.Count)
			case a.Name != b.Name:
				return differ("the name of "+what, fmt.Sprintf("%q", a.Name), fmt.Sprintf("%q", b.Name))
			case a != b:
				return differ(what, fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
			}
		}
		if text := differIn("container %d of region %s: %s here, and %s in the file", here.Region, "none",
			here.Kept, there.Kept, (*keptLayout).String); text != "" {
			return text
		}
		if text := differIn("heap %d of State.Heap in region %s: %s here, and %s in the file", here.Region, "none",
			here.Heaps, there.Heaps, (*heapLayout).String); text != "" {
			return text
		}
		if text := differIn("values %d of save.Values in region %s: %s here, and %s in the file", here.Region, "none",
			here.Values, there.Values, (*valuesLayout).String); text != "" {
			return text
		}
		if here.Mark != there.Mark {
			return differ("bytes before the state of region "+here.Region, here.Mark, there.Mark)
		}
		if here.Size != there.Size {
			return differ("bytes of the state of region "+here.Region, here.Size, there.Size)
		}
	}
	return ""
}

func (h *heapLayout) String() string { return fmt.Sprintf("%d bytes at %#x", h.Size, h.Offset) }
