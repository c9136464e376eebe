package save

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Difference is the first difference between two snapshots A and B, with the value in each. Unknown
// fields are empty. A release build knows the types of the root, of pools and containers, and of
// values that they lead to by arena.Ptr and arena.Slice. A checked build knows all allocations of
// the state, with their scopes and source lines.
type Difference struct {
	Region string
	Offset uint64 // from the region's first byte
	Object string // "room.Lights[3]", "chunk 7 of the pool of game.Frog"
	Type   string // of the object
	Field  string // "Way[2].X"
	Kind   string // the field's type
	A, B   string

	Scope, Label string // of the object
	Made         string // function and file:line
}

// String returns the difference in one line, or "equal" for a zero d.
func (d Difference) String() string {
	if d == (Difference{}) {
		return "equal"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "region %s: %s: %s in A, %s in B", d.Region, d.path(), d.A, d.B)
	kind := d.Kind
	if kind != "" && d.Type != kind {
		kind += " of " + d.Type
	}
	offset := ""
	if d.Object != "" {
		offset = fmt.Sprintf("%#x", d.Offset)
	}
	sep := " ("
	for _, s := range [][2]string{
		{"", kind}, {"offset ", offset}, {"scope ", d.Scope}, {"label ", d.Label}, {"made at ", d.Made},
	} {
		if s[1] != "" {
			b.WriteString(sep + s[0] + s[1])
			sep = "; "
		}
	}
	if sep == "; " {
		b.WriteString(")")
	}
	return b.String()
}

// path names the field.
func (d *Difference) path() string {
	switch {
	case d.Object == "":
		return fmt.Sprintf("offset %#x", d.Offset)
	case d.Field == "":
		return d.Object
	case strings.HasPrefix(d.Field, "["):
		return d.Object + d.Field
	}
	return fieldOf(d.Object, d.Field)
}

// Diff compares two snapshots of the ring, and returns the difference at the lowest address. If the
// snapshots are equal, differ is false. In a pool, chunks that are live in only one snapshot come
// first, then values of live chunks. Diff fails if the ring doesn't hold both snapshots, or a
// region isn't a state region. Diff is slow, and makes Go allocations.
func (r *Ring) Diff(a, b uint64) (d Difference, differ bool, err error) {
	from, err := r.state("Diff", a)
	if err != nil {
		return d, false, err
	}
	to, err := r.state("Diff", b)
	if err != nil {
		return d, false, err
	}
	d, differ = r.describe().diff(r.flatOf(from), r.flatOf(to))
	return d, differ, nil
}

func (l *layout) diff(a, b []byte) (Difference, bool) {
	known, begin := l.byName(), uint64(0)
	for i := range l.Parts {
		p := &l.Parts[i]
		from, to, next := p.span(begin)
		c := comparison{partLayout: p, known: known, words: [2][]byte{a[begin:from], b[begin:from]},
			bytes: [2][]byte{a[from:to], b[from:to]}}
		if d, differ := c.first(); differ {
			return d, true
		}
		begin = next
	}
	return Difference{}, false
}

type comparison struct {
	*partLayout
	known        map[string]*typeLayout
	words, bytes [2][]byte
}

func (c *comparison) first() (Difference, bool) {
	at := uint64(0)
	for i := range c.Pools {
		q := &c.Pools[i]
		if found := c.unequal(at, q.Numbers); found >= 0 {
			return c.at(uint64(found)), true
		}
		if d, differ := c.pool(i, q); differ {
			return d, true
		}
		at = q.Offset + q.Count*q.Stride
	}
	if found := c.unequal(at, c.Size); found >= 0 {
		return c.at(uint64(found)), true
	}
	return Difference{}, false
}

// unequal returns the first byte in [from, to) that differs, or -1.
func (c *comparison) unequal(from, to uint64) int {
	for at := from; at < to; at++ {
		if c.bytes[0][at] != c.bytes[1][at] {
			return int(at)
		}
	}
	return -1
}

