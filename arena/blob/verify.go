package blob

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unsafe"
)

// overlap is the average number of times that Verify may read a byte before it refuses a blob. Two
// reads are legal: a node may be linked both by itself and in an array.
const overlap = 8

// steps is the maximum distance of an entry from its place in the table. A blob that wasn't made to
// collide needs fewer than half of these steps.
const steps = 256

// entry is an array of nodes, or one node, that a link leads to.
type entry struct{ offset, count, typ uint32 }

// checker follows the links of a blob. Its list holds the nodes found so far and is also the queue.
// Its hash table finds a node in the list.
type checker struct {
	types *types
	data  []byte
	end   uint32 // past the last node
	list  []entry
	table []uint32 // indices in the list, plus 1; 0 is free
	turns uint32   // the table has 1<<turns slots
	seen  uint32
	work  uint64 // bytes that were checked
	most  uint64
	err   error
}

// ScratchSize returns the number of bytes of scratch memory that Verify needs for data. data may be
// any bytes. The result is at most 28 for each node or array that a link leads to, and at most 7
// times the length of data. ScratchSize returns 0 if data is shorter than a blob's header or
// doesn't begin at a multiple of 8, or if the size exceeds an int.
func ScratchSize(data []byte) int {
	if len(data) < int(headerSize) || uintptr(unsafe.Pointer(unsafe.SliceData(data)))%align != 0 {
		return 0
	}
	if size := scratchSize(nodesOf(data)); size <= math.MaxInt {
		return int(size)
	}
	return 0
}

// nodesOf returns the number of links in the header, at least 1. The result is at most a quarter of
// the bytes, because each link takes 4.
func nodesOf(data []byte) uint32 {
	promised := (*header)(unsafe.Pointer(unsafe.SliceData(data))).nodes
	return max(1, uint32(min(uint64(promised), uint64(len(data)/4))))
}

func scratchSize(nodes uint32) uint64 {
	return align + uint64(nodes)*uint64(unsafe.Sizeof(entry{})) + 4*tableSize(nodes)
}

func tableSize(nodes uint32) uint64 { return 1 << bits.Len64(uint64(nodes)*2-1) }

// tables divides the scratch into list and table.
func (c *checker) tables(scratch []byte, nodes uint32) {
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(scratch))) % align
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(scratch)), skip)
	c.list = unsafe.Slice((*entry)(p), nodes)
	p = unsafe.Add(p, uintptr(nodes)*unsafe.Sizeof(entry{}))
	c.table = unsafe.Slice((*uint32)(p), tableSize(nodes))
	clear(c.table)
	c.turns = uint32(bits.TrailingZeros(uint(len(c.table))))
	c.seen, c.work, c.err = 0, 0, nil
	c.most = overlap * uint64(len(c.data))
}

// Verify checks that data is a complete and undamaged blob of this format. data must begin at a
// multiple of 8. Verify returns the root, and the Blob for Get. It checks all links, so that the
// links of data from any source are safe to follow. Texts and numbers may have any value. scratch
// has ScratchSize bytes, and is free again afterwards. The blob is read in place and must not
// change.
//
// Cost: a checksum of the bytes, and some 20 ns for each node that a link leads to. Only an error
// allocates on the Go heap.
func (f Format[T]) Verify(data, scratch []byte) (root *T, b Blob, err error) {
	types := f.declared()
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(data))); at%align != 0 {
		return nil, Blob{}, fmt.Errorf(
			"blob: the bytes begin %d past a multiple of %d; read them to a block", at%align, align)
	}
	if err := checkHeader(types, data); err != nil {
		return nil, Blob{}, err
	}
	if need := scratchSize(nodesOf(data)); uint64(len(scratch)) < need {
		return nil, Blob{}, fmt.Errorf(
			"blob: Verify needs %d bytes of scratch, as ScratchSize says, and has %d", need, len(scratch))
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
		return fmt.Errorf("blob: damaged: its types begin at byte %d of %d", h.text, h.size)
	case h.sum != sumOf(data):
		return fmt.Errorf("blob: damaged: the checksum is %08x, the bytes give %08x", h.sum, sumOf(data))
	case h.types != ts.print && h.text == h.size:
		return fmt.Errorf("blob: of other types: here %s has the fingerprint %016x, there it is %016x; "+
			"the blob is bare, so the field that differs has no name", ts.list[0].name, ts.print, h.types)
	case h.text == h.size:
	case h.types != ts.print || string(data[h.text:]) != ts.text:
		there := data[h.text:] // of any length
		there = there[:min(len(there), len(ts.text)+100)]
		return fmt.Errorf("blob: of other types: %s", difference(ts.text, string(there)))
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
	return "their fields agree, and their fingerprints don't"
}

// lineOf returns line i of a text of types, without its tab: a type's name or a field.
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
	c.follow(&c.types.root, 0, root, 1)
	for next := uint32(0); next < c.seen && c.err == nil; next++ {
		e := c.list[next]
		l := &c.types.list[e.typ]
		if l.variants != nil {
			l = c.variant(l, e.offset)
		}
		c.values(l, e.offset, e.count)
	}
	return c.err
}

