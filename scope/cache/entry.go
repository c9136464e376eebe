package cache

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// The queues of a shard.
const (
	small = iota
	main
)

// An entry begins with a word of sizes: the value's in the lower 32 bits, then the key's in 30,
// then flags.
const (
	entryKey  = 32
	entryDead = 1 << 62 // deleted, replaced, or evicted for room in the index
	entryEnds = 1 << 63 // a time to end follows the header
	keyMost   = 1<<30 - 1
)

// queue has entries in a ring, in the order of their arrival. An entry is in one piece: where it
// doesn't fit before the end, the rest of the ring stays unused for a turn.
type queue struct {
	bytes []byte
	*ring
}

// ring is the words of a queue.
type ring struct {
	head, tail int64 // the next entry's place, the oldest entry
	end        int64 // of the entries before the wrap, if head isn't above tail
	count      int64 // entries, also dead ones
}

func (x *shard) entryOf(c cell) entry { return x.queues[c.queue()].entry(c.place()) }

// entry is an entry's bytes and those after it in its queue.
type entry struct {
	p    unsafe.Pointer
	left uint
}

func (q *queue) entry(place int64) entry {
	bytes := q.bytes[place:]
	return entry{unsafe.Pointer(unsafe.SliceData(bytes)), uint(len(bytes))}
}

// sizes returns the first word. An entry has at least its header, also at the end of a queue.
func (e entry) sizes() uint64 { return *(*uint64)(e.p) }

func (e entry) keySize() uint   { return uint(e.sizes() >> entryKey & keyMost) }
func (e entry) valueSize() uint { return uint(uint32(e.sizes())) }
func (e entry) begin() uint     { return header + uint(e.sizes()>>63)*untilSize }
func (e entry) key() []byte     { return e.bytes(e.begin(), e.keySize()) }
func (e entry) value() []byte   { return e.bytes(e.begin()+e.keySize(), e.valueSize()) }
func (e entry) all() []byte     { return e.bytes(0, uint(e.size())) }

// bytes returns n bytes from an offset on.
func (e entry) bytes(from, n uint) []byte {
	if from > e.left || n > e.left-from {
		panic(overwritten)
	}
	return (*[math.MaxInt32]byte)(unsafe.Add(e.p, from))[:n]
}

// hasEnded reports whether the entry has a time to end, and it is past.
func (e entry) hasEnded(x *shard) bool {
	return e.sizes()&entryEnds != 0 && *(*int64)(unsafe.Add(e.p, header)) <= x.now
}

func (e entry) isDead() bool { return e.sizes()&entryDead != 0 }
func (e entry) kill()        { *(*uint64)(e.p) |= entryDead }

var overwritten = misuse("the bytes of a cache.Bytes were overwritten")

const forever = 1<<63 - 1

// size returns the bytes that the entry takes.
func (e entry) size() int64 {
	return (int64(e.begin()) + int64(e.keySize()) + int64(e.valueSize()) + 7) &^ 7
}

// write makes an entry at the front of the bytes. The entry is dead until it is whole: a read of
// key or value may panic (debug.SetPanicOnFault).
func write(to, key, value []byte, until int64) {
	sizes := uint64(len(value)) | uint64(len(key))<<entryKey
	rest := to[header:]
	if until != forever {
		sizes |= entryEnds
		binary.LittleEndian.PutUint64(rest, uint64(until))
		rest = rest[untilSize:]
	}
	binary.LittleEndian.PutUint64(to, sizes|entryDead)
	copy(rest[copy(rest, key):], value)
	binary.LittleEndian.PutUint64(to, sizes)
}

// rewrite is write over an entry of the same key and size.
func (e entry) rewrite(value []byte, until int64) {
	sizes := e.sizes()&^math.MaxUint32 | uint64(len(value))
	*(*uint64)(e.p) = sizes | entryDead
	if sizes&entryEnds != 0 {
		*(*int64)(unsafe.Add(e.p, header)) = until
	}
	copy(e.value(), value)
	*(*uint64)(e.p) = sizes
}

func (e entry) ends() bool { return e.sizes()&entryEnds != 0 }

func (q *queue) size() int64 { return int64(len(q.bytes)) }

// fits reports whether an entry fits at the head.
func (q *queue) fits(size int64) bool {
	switch {
	case q.count == 0:
		q.head, q.tail = 0, 0
		return size <= q.size()
	case q.head > q.tail:
		return size <= q.size()-q.head || size <= q.tail
	}
	return size <= q.tail-q.head
}

// put returns the place of a new entry at the head. pre: it fits.
func (q *queue) put(size int64) (place int64) {
	if q.head >= q.tail && size > q.size()-q.head {
		q.end, q.head = q.head, 0
	}
	place = q.head
	q.head += size
	q.count++
	return place
}

// take takes the oldest entry out of the queue and returns its place. Its bytes stay until the next
// put. pre: there is one.
func (q *queue) take() (place, size int64) {
	if q.head <= q.tail && q.tail == q.end {
		q.tail = 0
	}
	place = q.tail
	size = q.entry(place).size()
	q.tail += size
	q.count--
	return place, size
}
