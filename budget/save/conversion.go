package save

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unsafe"
)

// Conversion is a line of the plan by which a file of older types converts: a field, type, pool or
// container that differs. Refused lines must be listed in [State.Version].
type Conversion struct {
	Name       string // "game.Frog.Age", "pool of game.Frog"
	File, Here string // the type or size in the file, and in the program; "" for missing
	Action     string // "wider", "new: zero", `missing: list save.Dropped("game.Frog.Age")`
	Refused    bool
}

// ConvertFiles returns the plan by which a program reads file a, of an older version. against is a
// file that the program wrote after its load. The list is empty if nothing differs. ConvertFiles
// doesn't run the functions of [Converted], and looks into no container: [Ring.Read] may still
// refuse the file. It fails if a file is damaged, if the programs have other plans, regions or
// data, if the program has no [State.Version], or an older one, and for snapshots of more than 1
// GiB.
func ConvertFiles(a, against io.Reader) (list []Conversion, err error) {
	var files [2]*file
	for i, rd := range []io.Reader{a, against} {
		if files[i], err = readFile(rd); err != nil {
			return nil, fmt.Errorf("%s: %w", []string{"A", "B"}[i], err)
		}
	}
	old, now := files[0], files[1]
	if old.Fingerprint == now.Fingerprint {
		return nil, nil
	}
	if slices.ContainsFunc(now.Layout.Parts, func(p partLayout) bool { return p.Version == 0 }) {
		return nil, errors.New("save: the program of B has no State.Version, so it converts no file")
	}
	p, err := planOf(old.Layout, now.Layout, nil)
	if err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	if old.Layout.bare() == now.Layout.bare() && p.isSame() {
		return slices.DeleteFunc(p.rows, func(r Conversion) bool { return r.Refused }), nil
	}
	if p.refused() == "" {
		if err := p.convert(old.Image, slices.Clone(now.Image), now.Image, nil); err != nil {
			p.rows = append(p.rows, Conversion{Name: "a value", Action: err.Error(), Refused: true})
		}
	}
	return p.rows, nil
}

// plan is the conversion of a file's snapshots into another layout's. Each part has its pairs of
// types, and pairs of arrays of values. Planning reads no snapshot.
type plan struct {
	from, to *layout
	parts    []*partPlan
	rows     []Conversion
}

type partPlan struct {
	plan       *plan
	known      [2]map[string]*typeLayout // of the file, and here
	file, here *partLayout
	changes    []changeLayout // to apply, in order
	calls      []Change       // for each of them; nil if only the layouts are known
	pairs      map[[2]*typeLayout]*pair
	root       *pair
	pools      []poolPair
	kept       []keptPair
	values     []valuesPair
	covered    []span // other bytes of the file's state: dropped pools and containers
	lost       []int  // dropped pools
}

type poolPair struct {
	pair       *pair
	file, here int
}

type keptPair struct {
	file, here int
	values     []*pair // for each Values of both
}

type valuesPair struct {
	pair       *pair
	file, here *valuesLayout
}

// pair is a type of the file and its type here.
type pair struct {
	old, now *typeLayout
	action   pairAction
	of       *pair // of arrays and links
	fields   []fieldPair
	numbers  map[int64]int64 // of enumerators; nil if they have the same numbers
	calls    []callPair
	why      string // why it can't be converted; "" if it can
}

type pairAction uint8

const (
	pairSkip   pairAction = iota // only a function converts it
	pairCopy                     // the same bytes
	pairNumber                   // another size, or enumerators that were renumbered
	pairArray
	pairStruct
	pairLink
	pairHandle
)

type fieldPair struct {
	name    string // in the file
	old, to uint64 // offsets
	pair    *pair
}

// callPair is a function of Converted, with the fields that it reads.
type callPair struct {
	call   func(fill func(old []byte), now unsafe.Pointer)
	copies []fieldPair // of pairs of equal types
}

