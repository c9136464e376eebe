package save

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// layout describes a snapshot: what a file has beside the bytes, and what gives them names. All
// sizes and offsets are bytes.
type layout struct {
	Plan  string       `json:"plan"`
	Parts []partLayout `json:"parts"`
	Types []typeLayout `json:"types"`
}

// partLayout is the state of one region. Its image is two words for each pool, how many chunks are
// free and how many retired, and then the bytes, up to a line of 64.
type partLayout struct {
	Region  string       `json:"region"`         // its name in the plan
	Slot    string       `json:"slot,omitempty"` // and that of the slot: what is of one fits another
	Mark    uint64       `json:"mark"`           // its first byte, counted from Region.Base
	Size    uint64       `json:"size"`
	Root    string       `json:"root"`         // its type
	Of      []subject    `json:"of,omitempty"` // that its play depends on
	Pools   []poolLayout `json:"pools,omitempty"`
	Kept    []keptLayout `json:"kept,omitempty"`
	Objects []object     `json:"objects,omitempty"` // by offset; only a checked build knows them
}

// poolLayout is a pool in a state. Offsets count from the state's first byte.
type poolLayout struct {
	Type    string `json:"type"`
	Count   uint64 `json:"count"`
	Stride  uint64 `json:"stride"`
	Offset  uint64 `json:"offset"`  // of chunk 0; states lie before it, the last chunk's first
	Numbers uint64 `json:"numbers"` // and of the numbers of free chunks, behind which generations lie
	Handles bool   `json:"handles,omitempty"`
}

