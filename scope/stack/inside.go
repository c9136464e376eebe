package stack

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Piece is a part of an arena: an object, a node (work that a scope does when it closes), or bytes
// of unknown content. Offsets count from the arena's first byte.
type Piece struct {
	Offset, Size, Padding uint64 // the padding is before the offset
	Kind                  string
	Scope, Label          string
	// turn of the piece's node, at its end of the arena: 1 runs first; 0: the piece has no node
	Order int
	Pool  *arena_c.Pool

	made, typed uint32
	node        chainNode // of the piece, if Order isn't 0
}

// The kinds of pieces.
const (
	kindPlain   = "plain"   // an object
	kindObject  = "object"  // an object with a finalizer
	kindObjects = "objects" // objects with a finalizer, made at once
	kindOwned   = "owned"   // a word with the number of a Go value
	kindPool    = "pool"    // a pool's chunks and its own words
	kindNode    = "node"    // words of the scope: nodes, labels included
	kindBytes   = "bytes"   // objects and their padding, which only checked builds distinguish
	kindPadding = "padding" // bytes after the last object of a scope or label
	kindReserve = "reserve" // free bytes of temporaries
)

// Made returns the place that made the piece, in checked builds.
func (p *Piece) Made() arena_c.Site { return arena_c.SiteOf(p.made) }

// Type returns the type of the piece, or "" if it isn't known.
func (p *Piece) Type() string {
	if class := p.node.finalizes(); class != 0 {
		return shortType(strings.TrimPrefix(classes.name[class%classesMax], FinalizerOf))
	}
	return shortType(arena_c.Text(p.typed))
}

// Ends returns the action of the piece's node, such as "finalizer of T", or "" if the node has no
// action left.
func (p *Piece) Ends(st *Stack) string {
	switch p.node.class {
	case arena_c.ClassNone:
		return ""
	case arena_c.ClassC:
		return "a finalizer of C"
	case arena_c.ClassPool:
		return "end of a pool"
	case arena_c.ClassTemp:
		return "end of temporaries"
	case classLabel:
		return "end of label " + st.labels.lines[(*labelNode)(p.node.object).line].name
	case classOwned:
		return st.OwnedAt(*(*uint64)(p.node.object))
	}
	return classes.name[p.node.finalizes()%classesMax]
}

// shortType returns a type's name without the folders of packages: "map[a.B]c.D" for
// "map[x/a.B]y/z/c.D". Package regexp would cost each program 100 KiB.
func shortType(name string) string {
	if !strings.Contains(name, "/") { // most names
		return name
	}
	var b strings.Builder
	for name != "" {
		end := strings.IndexAny(name, "][{};*, ")
		if end < 0 {
			end = len(name)
		}
		b.WriteString(name[strings.LastIndexByte(name[:end], '/')+1 : end])
		after := min(end+1, len(name))
		b.WriteString(name[end:after])
		name = name[after:]
	}
	return b.String()
}

// Site sums up the objects of an arena that share scope, label, type and calls. The Bytes of all
// sites add up to the used bytes. All objects without bytes, and the free bytes of temporaries, are
// in Sites without calls. Type and Made are empty before [Sites.Tell].
type Site struct {
	Scope   string   `json:"scope,omitempty"`
	Label   string   `json:"label,omitempty"`
	Type    string   `json:"type,omitempty"`
	Made    []string `json:"made,omitempty"` // the calls that made them, the newest first
	Bytes   uint64   `json:"bytes"`
	Padding uint64   `json:"padding,omitempty"` // of Bytes
	Objects uint64   `json:"objects,omitempty"`

	piece Piece
}

// Calls has the text of the calls of each place once.
type Calls map[arena_c.Site][]string

// Of returns the calls that lead to a place, the newest first.
func (c Calls) Of(site arena_c.Site) []string {
	lines, ok := c[site]
	if !ok {
		lines = site.Calls()
		c[site] = lines
	}
	return lines
}

// Sites adds up the pieces of an arena by scope, label, type and place. Reuse a Sites to reuse its
// memory.
type Sites struct {
	List []Site // in the order of their first pieces

	survey Survey
	index  map[siteKey]int
	sums   []held // by line of the ledger
}

type siteKey struct {
	scope, label string
	made, typed  uint32
	class        uint64
}