func (c *checker) variant(union *layout, offset uint32) *layout {
	tag := *(*uint32)(unsafe.Pointer(&c.data[offset]))
	if tag >= uint32(len(union.variants)) {
		c.fail("%s at %d is its variant %d; there are %d", union.name, offset, tag, len(union.variants))
		return union
	}
	l := &c.types.list[union.variants[tag]]
	if uint64(offset)+uint64(l.size) > uint64(c.end) || offset&(l.align-1) != 0 {
		c.fail("%s at %d has %d bytes aligned to %d, the nodes end at %d",
			l.name, offset, l.size, l.align, c.end)
		return union
	}
	if c.work += uint64(l.size); c.work > c.most {
		c.overlaps(l, offset)
	}
	return l
}

// values checks adjacent values. It recurses only into the parts that flatten left, to a depth that
// the type bounds.
func (c *checker) values(l *layout, at, count uint32) {
	checks := l.checks
	for ; count > 0 && c.err == nil; count-- {
		value := unsafe.Pointer(unsafe.SliceData(c.data[at:][:l.size])) // holds all fields
		for i := range checks {
			k := &checks[i]
			field := unsafe.Add(value, k.at)
			switch k.what {
			case isLink:
				if offset := *(*uint32)(field); offset != 0 {
					c.follow(k, at, offset, 1)
				}
			case isArray, isStr:
				if words := (*[2]uint32)(field); words[1] != 0 {
					c.follow(k, at, words[0], words[1])
				}
			case isPart:
				c.values(&c.types.list[k.typ], at+k.at, k.repeat)
			case isBool:
				if is := *(*byte)(field); is > 1 {
					c.fail("%s at %d is the bool %d", k.field, at+k.at, is)
				}
			case isTag:
				if tag := *(*uint32)(field); tag != k.typ {
					c.fail("%s at %d has the tag %d, not its %d", k.field, at+k.at, tag, k.typ)
				}
			}
		}
		at += l.size
	}
}

// follow checks the target of a link, field k of the value at offset `of`, and queues it if it is
// new.
func (c *checker) follow(k *check, of, offset, count uint32) {
	size := uint64(count) * uint64(k.size)
	if offset < headerSize || offset&k.low != 0 || uint64(offset)+size > uint64(c.end) {
		c.outside(k, of, offset, count)
		return
	}
	if k.plain {
		return
	}
	to := entry{offset, count, k.typ}
	table := c.table
	mask := uint32(len(table) - 1)
	first := to.place(c.turns) & mask
	i := first
	for ; table[i] != 0; i = (i + 1) & mask {
		if c.list[table[i]-1] == to {
			return
		}
	}
	c.work += size
	if c.seen == uint32(len(c.list)) || (i-first)&mask > steps || c.work > c.most {
		c.unqueued(k, of, offset)
		return
	}
	c.list[c.seen] = to
	c.seen++
	table[i] = c.seen
}

// place returns the index at which the search for an entry begins; the caller takes it modulo
// 1<<turns. Neighbouring nodes get neighbouring places, so that Verify reads the table in the order
// of the nodes. The key's bits above the index, the round, add a scattered number. Otherwise all
// nodes of some sizes would share a place.
//
// For example, a table has 16 places (turns is 4). Nodes of 4 bytes with keys 18, 19 and 20 get
// places 1, 2 and 3. Nodes of 64 bytes have keys 18, 34, 50, 66, ... which are all 2 modulo 16;
// their rounds 1, 2, 3, 4, ... scatter them to places 1, 1, 14, 10, ...
func (e entry) place(turns uint32) uint32 {
	key := e.offset/4 + e.count + e.typ
	round := key >> (turns & 31) * 0x9e3779b1
	return key + (round^round>>15)*0x85ebca6b>>(-turns&31)
}

// outside reports a bad target. It is apart from follow, which is faster that way.
func (c *checker) outside(k *check, of, offset, count uint32) {
	c.fail("%s at %d leads to %d %s at %d; nodes are between %d and %d, these at multiples of %d",
		k.field, of+k.at, count, c.types.list[k.typ].name, offset, headerSize, c.end, k.low+1)
}

// unqueued reports why a node can't be queued.
func (c *checker) unqueued(k *check, of, offset uint32) {
	switch {
	case c.seen == uint32(len(c.list)):
		c.fail("%s at %d leads to node %d, the header says that there are %d",
			k.field, of+k.at, c.seen+1, len(c.list))
	case c.work > c.most:
		c.overlaps(&c.types.list[k.typ], offset)
	default:
		c.fail("%s at %d leads to nodes that were placed to collide", k.field, of+k.at)
	}
}

func (c *checker) overlaps(l *layout, at uint32) {
	c.fail("%s at %d overlaps other nodes: more than %d looks at each byte",
		l.name, at, overlap)
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("blob: "+format, args...)
	}
}