// object is what a load asked for at once.
type object struct {
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"size"`
	Type   string `json:"type"` // of one
	Pool   bool   `json:"pool,omitempty"`
	Scope  string `json:"scope"`
	Label  string `json:"label,omitempty"`
	Made   string `json:"made,omitempty"` // function and file:line
}

// typeLayout is how a value lies in memory. Kind is that of package reflect for what is a number,
// which has a size in its name; struct, array; or ptr, slice, string, inline and handle for those
// of package arena.
type typeLayout struct {
	Name   string        `json:"name"`
	Kind   string        `json:"kind"`
	Size   uint64        `json:"size"`
	Of     string        `json:"of,omitempty"`    // of an array, a ptr, a slice
	Count  uint64        `json:"count,omitempty"` // of an array
	Fields []fieldLayout `json:"fields,omitempty"`
}

// fieldLayout is one of a struct.
type fieldLayout struct {
	Name   string `json:"name"`
	Offset uint64 `json:"offset"`
	Type   string `json:"type"`
}

// numbers are the kinds that have a size, which are types, too, that no layout lists.
var numbers = map[string]uint64{"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
	"uint8": 1, "uint16": 2,
	"uint32": 4, "uint64": 8, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16}

// The kinds of package arena.
const (
	kindPtr, kindSlice, kindString = "ptr", "slice", "string"
	kindInline, kindHandle         = "inline", "handle"
)

// describe is the layout of the ring's snapshots, worked out once.
func (r *Ring) describe() *layout {
	if r.layout != nil {
		return r.layout
	}
	d := describer{names: map[reflect.Type]string{}, used: map[string]int{}}
	d.Plan = r.parts[0].saved.Budget()
	for i := range r.parts {
		p := &r.parts[i]
		part := partLayout{Region: p.saved.Region(), Slot: p.saved.Slot(),
			Mark: p.mark - p.header().Start, Size: p.Size(), Root: d.name(p.root),
			Of: p.of}
		for k := range p.pools {
			pool, h := &p.pools[k], p.pools[k].header
			part.Pools = append(part.Pools, poolLayout{d.name(pool.of), uint64(h.Count), h.Stride,
				pool.first,
				pool.first + h.Numbers - h.Chunks, h.Handles != 0})
		}
		part.Kept = d.kept(p.tenants)
		d.Parts = append(d.Parts, part)
	}
	for i := range r.parts { // last: a release build has the same names for the others
		for _, m := range r.parts[i].made {
			part := &d.Parts[i]
			part.Objects = append(part.Objects, object{m.Offset - r.parts[i].mark, m.Size, d.name(m.Type),
				m.Pool, m.Scope, m.Label,
				firstCall(m.Site)})
		}
	}
	r.layout = &d.layout
	return r.layout
}

// firstCall is the newest call of a site.
func firstCall(s arena_c.Site) string {
	if calls := s.Calls(); len(calls) != 0 {
		return calls[0]
	}
	return ""
}

// folders are what a type's name has before the packages of what it is of.
var folders = regexp.MustCompile(`[^][{};*, ]+/`)

func typeName(t reflect.Type) string { return typeNameIn(t.String()) }

// typeNameIn is a type's name without the folders of packages.
func typeNameIn(name string) string { return folders.ReplaceAllString(name, "") }

// describer gives types names.
type describer struct {
	layout
	names map[reflect.Type]string
	used  map[string]int
}

// name is that of a type, which is described by now.
func (d *describer) name(t reflect.Type) string {
	if name, ok := d.names[t]; ok {
		return name
	}
	name := typeName(t)
	if numbers[name] != 0 {
		return name
	}
	if d.used[name]++; d.used[name] > 1 { // of another package
		name = fmt.Sprintf("%s#%d", name, d.used[name])
	}
	d.names[t] = name
	at := len(d.Types)
	d.Types = append(d.Types, typeLayout{Name: name})
	of := typeLayout{Name: name, Size: uint64(t.Size()), Kind: t.Kind().String()}
	generic, _, _ := strings.Cut(t.Name(), "[")
	to := pointsTo(t)
	switch ours := t.PkgPath() == arenaPath; {
	case to != nil && t.NumField() == 2:
		of.Kind, of.Of = kindPtr, d.name(to)
	case to != nil:
		of.Kind, of.Of = kindSlice, d.name(to)
	case ours && generic == "String":
		of.Kind, of.Of = kindString, "uint8"
	case ours && generic == "Inline":
		of.Kind = kindInline
	case ours && generic == "Handle":
		of.Kind = kindHandle
	case t.Kind() == reflect.Array:
		of.Of, of.Count = d.name(t.Elem()), uint64(t.Len())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Type.Size() != 0 {
				of.Fields = append(of.Fields, fieldLayout{f.Name, uint64(f.Offset), d.name(f.Type)})
			}
		}
	case of.Kind == "int", of.Kind == "uint":
		of.Kind += fmt.Sprint(8 * of.Size)
	}
	d.Types[at] = of
	return name
}

// fingerprint is over all that must be the same for a snapshot to fit: not where things were made.
func (l *layout) fingerprint() uint64 {
	same := layout{Plan: l.Plan, Parts: slices.Clone(l.Parts), Types: l.needed()}
	for i := range same.Parts {
		same.Parts[i].Objects, same.Parts[i].Slot = nil, ""
	}
	text, _ := json.Marshal(same) // of numbers and strings
	h := fnv.New64a()
	_, _ = h.Write(text) // it never fails
	return h.Sum64()
}

// needed are the types of roots and pools, and all that they are made of or point to, in this
// order.
func (l *layout) needed() (list []typeLayout) {
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
	}
	for len(names) != 0 {
		name := names[0]
		names = names[1:]
		t := known[name]
		if seen[name] || t == nil {
			continue
		}
		seen[name] = true
		list = append(list, *t)
		names = append(names, t.Of)
		for _, f := range t.Fields {
			names = append(names, f.Type)
		}
	}
	return list
}

// byName has the numbers, too.
func (l *layout) byName() map[string]*typeLayout {
	known := make(map[string]*typeLayout, len(l.Types)+len(numbers))
	for name, size := range numbers {
		known[name] = &typeLayout{Name: name, Kind: name, Size: size}
	}
	for i := range l.Types {
		known[l.Types[i].Name] = &l.Types[i]
	}
	return known
}

// imageSize is the bytes of a snapshot. pre: check has passed.
func (l *layout) imageSize() (size uint64) {
	for i := range l.Parts {
		_, _, size = l.Parts[i].span(size)
	}
	return size
}

// span is where the part's bytes lie in an image, its first word at begin, and where the next part
// begins.
func (p *partLayout) span(begin uint64) (from, to, next uint64) {
	from = begin + poolWords*uint64(len(p.Pools))
	to = from + p.Size
	return from, to, (to + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1)
}

// differs says in which way another layout differs first, which is a file's; "" when it doesn't.
// What is a cause comes before what follows from it.
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
		if text := here.differsOf(there); text != "" {
			return text
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
			case a != b:
				return differ(what, fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
			}
		}
		if text := here.differsKept(there); text != "" {
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

func (t *typeLayout) differs(file *typeLayout) string {
	if file == nil {
		return fmt.Sprintf("type %s: the file has none", t.Name)
	}
	for i := range min(len(t.Fields), len(file.Fields)) {
		a, b := t.Fields[i], file.Fields[i]
		switch {
		case a.Name != b.Name:
			return fmt.Sprintf("type %s, field %d: %s, in the file %s", t.Name, i, a.Name, b.Name)
		case a.Type != b.Type:
			return fmt.Sprintf("type %s, field %s: %s, in the file %s", t.Name, a.Name, a.Type, b.Type)
		case a.Offset != b.Offset:
			return fmt.Sprintf("type %s, field %s: at byte %d, in the file %d", t.Name, a.Name, a.Offset,
				b.Offset)
		}
	}
	switch {
	case len(t.Fields) != len(file.Fields):
		return fmt.Sprintf("type %s: %d fields, in the file %d", t.Name, len(t.Fields), len(file.Fields))
	case t.Size != file.Size:
		return fmt.Sprintf("type %s: %d bytes, in the file %d", t.Name, t.Size, file.Size)
	case t.Kind != file.Kind || t.Of != file.Of || t.Count != file.Count:
		return fmt.Sprintf("type %s: %s, in the file %s", t.Name, t.text(), file.text())
	}
	return ""
}

func (t *typeLayout) text() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", t.Kind, t.Of))
}
