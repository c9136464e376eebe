package blob

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unsafe"
)

// overlap bounds Verify's work, in sizes of the blob: a part may be linked as one node and in an array,
// but a blob that was made so that each byte is looked at ten thousand times is refused.
const overlap = 8

// steps is how far a node may lie from its place in the table. Nobody who didn't place nodes to collide comes half as far.
const steps = 256

// entry is so many nodes that something links to.
type entry struct{ offset, count, typ uint32 }

// checker follows the links of a blob. What it has found is a list that is also its queue, and a table of
// hashes that says what is in the list already.
type checker struct {
	types *types
	data  []byte
	end   uint32 // past the last node
	list  []entry
	table []uint32 // indices in the list, plus 1
	turns int      // its size is 2 to that
	seen  uint32
	work  uint64
	err   error
}

// ScratchSize is how many bytes of scratch Verify needs for these bytes, whatever they are: 28 for each
// part that a link leads to, at most 7 times their number; 0 for what is no blob, and for more than 32 bits have room for.
func ScratchSize(data []byte) int {
	if len(data) < int(headerSize) || uintptr(unsafe.Pointer(unsafe.SliceData(data)))%align != 0 {
		return 0
	}
	if size := scratchSize(nodesOf(data)); size <= math.MaxInt {
		return int(size)
	}
	return 0
}

// nodesOf is how many links the header promises, the root's at least. Each has four bytes somewhere.
func nodesOf(data []byte) uint32 {
	promised := (*header)(unsafe.Pointer(unsafe.SliceData(data))).nodes
	return max(1, uint32(min(uint64(promised), uint64(len(data)/4))))
}

func scratchSize(nodes uint32) uint64 {
	return align + uint64(nodes)*uint64(unsafe.Sizeof(entry{})) + 4*tableSize(nodes)
}

func tableSize(nodes uint32) uint64 { return 1 << bits.Len64(uint64(nodes)*2-1) }

// tables lays list and table in the scratch.
func (c *checker) tables(scratch []byte, nodes uint32) {
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(scratch))) % align
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(scratch)), skip)
	c.list = unsafe.Slice((*entry)(p), nodes)
	c.table = unsafe.Slice((*uint32)(unsafe.Add(p, uintptr(nodes)*unsafe.Sizeof(entry{}))), tableSize(nodes))
	clear(c.table)
	c.turns = bits.TrailingZeros(uint(len(c.table)))
	c.seen, c.work, c.err = 0, 0, nil
}

// Verify says whether the bytes, which begin at a multiple of 8, are a whole and undamaged blob of this
// format, and gives its root and the Blob that Get needs. It looks at all links, so that what comes from
// anywhere can be followed; texts and numbers may be anything. scratch has ScratchSize bytes, and isn't
// needed afterwards. The blob is read where it lies and must not change.
//
// Cost: a checksum of the bytes, and some 20 ns a link; nothing on the Go heap but an error.
func (f Format[T]) Verify(data, scratch []byte) (root *T, b Blob, err error) {
	types := f.declared()
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(data))); at%align != 0 {
		return nil, Blob{}, fmt.Errorf("blob: the bytes begin %d past a multiple of %d; read them to a block", at%align, align)
	}
	if err := checkHeader(types, data); err != nil {
		return nil, Blob{}, err
	}
	if need := scratchSize(nodesOf(data)); uint64(len(scratch)) < need {
		return nil, Blob{}, fmt.Errorf("blob: Verify needs %d bytes of scratch, as ScratchSize says, and has %d", need, len(scratch))
	}
	h := (*header)(unsafe.Pointer(unsafe.SliceData(data)))
	c := checker{types: types, data: data, end: h.text}
	c.tables(scratch, nodesOf(data))
	if err := c.all(h.root); err != nil {
		return nil, Blob{}, err
	}
	b = Blob{unsafe.Pointer(h)}
	return (*T)(b.at(h.root)), b, nil
}

// checkHeader says what is wrong with the bytes as a whole.
func checkHeader(ts *types, data []byte) error {
	if len(data) < int(headerSize) {
		return fmt.Errorf("blob: %d bytes are no blob: its header alone has %d", len(data), headerSize)
	}
	h := (*header)(unsafe.Pointer(unsafe.SliceData(data)))
	switch {
	case h.magic == bits.ReverseBytes32(magic):
		return fmt.Errorf("blob: of the other byte order; blobs are little-endian")
	case h.magic != magic:
		return fmt.Errorf("blob: not a blob: it begins with %q", data[:4])
	case uint64(h.size) != uint64(len(data)):
		return fmt.Errorf("blob: cut off: %d bytes of %d are there", len(data), h.size)
	case h.text < headerSize || h.text > h.size:
		return fmt.Errorf("blob: damaged: its types lie at %d of %d", h.text, h.size)
	case h.sum != sumOf(data):
		return fmt.Errorf("blob: damaged: the checksum is %08x, the bytes give %08x", h.sum, sumOf(data))
	case h.types != ts.print || string(data[h.text:]) != ts.text:
		there := data[h.text:] // of any length
		return fmt.Errorf("blob: of other types: %s", difference(ts.text, string(there[:min(len(there), len(ts.text)+100)])))
	}
	return nil
}