// Read fills List with the arena's present Sites. The sum of all Bytes is the arena's use. In
// checked builds the sum of all Objects is Stats.Objects, and the objects of no bytes are in a Site
// without a place. After a load, Read panics in checked builds if the ledger has other sums. The
// caller called AppendUsage before, which brings the ledger up to date.
func (s *Sites) Read(st *Stack) {
	if s.index == nil {
		s.index = map[siteKey]int{}
	}
	clear(s.index)
	s.List = s.List[:0]
	known := s.survey.Each(st, s.add)
	if known && st.h.Depth <= 1 && st.h.Gen|st.row.Temp.Depth == 0 {
		s.compare(st, "scope", &st.scopes, func(site *Site) string { return site.Scope })
		s.compare(st, "label", &st.labels.totals, func(site *Site) string { return site.Label })
	}
	rest := st.Stats().Objects
	for i := range s.List {
		rest -= min(rest, s.List[i].Objects)
	}
	if known && rest != 0 {
		s.List = append(s.List, Site{Objects: rest}) // objects of no bytes
	}
}

// compare adds up the sites by name, and panics if a line of the ledger differs. Only the ledger
// counts objects without bytes, and it counts no objects of labels.
func (s *Sites) compare(st *Stack, kind string, u *usages, name func(*Site) string) {
	s.sums = append(s.sums[:0], make([]held, len(u.lines))...)
	for i := range s.List {
		site := &s.List[i]
		if name := name(site); name != "" {
			sum := &s.sums[st.lineOf(u, name)]
			sum.bytes += site.Bytes
			sum.objects += site.Objects
		}
	}
	for i, sum := range s.sums {
		line := &u.lines[i]
		if line.Name != "" && (sum.bytes != line.Bytes || kind == "scope" && sum.objects > line.Objects) {
			panic(Misusef("%s: the ledger has %s %q with %d bytes in %d objects; the arena has %d bytes in %d objects",
				st.Arena, kind, line.Name, line.Bytes, line.Objects, sum.bytes, sum.objects))
		}
	}
}

// Tell returns a copy of List with Type and Made. Cost: in checked builds a Go allocation for each
// line of Made.
func (s *Sites) Tell() (list []Site) {
	calls := Calls{}
	for _, site := range s.List {
		site.Type, site.Made, site.piece = site.piece.Type(), calls.Of(site.piece.Made()), Piece{}
		list = append(list, site)
	}
	return list
}

func (s *Sites) add(p *Piece) {
	key := siteKey{p.Scope, p.Label, p.made, p.typed, p.node.finalizes()}
	i, ok := s.index[key]
	if !ok {
		i = len(s.List)
		s.index[key] = i
		s.List = append(s.List, Site{Scope: p.Scope, Label: p.Label, piece: *p})
		s.List[i].piece.node = chainNode{class: key.class} // the site outlives the node
	}
	line := &s.List[i]
	line.Bytes += p.Size + p.Padding
	line.Padding += p.Padding
	switch p.Kind {
	case kindReserve:
		line.Padding += p.Size
	case kindPadding, kindBytes:
	default:
		line.Objects++
	}
}

// Survey lists the pieces of arenas. Reuse a Survey to reuse its memory.
type Survey struct {
	st     *Stack
	fn     func(*Piece)
	things []Piece // the live objects, in checked builds; offsets from the row's first byte
	items  []Piece // in order; the bytes between them are padding or of unknown content
	nodes  []chainNode
	labels []labelSpan
	known  bool
	piece  Piece // the one passed to fn
	label  int   // index of the last label that begins at or before the last offset looked up
}

// chainNode is a node of a chain; at is the offset of its word.
type chainNode struct {
	at, size, class uint64
	order           int
	object          unsafe.Pointer
}

// finalizes returns the class of the objects that the node finalizes, or 0 if it has none.
func (n *chainNode) finalizes() uint64 {
	switch {
	case n.class == classSlice:
		return (*sliceNode)(n.object).class
	case n.class >= classFirst:
		return n.class
	}
	return 0
}

type labelSpan struct {
	from, to uint64
	name     string
	around   int // index of the enclosing call's span; -1: no such call
}

// Each calls fn with each piece of the arena, in order. Together the pieces cover the arena's bytes
// in use. A piece is valid until fn returns. Each reports whether it knows all objects and the
// places that made them. The caller owns the arena, or keeps it from changing.
func (v *Survey) Each(st *Stack, fn func(*Piece)) (known bool) {
	v.st, v.fn = st, fn
	v.things = v.things[:0]
	v.known = st.row.LiveObjects(func(offset, size uint64, made, typed uint32, kind uint64) {
		p := Piece{Offset: offset, Size: size, Kind: kindPlain, made: made, typed: typed}
		switch kind {
		case arena_c.LiveNode:
			p.Kind = kindNode
		case arena_c.LiveParts:
			p.Kind = kindPool
		}
		v.things = append(v.things, p)
	})
	h := st.h
	v.near()
	for i := uint64(1); i <= h.Depth; i++ {
		v.span(st.nameOf(h, i), h.Record(i).Mark, endOf(h, i))
	}
	v.far()
	for i := st.row.Temp.Depth; i > 0; i-- {
		v.temporaries(i)
	}
	v.st, v.fn = nil, nil
	return v.known
}