// planOf returns the plan for a file. calls are the changes of each part here, or nil.
func planOf(from, to *layout, calls func(part int) []Change) (*plan, error) {
	p := &plan{from: from, to: to}
	if from.Plan != to.Plan {
		return nil, fmt.Errorf("the plan: %q here, and %q in the file", to.Plan, from.Plan)
	}
	if len(from.Parts) != len(to.Parts) {
		return nil, fmt.Errorf("regions with a state: %d here, and %d in the file", len(to.Parts), len(from.Parts))
	}
	for i := range to.Parts {
		file, here := &from.Parts[i], &to.Parts[i]
		switch text := differIn("the state of region %[2]s depends on %[3]s here, and on %[4]s in the file",
			here.Region, "nothing", here.Of, file.Of, (*subject).String); {
		case file.Region != here.Region:
			return nil, fmt.Errorf("the region: %s here, and %s in the file", here.Region, file.Region)
		case text != "":
			return nil, fmt.Errorf("%s", text)
		case file.Version > here.Version:
			return nil, fmt.Errorf("the version of region %s: %d here, and %d in the file, which is newer",
				here.Region, here.Version, file.Version)
		}
		c := &partPlan{plan: p, known: [2]map[string]*typeLayout{from.byName(), to.byName()}, file: file, here: here,
			pairs: map[[2]*typeLayout]*pair{}}
		for k, change := range here.Changes {
			if change.Version > file.Version {
				c.changes = append(c.changes, change)
				if calls != nil {
					c.calls = append(c.calls, calls(i)[k])
				}
			}
		}
		p.parts = append(p.parts, c)
		c.all()
	}
	return p, nil
}

// refused returns the first refused row with the number of further ones, or "".
func (p *plan) refused() string {
	text, more := "", 0
	for _, r := range p.rows {
		switch {
		case !r.Refused:
		case text == "":
			text = r.String()
		default:
			more++
		}
	}
	if more != 0 {
		text += fmt.Sprintf(" (and %d more: upfront save convert lists them)", more)
	}
	return text
}

// String returns the line as [Ring.Read] writes it in an error.
func (r Conversion) String() string {
	is := ""
	switch {
	case r.File != "" && r.Here != "":
		is = fmt.Sprintf(" (%s here, and %s in the file)", r.Here, r.File)
	case r.File != "" || r.Here != "":
		is = fmt.Sprintf(" (%s)", cmp.Or(r.File, r.Here))
	}
	return r.Name + is + ": " + r.Action
}

// byFunction is the action of a refused row that a function converts.
const byFunction = "%s: list save.Converted with a function"

func (c *partPlan) row(refused bool, name, file, here, action string, args ...any) {
	c.plan.rows = append(c.plan.rows, Conversion{name, file, here, fmt.Sprintf(action, args...), refused})
}

func (c *partPlan) all() {
	for _, h := range c.file.Heaps {
		c.row(true, "heap of State.Heap", fmt.Sprintf("%d bytes", h.Size), "", "heaps "+notConverted)
	}
	for _, r := range c.file.Rooms {
		c.row(true, r.Name, fmt.Sprintf("%d bytes", r.Size), "", "allocators and graphs "+notConverted)
	}
	if c.root = c.pair(c.known[0][c.file.Root], c.known[1][c.here.Root]); c.root.why != "" {
		c.row(true, "root of region "+c.here.Region, c.file.Root, c.here.Root, "%s", c.root.why)
	}
	c.planPools()
	c.planKept()
	c.planValues()
}

var typeTokens = regexp.MustCompile(`[\pL_][\pL\pN_]*\.[\pL_][\pL\pN_]*`)

// nameNow returns the name here of a type of the file, or of a name of State.Name. All changes of a
// version name the types of the version before, so their order doesn't matter.
func (c *partPlan) nameNow(name string) string {
	before, version := name, uint32(0)
	for _, change := range c.changes {
		if change.Version != version {
			before, version = name, change.Version
		}
		if change.Kind == changeRenamed && change.Name == before {
			name = change.To
		}
	}
	return name
}

// typeNow is nameNow for a type with type arguments or elements.
func (c *partPlan) typeNow(name string) string {
	return typeTokens.ReplaceAllStringFunc(name, c.nameNow)
}