func (c *comparison) pool(index int, q *poolLayout) (Difference, bool) {
	state := func(of int, chunk uint64) byte { return c.bytes[of][q.Offset-1-chunk] }
	d := Difference{Region: cmp.Or(c.Slot, c.Region), Offset: c.Mark + q.Offset}
	c.book(&d, q.Offset)
	for i := range q.Count {
		if a, b := state(0, i), state(1, i); (a == arena_c.ChunkLive) != (b == arena_c.ChunkLive) {
			d.Object, d.Offset = q.chunk(i), d.Offset+i*q.Stride
			d.A, d.B = stateName(a), stateName(b)
			return d, true
		}
	}
	if found := c.unequal(q.Offset, q.Offset+q.Count*q.Stride); found >= 0 {
		return c.at(uint64(found)), true
	}
	for i := range q.Count {
		if a, b := state(0, i), state(1, i); a != b {
			d.Object, d.A, d.B = q.chunk(i), stateName(a), stateName(b)
			return d, true
		}
	}
	the := "the pool of " + q.Type
	if found := c.unequal(q.Numbers, q.Offset); found >= 0 {
		at := q.Numbers + (uint64(found)-q.Numbers)&^3
		word := (at - q.Numbers) / 4
		d.Offset = c.Mark + at
		d.A, d.B = number(c.bytes[0][at:]), number(c.bytes[1][at:])
		switch {
		case word < q.Count:
			d.Object = fmt.Sprintf("place %d of the free chunks of %s", word, the)
		case word < 2*q.Count && q.Handles:
			d.Object = "generation of " + q.chunk(word-q.Count)
		default:
			d.Object = "bytes of " + the
		}
		return d, true
	}
	for i, name := range []string{"chunks that are free in ", "chunks that are retired in "} {
		at := poolWords*index + 4*i
		if a, b := number(c.words[0][at:]), number(c.words[1][at:]); a != b {
			d.Object, d.A, d.B = name+the, a, b
			return d, true
		}
	}
	return d, false
}

func number(b []byte) string { return fmt.Sprint(binary.LittleEndian.Uint32(b)) }

func stateName(s byte) string {
	switch s {
	case arena_c.ChunkLive:
		return "live"
	case arena_c.ChunkFree:
		return "free"
	case arena_c.ChunkFresh:
		return "never taken"
	case arena_c.ChunkRetired:
		return "retired"
	}
	return fmt.Sprintf("state %d", s)
}

func (c *comparison) at(at uint64) Difference {
	d := Difference{Region: cmp.Or(c.Slot, c.Region), Offset: c.Mark + at}
	object := c.book(&d, at)
	kept, g := c.keptAt(c.known, at)
	if kept == nil {
		g = c.named(at)
	} else if g == nil {
		d.Object, object = "words of "+kept.Name, nil
	}
	if g == nil && object != nil {
		of := c.known[object.Type]
		g = &thing{path: object.Type, of: of, offset: object.Offset, many: object.Size > of.Size,
			stride: of.Size}
		g.count = object.Size / max(of.Size, 1)
	}
	if g == nil || !g.has(at) {
		from := at &^ 7
		to := min(from+8, c.Size)
		d.Offset = c.Mark + from
		d.A, d.B = hex(c.bytes[0][from:to]), hex(c.bytes[1][from:to])
		return d
	}
	d.Object, d.Type = g.path, g.of.Name
	i := (at - g.offset) / g.stride
	if g.many {
		d.Object += fmt.Sprintf("[%d]", i)
	}
	start := g.offset + i*g.stride
	path, of, from := g.of.leaf(at - start)
	from += start
	d.Field = strings.TrimPrefix(path, ".")
	if of == nil { // between fields
		d.A, d.B = hex(c.bytes[0][at:at+1]), hex(c.bytes[1][at:at+1])
		return d
	}
	d.Kind, d.Offset = of.Name, c.Mark+from
	d.A, d.B = of.value(c.bytes[0][from:from+of.Size]), of.value(c.bytes[1][from:from+of.Size])
	if d.A == d.B { // the texts hide the difference
		d.A, d.B = hex(c.bytes[0][from:from+of.Size]), hex(c.bytes[1][from:from+of.Size])
	}
	return d
}

func hex(b []byte) string { return fmt.Sprintf("% x", b) }

// book sets the scope, label and source line of the object at a byte. It returns the object, or nil
// if none is known.
func (c *comparison) book(d *Difference, at uint64) *object {
	for i := range c.Objects {
		if o := &c.Objects[i]; at >= o.Offset && at-o.Offset < o.Size {
			d.Scope, d.Label, d.Made = o.Scope, o.Label, o.Made
			return o
		}
	}
	return nil
}

// named returns the array at a byte: a pool's chunk, or values that a link of A or else of B leads
// to. It returns nil if there is none.
func (c *comparison) named(at uint64) (found *thing) {
	for i := range c.Pools {
		if q := &c.Pools[i]; at >= q.Offset && at-q.Offset < q.Count*q.Stride {
			chunk := (at - q.Offset) / q.Stride
			return &thing{path: q.chunk(chunk), of: c.known[q.Type], offset: q.Offset + chunk*q.Stride,
				count: 1, stride: q.Stride}
		}
	}
	for _, side := range c.bytes {
		c.things(c.known, side, func(g *thing) bool {
			if g.has(at) {
				found = g
			}
			return found == nil
		})
		if found != nil {
			return found
		}
	}
	return nil
}