func endOf(h *arena_c.Scopes, depth uint64) uint64 {
	if depth < h.Depth {
		return h.Record(depth + 1).Mark
	}
	return h.Cursor
}

func (v *Survey) near() {
	v.readChain(v.st.h, 0)
	v.readLabels()
	v.readItems(v.st.h.Start, v.st.h.Cursor)
}

func (v *Survey) far() {
	v.labels, v.label = v.labels[:0], -1
	v.readChain(&v.st.row.Temp, v.st.row.Temp.Back)
	v.readItems(v.st.h.Limit, v.st.row.End)
}

func (v *Survey) temporaries(depth uint64) {
	t := &v.st.row.Temp
	from, cursor, end := v.st.h.Limit, t.Cursor+t.Back, v.st.row.End
	if depth < t.Depth {
		newer := t.Record(depth + 1)
		from, cursor = newer.Edge, newer.Mark+t.Back
	}
	if depth > 1 {
		end = t.Record(depth).Edge
	}
	v.span(tempName, from, cursor)
	if cursor != end {
		v.give(Piece{Kind: kindReserve, Scope: tempName, Offset: cursor, Size: end - cursor})
	}
}

// readChain reads the nodes of one end of the arena. It adds less to their offsets, which then
// count from the near end's header.
func (v *Survey) readChain(h *arena_c.Scopes, less uint64) {
	v.nodes = v.nodes[:0]
	for at := h.Chain; at != 0; {
		object, word := h.Newest(at)
		class := word / arena_c.NodeClass
		size := arena_c.NodeSize + nodeSize(class, object)
		v.nodes = append(v.nodes, chainNode{at - arena_c.NodeSize + less, size, class,
			len(v.nodes) + 1, object})
		at = word % arena_c.NodeClass
	}
	slices.SortFunc(v.nodes, func(a, b chainNode) int { return cmp.Compare(a.at, b.at) })
}

// nodeSize returns the size of a node's object, as far as it follows the node's word.
func nodeSize(class uint64, object unsafe.Pointer) uint64 {
	switch class {
	case arena_c.ClassC:
		return 2 * uint64(unsafe.Sizeof(uint64(0)))
	case arena_c.ClassPool, arena_c.ClassTemp, classOwned:
		return uint64(unsafe.Sizeof(uint64(0)))
	case classLabel:
		return uint64(unsafe.Sizeof(labelNode{}))
	case classSlice:
		n := (*sliceNode)(object)
		return n.front + n.left*n.stride
	}
	return classes.size[class%classesMax]
}

// readLabels works out the bytes of each call of Label: from the end of its node to the end of the
// call, without the bytes of calls inside it.
func (v *Survey) readLabels() {
	v.labels, v.label = v.labels[:0], -1
	h := v.st.h
	v.st.labels.settle()
	for i := uint64(1); i <= h.Depth; i++ {
		end := endOf(h, i)
		from, _ := slices.BinarySearchFunc(v.nodes, h.Record(i).Mark, byPlace)
		to, _ := slices.BinarySearchFunc(v.nodes, end, byPlace)
		for from < to {
			from, _ = v.readCalls(v.nodes[:to], from, -1, end)
		}
	}
}

func byPlace(n chainNode, at uint64) int { return cmp.Compare(n.at, at) }

// readCalls reads the first call of Label at or after index, and the calls inside it. It returns
// the index after all these calls, and their bytes. around is the index of the enclosing call's
// span, or -1. end is the scope's end, where the span of a running call ends.
func (v *Survey) readCalls(nodes []chainNode, index, around int, end uint64) (next int, extent uint64) {
	for index < len(nodes) && nodes[index].class != classLabel {
		index++
	}
	if index == len(nodes) {
		return index, 0
	}
	n := (*labelNode)(nodes[index].object)
	from, own := nodes[index].at+nodes[index].size, len(v.labels)
	v.labels = append(v.labels, labelSpan{from, end, v.st.labels.lines[n.line].name, around})
	inner := uint64(0)
	for index++; ; {
		for index < len(nodes) && nodes[index].class != classLabel {
			index++
		}
		if index == len(nodes) || (*labelNode)(nodes[index].object).in <= n.in {
			break
		}
		var took uint64
		index, took = v.readCalls(nodes, index, own, end)
		inner += took
	}
	if n.extent != 0 {
		v.labels[own].to = from + n.gained + inner
	}
	return index, n.extent
}