// memberNow returns the name here of a field or an enumerator of a type of the file, or dropped.
func (c *partPlan) memberNow(of, name string) (now string, dropped bool) {
	before, version, now := of+"."+name, uint32(0), name
	for _, change := range c.changes {
		if change.Version != version {
			before, version = of+"."+now, change.Version
		}
		switch is := change.Name == before; {
		case change.Kind == changeDropped && is:
			return name, true
		case change.Kind == changeRenamed && is:
			now = change.To
		case change.Kind == changeRenamed && strings.HasPrefix(before, change.Name+"."):
			of = change.To
		}
	}
	return now, false
}

func (c *partPlan) lists(kind, name string) bool {
	return slices.ContainsFunc(c.changes, func(l changeLayout) bool { return l.Kind == kind && l.Name == name })
}

// pair returns the pair of two types. It adds the rows of their fields.
func (c *partPlan) pair(old, now *typeLayout) *pair {
	key := [2]*typeLayout{old, now}
	if p := c.pairs[key]; p != nil {
		return p
	}
	p := &pair{old: old, now: now}
	c.pairs[key] = p
	p.why = c.fill(p)
	return p
}

// isNamed reports whether a program declared the type under a name.
func isNamed(t *typeLayout) bool {
	at := strings.IndexByte(t.Name, '.')
	return at > 0 && !strings.ContainsAny(t.Name[:at], "[{ ")
}

func (c *partPlan) fill(p *pair) (why string) {
	old, now := p.old, p.now
	if whole, why := c.calledFor(p); whole || why != "" {
		return why
	}
	was, is := numbers[old.Kind], numbers[now.Kind]
	switch {
	case was != nil && is != nil:
		if isNamed(old) && isNamed(now) && c.typeNow(old.Name) != now.Name {
			return "another type"
		}
		return c.fillNumber(p)
	case old.Kind != now.Kind:
		return "another type"
	case old.Kind == kindPtr, old.Kind == kindSlice, old.Kind == kindString:
		p.action, p.of = pairLink, c.pair(old.of, now.of)
		return p.of.why
	case (isNamed(old) || isNamed(now)) && old.Kind != kindInline && c.typeNow(old.Name) != now.Name:
		return "another type"
	case old.Kind == kindHandle:
		p.action = pairHandle
	case old.Kind == kindInline:
		if p.action = pairCopy; old.Size > now.Size {
			return "shorter"
		}
	case old.Kind == "array":
		if old.Count > now.Count {
			return "shorter"
		}
		p.action, p.of = pairArray, c.pair(old.of, now.of)
		return p.of.why
	default:
		p.action = pairStruct
		c.fillStruct(p)
	}
	return ""
}

func (c *partPlan) fillNumber(p *pair) (why string) {
	old, now := p.old, p.now
	from, to := old.Kind, now.Kind
	family := func(kind string) string { return strings.TrimRight(kind, "0123456789") }
	switch {
	case from == to:
		p.action = pairCopy
	case family(from) == family(to) && old.Size < now.Size, family(from) == "uint" && family(to) == "int" &&
		old.Size < now.Size:
		p.action = pairNumber
	case isInteger(from) && isInteger(to), family(from) == family(to):
		return "narrower, or with another sign"
	default:
		return "another type"
	}
	if len(old.Enum) != 0 && len(now.Enum) != 0 {
		c.fillEnum(p)
	}
	return ""
}