// difference names the first field in which two texts of types differ.
func difference(here, there string) string {
	a, b := strings.Split(here, "\n"), strings.Split(there, "\n")
	name := ""
	for i := range max(len(a), len(b)) {
		x, y := lineOf(a, i), lineOf(b, i)
		if x != y {
			return fmt.Sprintf("here %.80q, there %.80q, in %q", x, y, name)
		}
		if i < len(a) && !strings.HasPrefix(a[i], "\t") {
			name = a[i]
		}
	}
	return "their fingerprint is another's"
}

// lineOf is a line of a text of types: the name of a type, or a field of the last one.
func lineOf(lines []string, i int) string {
	if i >= len(lines) {
		return ""
	}
	return strings.TrimPrefix(lines[i], "\t")
}

// all follows the links from the root on.
func (c *checker) all(root uint32) error {
	if root == 0 {
		return fmt.Errorf("blob: no root")
	}
	rootCheck := check{field: "root"}
	c.follow(&rootCheck, 0, entry{root, 1, 0})
	for next := uint32(0); next < c.seen && c.err == nil; next++ {
		e := c.list[next]
		l := &c.types.list[e.typ]
		if l.variants != nil {
			l = c.variant(l, e.offset)
		}
		for at := uint64(e.offset); e.count > 0 && c.err == nil; e.count-- {
			c.value(l, uint32(at))
			at += uint64(l.size)
		}
	}
	return c.err
}

// variant is the layout of the node of a union.
func (c *checker) variant(union *layout, offset uint32) *layout {
	tag := c.word(offset)
	if tag >= uint32(len(union.variants)) {
		c.fail("%s at %d is its variant %d; there are %d", union.name, offset, tag, len(union.variants))
		return union
	}
	l := &c.types.list[union.variants[tag]]
	if uint64(offset)+uint64(l.size) > uint64(c.end) || offset%l.align != 0 {
		c.fail("%s at %d has %d bytes aligned to %d, the nodes end at %d", l.name, offset, l.size, l.align, c.end)
		return union
	}
	if !c.looks(uint64(l.size), l, offset) {
		return union
	}
	return l
}

// value looks at one value. It recurses into the structs that it consists of, which a type bounds.
func (c *checker) value(l *layout, at uint32) {
	for i := range l.checks {
		k := &l.checks[i]
		for n, p := k.repeat, at+k.at; n > 0 && c.err == nil; n-- {
			switch k.what {
			case isPart:
				c.value(&c.types.list[k.typ], p)
			case isBool:
				if c.data[p] > 1 {
					c.fail("%s at %d is the bool %d", k.field, p, c.data[p])
				}
			case isTag:
				if tag := c.word(p); tag != k.typ {
					c.fail("%s at %d has the tag %d, not its %d", k.field, p, tag, k.typ)
				}
			case isLink:
				if offset := c.word(p); offset != 0 {
					c.follow(k, p, entry{offset, 1, k.typ})
				}
			default:
				if count := c.word(p + 4); count != 0 {
					c.follow(k, p, entry{c.word(p), count, k.typ})
				}
			}
			p += k.stride
		}
	}
}

func (c *checker) word(at uint32) uint32 { return *(*uint32)(unsafe.Pointer(&c.data[at])) }

// follow looks where a link of the field k, at offset `from`, leads, and queues what is new there.
func (c *checker) follow(k *check, from uint32, to entry) {
	l := &c.types.list[to.typ]
	if to.offset < headerSize || to.offset%l.align != 0 || uint64(to.offset)+uint64(to.count)*uint64(l.size) > uint64(c.end) {
		c.fail("%s at %d leads to %d %s at %d; nodes lie between %d and %d, these at multiples of %d", k.field, from, to.count, l.name,
			to.offset, headerSize, c.end, l.align)
		return
	}
	if len(l.checks) == 0 && l.variants == nil {
		return
	}
	mask := uint32(len(c.table) - 1)
	first := to.place(c.turns)
	i := first
	for ; c.table[i] != 0; i = (i + 1) & mask {
		if c.list[c.table[i]-1] == to {
			return
		}
	}
	switch {
	case c.seen == uint32(len(c.list)):
		c.fail("%s at %d leads to node %d, the header says that there are %d", k.field, from, c.seen+1, len(c.list))
	case (i-first)&mask > steps:
		c.fail("%s at %d leads to nodes that were placed to collide", k.field, from)
	case c.looks(uint64(to.count)*uint64(l.size), l, to.offset):
		c.list[c.seen] = to
		c.seen++
		c.table[i] = c.seen
	}
}

// place is where an entry is looked for first in a table of 2 to the turns. Neighbours stay so: the table is read in the
// order of the nodes. The rounds of the table are scattered, or nodes of some sizes would all meet.
func (e entry) place(turns int) uint32 {
	key := e.offset/4 + e.count + e.typ
	round := key >> turns * 0x9e3779b1
	return (key + (round^round>>15)*0x85ebca6b>>(32-turns)) & (1<<turns - 1)
}

// looks counts that so many bytes will be looked at, and says whether that is in bounds.
func (c *checker) looks(size uint64, l *layout, at uint32) bool {
	if c.work += size; c.work > overlap*uint64(len(c.data)) {
		c.fail("%s at %d is of nodes that lie on others: more than %d looks at each byte", l.name, at, overlap)
	}
	return c.err == nil
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("blob: "+format, args...)
	}
}
