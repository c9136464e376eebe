package save

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// An array of values of one type, in a state.
type thing struct {
	path   string // "room.Lights"; "" until it is needed
	by     int    // place in the queue of the array that leads to it, or -1
	link   uint64 // offset of the link in that array
	of     *typeLayout
	offset uint64
	count  uint64
	many   bool // names of its values have an index
	stride uint64
}

func (g *thing) has(at uint64) bool {
	return at >= g.offset && g.stride != 0 && (at-g.offset)/g.stride < g.count &&
		(at-g.offset)%g.stride < g.of.Size
}

// reachMost is the maximum number of arrays that a walk visits, since offsets in a hostile state
// may be any numbers.
const reachMost = 1 << 20

// reachSteps is the maximum number of values that a walk reads.
const reachSteps = 1 << 24

// reach walks the values that a part's root and live chunks of pools lead to by Ptr, Slice and
// String. It visits each once, breadth first, and trusts none of the snapshot's bytes.
type reach struct {
	part  *partLayout
	bytes []byte
	queue []thing
	seen  map[seen]bool
	steps int
	by    int // place in the queue of the current array
}

type seen struct {
	of            *typeLayout
	offset, count uint64
}

// The walk calls yield with each array, until yield returns false.
func (p *partLayout) things(known map[string]*typeLayout, bytes []byte, yield func(*thing) bool) {
	r := reach{part: p, bytes: bytes, seen: map[seen]bool{}, by: -1}
	r.add(thing{path: shortName(p.Root), of: known[p.Root], count: 1})
	for i := range p.Pools {
		q := &p.Pools[i]
		of := known[q.Type]
		for k := range q.Count {
			if bytes[q.Offset-1-k] == arena_c.ChunkLive {
				r.add(thing{path: q.chunk(k), of: of, offset: q.Offset + k*q.Stride, count: 1})
			}
		}
	}
	for i := range p.Kept {
		for _, v := range p.Kept[i].Values {
			r.add(p.Kept[i].thing(known, v))
		}
	}
	for n := 0; n < len(r.queue) && !r.tired(); n++ {
		g := r.queue[n]
		if r.by = n; !yield(&g) {
			g.path = r.path(n)
			return
		}
		for i := uint64(0); i < g.count && g.of.leads && !r.tired(); i++ {
			r.from(g.of, g.offset+i*g.stride)
		}
	}
}

// add queues an array, if it is in the state and new.
func (r *reach) add(g thing) {
	if g.stride = g.of.Size; g.stride == 0 || g.offset > r.part.Size ||
		g.count > (r.part.Size-g.offset)/g.stride {
		return
	}
	if key := (seen{g.of, g.offset, g.count}); !r.seen[key] {
		r.seen[key] = true
		g.by = r.by
		r.queue = append(r.queue, g)
	}
}

func (r *reach) from(t *typeLayout, at uint64) {
	r.steps++
	if t.isLink {
		g := thing{link: at, of: t.of, count: 1, many: t.Kind != kindPtr}
		if g.many {
			g.count = binary.LittleEndian.Uint64(r.bytes[at+8:])
		}
		// Else it is nil, or leads before the state.
		if stored := binary.LittleEndian.Uint64(r.bytes[at:]); stored > r.part.Mark {
			g.offset = stored - 1 - r.part.Mark
			r.add(g)
		}
	}
	for _, p := range t.parts {
		for i := uint64(0); i < p.count && p.of.leads && !r.tired(); i++ {
			r.from(p.of, at+p.at+i*p.of.Size)
		}
	}
}

// pathMost is how many steps a path names at its start, and at its end.
const pathMost = 8

func (r *reach) path(n int) string {
	var steps []string
	for ; r.queue[n].by >= 0; n = r.queue[n].by {
		by, step := &r.queue[r.queue[n].by], ""
		at := r.queue[n].link - by.offset
		if by.many {
			step = fmt.Sprintf("[%d]", at/by.stride)
		}
		field, _, _ := by.of.leaf(at % by.stride)
		steps = append(steps, step+field)
	}
	steps = append(steps, r.queue[n].path)
	slices.Reverse(steps)
	if over := len(steps) - 2*pathMost; over > 0 {
		more := fmt.Sprintf(" (%d more)", over)
		steps = slices.Concat(steps[:pathMost], []string{more}, steps[pathMost+over:])
	}
	path := steps[0]
	for _, step := range steps[1:] {
		if before, field, ok := strings.Cut(step, "."); ok && path == steps[0] {
			path = fieldOf(path+before, field)
		} else {
			path += step
		}
	}
	return path
}

func (r *reach) tired() bool { return len(r.queue) >= reachMost || r.steps >= reachSteps }

func (q *poolLayout) chunk(index uint64) string {
	return fmt.Sprintf("chunk %d of the pool of %s", index, q.Type)
}

func fieldOf(name, field string) string {
	if strings.HasPrefix(name, "chunk ") && !strings.Contains(name, ", field ") {
		return name + ", field " + field
	}
	return name + "." + field
}

// shortName returns a type's name without its package: "room" for "game.room".
func shortName(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name[strings.LastIndexByte(name, '.')+1:]
}