// fillEnum compares the enumerators of two types.
func (c *partPlan) fillEnum(p *pair) {
	values, changed := map[int64]int64{}, false
	for _, e := range p.old.Enum {
		name, dropped := c.memberNow(p.old.Name, e.Name)
		k := slices.IndexFunc(p.now.Enum, func(n enumerator) bool { return n.Name == name })
		full, number := p.old.Name+"."+e.Name, fmt.Sprint(e.Value)
		switch {
		case dropped:
			changed = true
			c.row(false, full, number, "", "dropped, if no value is %d", e.Value)
		case k < 0:
			c.row(true, full, number, "", "missing: list save.Dropped(%q), or save.Renamed", full)
		case p.now.Enum[k].Value != e.Value && !c.lists(changeRenumbered, p.old.Name) &&
			!c.lists(changeRenumbered, p.now.Name):
			c.row(true, full, number, fmt.Sprint(p.now.Enum[k].Value), "renumbered: list save.Renumbered(%q)",
				p.old.Name)
		default:
			values[e.Value] = p.now.Enum[k].Value
			if p.now.Enum[k].Value != e.Value {
				changed = true
				c.row(false, full, number, fmt.Sprint(p.now.Enum[k].Value), "renumbered")
			}
		}
	}
	if changed {
		p.action, p.numbers = pairNumber, values
	}
}

func (c *partPlan) fillStruct(p *pair) {
	taken := map[string]bool{}
	for _, f := range p.old.Fields {
		if f.Name == "_" {
			continue
		}
		full := p.old.Name + "." + f.Name
		name, dropped := c.memberNow(p.old.Name, f.Name)
		k := slices.IndexFunc(p.now.Fields, func(g fieldLayout) bool { return g.Name == name && name != "_" })
		called := slices.ContainsFunc(p.calls, func(call callPair) bool {
			return slices.ContainsFunc(call.copies, func(g fieldPair) bool { return g.name == f.Name })
		})
		switch {
		case dropped:
			c.row(false, full, f.Type, "", "dropped")
			continue
		case k < 0 && called:
			c.row(false, full, f.Type, "", "read by a function")
			continue
		case k < 0 || taken[name]:
			c.row(true, full, f.Type, "", "missing: list save.Dropped(%q), or save.Renamed", full)
			continue
		}
		g := &p.now.Fields[k]
		taken[name] = true
		switch of := c.pair(f.of, g.of); {
		case of.why != "" && called:
			c.row(false, full, f.Type, g.Type, "by a function")
		case of.why != "":
			c.row(true, full, f.Type, g.Type, byFunction, of.why)
		default:
			p.fields = append(p.fields, fieldPair{f.Name, f.Offset, g.Offset, of})
			switch {
			case name != f.Name:
				c.row(false, full, f.Type, g.Type, "renamed to %s", name)
			case f.of.Kind != g.of.Kind:
				c.row(false, full, f.Type, g.Type, "wider")
			case f.of.Count < g.of.Count || f.of.Kind == kindInline && f.of.Size < g.of.Size:
				c.row(false, full, f.Type, g.Type, "longer")
			}
		}
	}
	if len(p.calls) != 0 {
		c.row(false, p.old.Name, fmt.Sprintf("%d bytes", p.old.Size), fmt.Sprintf("%d bytes", p.now.Size),
			"by a function")
	}
	for _, g := range p.now.Fields {
		if g.Name != "_" && !taken[g.Name] {
			c.row(false, p.now.Name+"."+g.Name, "", g.Type, "new")
		}
	}
}

// calledFor adds the functions of Converted to a pair. whole reports whether a function converts
// the whole value.
func (c *partPlan) calledFor(p *pair) (whole bool, why string) {
	for i, change := range c.changes {
		if change.Kind != changeByFunction || change.Name != p.now.Name {
			continue
		}
		is := c.known[1][change.Old]
		call := callPair{}
		if c.calls != nil {
			call.call = c.calls[i].call
		}
		if is.Kind != "struct" || p.old.Kind != "struct" || p.now.Kind != "struct" {
			if !sameShape(is, p.old) {
				return true, fmt.Sprintf("its function reads %s, which isn't the type in the file", is.Name)
			}
			call.copies, whole = []fieldPair{{"", 0, 0, &pair{old: p.old, now: is}}}, true
			c.row(false, p.old.Name, p.old.Kind, p.now.Kind, "by a function")
		} else {
			for _, f := range is.Fields {
				k := slices.IndexFunc(p.old.Fields, func(g fieldLayout) bool { return g.Name == f.Name })
				if f.Name == "_" {
					continue
				}
				if k < 0 || !sameShape(f.of, p.old.Fields[k].of) {
					return true, fmt.Sprintf("its function reads %s.%s %s, which the file's %s doesn't have",
						is.Name, f.Name, f.Type, p.old.Name)
				}
				g := &p.old.Fields[k]
				call.copies = append(call.copies, fieldPair{f.Name, g.Offset, f.Offset, &pair{old: g.of, now: f.of}})
			}
		}
		p.calls = append(p.calls, call)
	}
	return whole, ""
}

