package cache

import "math/bits"

// bucket is a line of the index: eight cells, and the memory of six keys evicted from the small
// queue. A cell is of an entry. The lowest bit of its number is the word of its tag, and the upper
// two are the place there.
type bucket struct {
	tags   [2]uint64     // 16 bits of a key's hash for each cell; 0 if the cell is empty
	places [cells]uint32 // of the entries in their queues, in units of 8 bytes
	ghosts [6]uint16     // tags, the newest first
	reads  uint16        // up to 3 for each cell
	queues uint8         // a bit for each cell
	moved  uint8         // a bit for each cell; only in straighten
}

const (
	cells     = 8
	cellsUsed = 6 // mean, for entries of the mean size
	readsMost = 3
)

// buckets returns the two buckets of a hash.
func (x *shard) buckets(hash uint64) (a, b *bucket) {
	n := uint64(len(x.index))
	i, _ := bits.Mul64(hash, n)
	k, _ := bits.Mul64(hash*0x9e3779b97f4a7c15, n)
	return &x.index[i], &x.index[k]
}

// tagOf returns the bits of a hash in a cell. They don't decide the number of the first bucket.
func tagOf(hash uint64) uint64 { return max(hash&0xffff, 1) }

// having returns the cells with a tag. Bit 16 * (n / 2) + n % 2 is of cell n.
func (k *bucket) having(tag uint64) uint64 {
	const each, low = 0x0001000100010001, 0x7fff7fff7fff7fff
	a, b := k.tags[0]^tag*each, k.tags[1]^tag*each
	a, b = ^((a&low + low) | a | low), ^((b&low + low) | b | low) // the upper bit of each 0
	return a>>15 | b>>14
}

// cell is a place in a bucket. The zero cell is none.
type cell struct {
	*bucket
	n uint
}

// first returns the first of the cells in a mask that is not 0.
func (k *bucket) first(having uint64) cell {
	n := uint(bits.TrailingZeros64(having))
	return cell{k, n>>3&6 | n&1}
}

func (c cell) place() int64 { return int64(c.places[c.n%cells]) * 8 }
func (c cell) queue() uint  { return uint(c.queues>>(c.n%cells)) & 1 }
func (c cell) count() uint  { return uint(c.reads>>(2*c.n%16)) & readsMost } // of reads

// move sets the place of the cell's entry.
func (c cell) move(queue uint, place int64) {
	c.places[c.n%cells] = uint32(place / 8)
	c.queues = c.queues&^(1<<(c.n%cells)) | uint8(queue)<<(c.n%cells)
}

// read counts a read.
func (c cell) read() {
	if c.count() != readsMost {
		c.reads += 1 << (2 * c.n % 16)
	}
}

// unread forgets a read. pre: there is one.
func (c cell) unread() { c.reads -= 1 << (2 * c.n % 16) }

// set makes an empty cell a cell of an entry.
func (c cell) set(tag uint64, queue uint, place int64, reads uint) {
	c.tags[c.n&1] |= tag << (c.n / 2 % 4 * 16)
	c.move(queue, place)
	c.reads |= uint16(reads) << (2 * c.n % 16)
}

// empty makes the cell empty. Its place stays, and means nothing.
func (c cell) empty() {
	c.tags[c.n&1] &^= 0xffff << (c.n / 2 % 4 * 16)
	c.reads &^= readsMost << (2 * c.n % 16)
}

// find returns the cell of a key and its entry. Without the key, the cell is zero.
func (x *shard) find(hash uint64, key []byte) (cell, entry) {
	tag := tagOf(hash)
	a, b := x.buckets(hash)
	for k := a; ; k = b {
		for having := k.having(tag); having != 0; having &= having - 1 {
			c := k.first(having)
			e := x.entryOf(c)
			if e.keySize() == uint(len(key)) && string(e.key()) == string(key) {
				return c, e
			}
		}
		if k == b {
			return cell{}, entry{}
		}
	}
}

// unused returns a cell of the emptier bucket. If both are full, it evicts the entry with the
// fewest reads there, of the small queue if one is.
func (x *shard) unused(hash uint64) cell {
	a, b := x.buckets(hash)
	inA, inB := a.having(0), b.having(0)
	if bits.OnesCount64(inB) > bits.OnesCount64(inA) {
		return b.first(inB)
	}
	if inA != 0 {
		return a.first(inA)
	}
	least := cell{a, 0}
	for _, k := range [2]*bucket{a, b} {
		for n := range uint(cells) {
			if c := (cell{k, n}); c.queue()<<2|c.count() < least.queue()<<2|least.count() {
				least = c
			}
		}
	}
	e := x.entryOf(least)
	e.kill()
	x.gone(e)
	x.crowded++
	least.empty()
	return least
}

// cellOf returns the cell of the entry at a place of a queue. pre: the entry isn't dead.
func (x *shard) cellOf(hash uint64, in uint, place int64) cell {
	a, b := x.buckets(hash)
	for _, k := range [2]*bucket{a, b} {
		for having := k.having(tagOf(hash)); having != 0; having &= having - 1 {
			if c := k.first(having); c.place() == place && c.queue() == in && c.moved>>c.n&1 == 0 {
				return c
			}
		}
	}
	return cell{}
}

// remember notes the key of an entry that was evicted from the small queue.
func (x *shard) remember(hash uint64) {
	k, _ := x.buckets(hash)
	for i := len(k.ghosts) - 1; i > 0; i-- {
		k.ghosts[i] = k.ghosts[i-1]
	}
	k.ghosts[0] = uint16(tagOf(hash))
}

// remembers reports whether a key was evicted from the small queue lately, and forgets it.
func (x *shard) remembers(hash uint64) bool {
	k, _ := x.buckets(hash)
	for i, tag := range k.ghosts {
		if tag == uint16(tagOf(hash)) {
			last := len(k.ghosts) - 1
			copy(k.ghosts[i:], k.ghosts[i+1:])
			k.ghosts[last] = 0
			return true
		}
	}
	return false
}