// labelAt returns the index of the innermost span that contains an offset, or -1. Offsets must
// ascend from call to call.
func (v *Survey) labelAt(at uint64) int {
	for v.label+1 < len(v.labels) && v.labels[v.label+1].from <= at {
		v.label++
	}
	i := v.label
	for i >= 0 && v.labels[i].to <= at {
		i = v.labels[i].around
	}
	return i
}

func (v *Survey) readItems(from, to uint64) {
	v.items = v.items[:0]
	if v.known {
		v.readThings(from, to)
		return
	}
	for i := range v.nodes {
		v.items = append(v.items, v.nodePiece(&v.nodes[i]))
	}
	v.eachPool(func(p *arena_c.Pool, from, to uint64) {
		v.items = append(v.items, Piece{Offset: from, Size: to - from, Kind: kindPool, Pool: p})
	}, from, to)
	slices.SortFunc(v.items, func(a, b Piece) int { return cmp.Compare(a.Offset, b.Offset) })
}

func (v *Survey) readThings(from, to uint64) {
	node, until := 0, from
	for _, t := range v.things {
		at := t.Offset + v.st.h.Start
		if at < until || at >= to {
			continue
		}
		p := t
		p.Offset = at
		for node < len(v.nodes) && v.nodes[node].at < at {
			node++
		}
		if node < len(v.nodes) && v.nodes[node].at == at {
			p = v.nodePiece(&v.nodes[node])
			p.Size, p.made, p.typed = t.Size, t.made, t.typed
		}
		if t.Kind == kindPool {
			p.Kind = kindPool
			v.eachPool(func(pool *arena_c.Pool, _, _ uint64) { p.Pool = pool }, at, at+t.Size)
		}
		v.items, until = append(v.items, p), at+t.Size
	}
}

// eachPool calls fn with each pool whose chunks begin in (from, to], and with the offsets of the
// pool's first word and its end.
func (v *Survey) eachPool(fn func(p *arena_c.Pool, from, to uint64), from, to uint64) {
	row := v.st.row
	for i := range row.Pools {
		p := row.Pool(i)
		if p.Gen == 0 || p.Count == 0 {
			continue
		}
		header := uint64(uintptr(unsafe.Pointer(p))) - uint64(uintptr(unsafe.Pointer(v.st.h)))
		if first := header + p.Chunks; first > from && first <= to {
			fn(p, header+p.Numbers, first+p.Stride*uint64(p.Count))
		}
	}
}

func (v *Survey) nodePiece(n *chainNode) Piece {
	kind := kindNode
	switch {
	case n.class == classOwned:
		kind = kindOwned
	case n.class == classSlice:
		kind = kindObjects
	case n.class >= classFirst:
		kind = kindObject
	}
	return Piece{Offset: n.at, Size: n.size, Kind: kind, Order: n.order, node: *n}
}

// span visits the pieces of a scope, whose bytes are [from, to).
func (v *Survey) span(scope string, from, to uint64) {
	byOffset := func(p Piece, at uint64) int { return cmp.Compare(p.Offset, at) }
	first, _ := slices.BinarySearchFunc(v.items, from, byOffset)
	at := from
	for _, p := range v.items[first:] {
		if p.Offset >= to {
			break
		}
		at = v.between(scope, at, p.Offset, true)
		p.Scope, p.Padding = scope, p.Offset-at
		if p.node.class != classLabel {
			p.Label = v.nameAt(p.Offset)
		}
		at = p.Offset + p.Size
		v.give(p)
	}
	v.between(scope, at, to, false)
}

func (v *Survey) nameAt(at uint64) string {
	if i := v.labelAt(at); i >= 0 {
		return v.labels[i].name
	}
	return ""
}

// between visits the bytes in [from, to), which belong to no known piece, and cuts them where a
// label ends. It returns the offset where it stopped. The bytes from there to a following piece are
// the piece's padding.
func (v *Survey) between(scope string, from, to uint64, thing bool) (at uint64) {
	for from < to {
		i, end := v.labelAt(from), to
		if i >= 0 {
			end = min(to, v.labels[i].to)
		}
		if thing && v.known && end == to {
			return from
		}
		p := Piece{Scope: scope, Kind: kindBytes, Offset: from, Size: end - from}
		if i >= 0 {
			p.Label = v.labels[i].name
		}
		if v.known {
			p.Kind, p.Offset, p.Size, p.Padding = kindPadding, end, 0, end-from
		}
		v.give(p)
		from = end
	}
	return from
}

// give calls fn with a piece, and makes its offset one from the arena's first byte.
func (v *Survey) give(p Piece) {
	p.Offset -= v.st.h.Start
	v.piece = p
	v.fn(&v.piece)
}