// sameShape reports whether two types have the same bytes: names of types don't count.
func sameShape(a, b *typeLayout) bool {
	if a.Kind != b.Kind || a.Size != b.Size || a.Count != b.Count || len(a.Fields) != len(b.Fields) || isReference(a) {
		return false
	}
	for i := range a.Fields {
		f, g := &a.Fields[i], &b.Fields[i]
		if f.Name != g.Name || f.Offset != g.Offset || !sameShape(f.of, g.of) {
			return false
		}
	}
	return a.Kind != "array" || sameShape(a.of, b.of)
}

// thingKey identifies a pool, a container or Values in both layouts.
type thingKey struct {
	kind   string // "pool", "container.List"
	called string
	of     string // its type
	count  uint64
	unit   string // "chunks", "values"
}

func (k *thingKey) size() string { return fmt.Sprintf("%d %s", k.count, k.unit) }

func (k *thingKey) name() string {
	text := k.of
	if strings.HasPrefix(k.kind, "pool") || k.kind == "values" {
		text = k.kind + " of " + k.of
	}
	if k.called != "" {
		text = fmt.Sprintf("%s (%s)", k.called, text)
	}
	return text
}

// match pairs the pools, containers or Values of a file with those here. It calls both for each
// pair, and lost for each that is dropped.
func (c *partPlan) match(old, now []thingKey, both func(i, k int), lost func(i int)) {
	taken, pairs := make([]bool, len(now)), make([]int, len(old))
	for i := range old {
		pairs[i] = -1
		called := c.nameNow(old[i].called)
		if old[i].called == "" || c.lists(changeDropped, old[i].called) {
			continue
		}
		k := slices.IndexFunc(now, func(n thingKey) bool { return n.called == called && n.kind == old[i].kind })
		if k >= 0 && !taken[k] {
			taken[k], pairs[i] = true, k
		}
	}
	ambiguous := map[int]bool{}
	for i := range old {
		if old[i].called != "" || pairs[i] >= 0 || c.lists(changeDropped, old[i].of) {
			continue
		}
		like := func(k thingKey) bool { return k.kind == old[i].kind && k.of == c.typeNow(old[i].of) }
		var file, free, unnamed []int // of this type
		for k := range old {
			if old[k].kind == old[i].kind && old[k].of == old[i].of && old[k].called == "" {
				file = append(file, k)
			}
		}
		for k := range now {
			if like(now[k]) && !taken[k] {
				if free = append(free, k); now[k].called == "" {
					unnamed = append(unnamed, k)
				}
			}
		}
		switch { // this is the first of its type
		case len(file) == len(unnamed):
			free = unnamed
		case len(file) != len(free):
			ambiguous[i] = len(free) != 0
			free = nil
		}
		for n, k := range free {
			taken[k], pairs[file[n]] = true, k
		}
	}
	for i := range old {
		key := &old[i]
		list := cmp.Or(key.called, key.of)
		switch {
		case pairs[i] >= 0:
			switch n := &now[pairs[i]]; {
			case key.count > n.count:
				c.row(true, key.name(), key.size(), n.size(), "smaller")
			case key.called != n.called && key.called != "":
				c.row(false, key.name(), key.size(), n.size(), "renamed to %s", n.called)
			case key.count < n.count:
				c.row(false, n.name(), key.size(), n.size(), "larger")
			}
			both(i, pairs[i])
		case c.lists(changeDropped, list):
			c.row(false, key.name(), key.size(), "", "dropped")
			lost(i)
		case ambiguous[i]:
			c.row(true, key.name(), key.size(), "", "another number of them here: name them with State.Name, "+
				"in an older version")
		default:
			c.row(true, key.name(), key.size(), "", "missing: list save.Dropped(%q)", list)
		}
	}
	for k := range now {
		if !taken[k] {
			c.row(false, now[k].name(), "", now[k].size(), "new: as the load makes it")
		}
	}
}

// valuesPlan returns the pair of the types of values. It adds a row if they don't convert.
func (c *partPlan) valuesPlan(name, file, here string) *pair {
	p := c.pair(c.known[0][file], c.known[1][here])
	if p.why != "" {
		c.row(true, name, file, here, byFunction, p.why)
	}
	return p
}

func (c *partPlan) planPools() {
	keys := func(p *partLayout) (list []thingKey) {
		for _, q := range p.Pools {
			kind := "pool"
			if q.Handles {
				kind = "pool with handles"
			}
			list = append(list, thingKey{kind, q.Name, q.Type, q.Count, "chunks"})
		}
		return list
	}
	old, now := keys(c.file), keys(c.here)
	c.match(old, now, func(i, k int) {
		c.pools = append(c.pools, poolPair{c.valuesPlan(old[i].name(), old[i].of, now[k].of), i, k})
	}, func(i int) {
		q := &c.file.Pools[i]
		c.covered = append(c.covered, span{q.Numbers, q.Offset + q.Count*q.Stride})
		c.lost = append(c.lost, i)
	})
}

func (c *partPlan) planKept() {
	keys := func(p *partLayout) (list []thingKey) {
		for i := range p.Kept {
			k := &p.Kept[i]
			kind, _, _ := strings.Cut(k.Name, "[")
			list = append(list, thingKey{kind, k.Called, k.Name, k.capacity(), "values"})
		}
		return list
	}
	old, now := keys(c.file), keys(c.here)
	for i := range old {
		if !strings.HasPrefix(old[i].kind, "container.") {
			c.row(true, old[i].name(), fmt.Sprintf("%d bytes", c.file.Kept[i].Size), "", "caches "+notConverted)
		}
	}
	c.match(old, now, func(i, k int) {
		file, here := &c.file.Kept[i], &c.here.Kept[k]
		if len(file.Values) == 0 || len(file.Values) != len(here.Values) {
			c.row(true, old[i].name(), old[i].size(), now[k].size(), "containers of values without bytes "+notConverted)
		}
		pair := keptPair{file: i, here: k}
		for n := range min(len(file.Values), len(here.Values)) {
			v, w := &file.Values[n], &here.Values[n]
			if v.What != w.What {
				c.row(true, old[i].name(), v.What, w.What, "another container")
			}
			pair.values = append(pair.values, c.valuesPlan(v.What+" of "+old[i].name(), v.Type, w.Type))
		}
		c.kept = append(c.kept, pair)
	}, func(i int) {
		k := &c.file.Kept[i]
		c.covered = append(c.covered, span{k.Offset, k.Offset + k.Size})
	})
}

// capacity returns the number of values, or 0 if the layout has none.
func (k *keptLayout) capacity() uint64 {
	if len(k.Values) == 0 {
		return 0
	}
	return k.Values[0].Count
}

func (c *partPlan) planValues() {
	keys := func(p *partLayout) (list []thingKey) {
		for _, v := range p.Values {
			list = append(list, thingKey{"values", v.What, v.Type, v.Count, "values"})
		}
		return list
	}
	if c.file.Version == 0 { // it doesn't say
		return
	}
	old, now := keys(c.file), keys(c.here)
	c.match(old, now, func(i, k int) {
		p := c.valuesPlan(old[i].name(), old[i].of, now[k].of)
		c.values = append(c.values, valuesPair{p, &c.file.Values[i], &c.here.Values[k]})
	}, func(i int) {
		v := &c.file.Values[i]
		c.covered = append(c.covered, span{v.Offset, v.Offset + v.Count*c.known[0][v.Type].Size})
	})
}
