package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/wyhash"
)

// ErrLarge matches the error of a key and value that are larger than the cache takes, with
// errors.Is.
var ErrLarge = errors.New("cache: the key and value are too large")

// Options are choices for a [Bytes]. The zero Options make a cache for one goroutine.
type Options struct {
	// Shards divides the cache, so that as many goroutines can use it at a time: a power of two up
	// to 4096. Each shard has a lock. With 0 there is no lock, and one goroutine at a time uses the
	// cache.
	Shards int
	// Entry is the mean size of a key and its value in bytes, for which the index has room; 0 means
	// 256. With smaller entries the index is full before the bytes are.
	Entry int
	// Seed determines the hashes. With 0 a seed is chosen at random, so that an attacker can't
	// choose keys that collide; in a state (package budget/save) it stays 0, for equal bytes.
	Seed uint64
}

// Bytes is a cache of byte strings by byte strings, in a fixed number of bytes.
//
// An entry is a key and its value with a header of 8 bytes, rounded up to 8; 16 bytes with a time
// to end ([Bytes.SetUntil]). The index, which remembers evicted keys too, takes 64 bytes for each 6
// entries of the mean size.
type Bytes struct {
	_       noCopy
	life    life
	shards  []shard
	seed    wyhash.Seed
	locks   bool
	most    int // of an entry
	size    int // of now
	planned int // the largest size
}

// shard is a part of the cache with its own queues and index, which are in the scope. The lock and
// the counters aren't, so that a Get writes to one line of the shard.
type shard struct {
	mu sync.Mutex
	counters
	*words

	index  []bucket
	queues [2]queue
	seed   *wyhash.Seed
	_      [32]byte // shards of two processors share no line
}

type counters struct{ hits, misses, evictions, rejected, crowded, looked uint64 }

// words are the first bytes of a shard.
type words struct {
	rings                         [2]ring
	now                           int64
	entries, keyBytes, valueBytes uint64
}

// The queues of a shard.
const (
	small = iota
	main
)

const (
	header    = 8
	untilSize = 8

	// chances is the most entries that go back to the front for one eviction.
	chances = 16

	shardsMost   = 4096
	entryDefault = 256
	leastShard   = 4096
	mostShare    = 32 // an entry takes at most this part of a shard
	smallShare   = 20 // the small queue takes this part of a shard
)

// An entry begins with a word of sizes: the value's in the lower 32 bits, then the key's in 30, then
// flags.
const (
	entryKey  = 32
	entryDead = 1 << 62 // deleted, or set to a value of another size
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
	end        int64 // of the entries before the wrap, if head is below tail
	count      int64 // entries, also dead ones
}

// NewBytes makes an empty cache of size bytes in s. The bytes are all it ever takes. Of a shard, a
// twentieth of the bytes is the small queue, and an entry takes at most a thirty-second. A full
// scope unwinds. NewBytes panics if s isn't the topmost scope, if the options are out of range, or
// if a shard would have fewer than 4096 bytes. Cost: O(size / Entry), and a few Go allocations.
func NewBytes(s scope.Scope, size int, o Options) *Bytes {
	if o.Shards < 0 || o.Shards > shardsMost || o.Shards&(o.Shards-1) != 0 {
		panic(misuse("NewBytes with %d shards: pass 0, or a power of two up to %d", o.Shards, shardsMost))
	}
	if o.Entry < 0 {
		panic(misuse("NewBytes with entries of %d bytes", o.Entry))
	}
	n := max(o.Shards, 1)
	each := eachOf(size, n)
	if each < leastShard {
		panic(misuse("NewBytes of %d bytes in %d shards: a shard needs %d bytes", size, n, leastShard))
	}
	entry := o.Entry
	if entry == 0 {
		entry = entryDefault
	}
	c := &Bytes{seed: wyhash.Of(o.Seed), locks: o.Shards != 0, most: each / mostShare, size: size, planned: size, shards: make([]shard, n)}
	all := octets.SliceAligned(s, size, arena_c.LineSize)
	c.life = lifeOf(s)
	c.lay(all, each, entry)
	if st := scope.Watching(s); st != nil {
		st.NoteTenant(all, scope.Tenant{Name: "cache.Bytes", Check: func(image []byte) error {
			of := &Bytes{seed: c.seed, shards: make([]shard, n)}
			of.lay(image, each, entry)
			return of.look()
		}})
	} else if o.Seed == 0 {
		c.seed = wyhash.Random()
	}
	scope.NoteCache(s, unsafe.Pointer(unsafe.SliceData(all)), c.figure)
	return c
}

// eachOf returns the bytes of each of n shards: whole lines.
func eachOf(size, n int) int { return size / n &^ (arena_c.LineSize - 1) }

// lay divides the bytes of a cache.
func (c *Bytes) lay(all []byte, each, entry int) {
	for i := range c.shards {
		c.shards[i].seed = &c.seed
		c.shards[i].lay(all[i*each:][:each:each], entry)
	}
}

// lay divides the bytes of a shard.
func (x *shard) lay(all []byte, entry int) {
	cut := func(n int) (p unsafe.Pointer) {
		p, all = unsafe.Pointer(unsafe.SliceData(all)), all[n:]
		return p
	}
	x.words = (*words)(cut(int(unsafe.Sizeof(words{})+arena_c.LineSize-1) &^ (arena_c.LineSize - 1)))
	entries := max(len(all)/(entry+header+int(unsafe.Sizeof(bucket{}))/cellsUsed), 1)
	buckets := (entries + cellsUsed - 1) / cellsUsed
	x.index = unsafe.Slice((*bucket)(cut(buckets*int(unsafe.Sizeof(bucket{})))), buckets)
	part := len(all) / smallShare &^ 7
	x.queues = [2]queue{{all[:part:part], &x.rings[small]}, {all[part:], &x.rings[main]}}
}

// Most returns the largest sum of the sizes of a key and its value, and the header, that the cache
// takes: a thirty-second of a shard.
func (c *Bytes) Most() int { return c.most }

func (c *Bytes) hash(key []byte) uint64 { return c.seed.Hash(c.seed[0], key) }

func (x *shard) hash(key []byte) uint64 { return x.seed.Hash(x.seed[0], key) }

func (c *Bytes) shardOf(hash uint64) *shard { return &c.shards[(hash>>16)&uint64(len(c.shards)-1)] }

func (c *Bytes) lock(x *shard) {
	if c.locks {
		x.mu.Lock()
	}
}

func (c *Bytes) done(x *shard) {
	if c.locks {
		x.mu.Unlock()
	}
}

// bucket is a line of the index: eight cells, and the memory of six keys that were evicted unread. A
// cell is of an entry. Its number has the word of its tag in the lowest bit, and the place there
// in the upper two.
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

// tagOf returns the bits of a hash in a cell. They are other bits than a bucket's number has.
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

// empty makes the cell empty.
func (c cell) empty() {
	c.tags[c.n&1] &^= 0xffff << (c.n / 2 % 4 * 16)
	c.move(0, 0)
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
	if from+n > e.left {
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
	return int64(e.begin()+e.keySize()+e.valueSize()+7) &^ 7
}

// write makes an entry at the front of the bytes.
func write(to, key, value []byte, until int64) {
	sizes := uint64(len(value)) | uint64(len(key))<<entryKey
	rest := to[header:]
	if until != forever {
		sizes |= entryEnds
		binary.LittleEndian.PutUint64(rest, uint64(until))
		rest = rest[untilSize:]
	}
	binary.LittleEndian.PutUint64(to, sizes)
	copy(rest[copy(rest, key):], value)
}

// Get appends the value of key to dst. It returns the result and true, or dst and false if the
// cache has no such key, or its scope has closed. It makes no Go allocation if dst has room. Cost:
// a hash, one or two lines of the index, and a copy.
func (c *Bytes) Get(dst, key []byte) ([]byte, bool) {
	if !c.life.alive() {
		return dst, false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	c.lock(x)
	found, e := x.find(hash, key)
	ok := x.read(found, e)
	if ok {
		dst = append(dst, e.value()...)
	}
	c.done(x)
	return dst, ok
}

// View calls fn with the value of key, which is valid until fn returns. It returns false, and
// doesn't call fn, if the cache has no such key. fn must not use the cache, nor report on its
// region: the shard is locked.
func (c *Bytes) View(key []byte, fn func(value []byte)) bool {
	if !c.life.alive() {
		return false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	c.lock(x)
	defer c.done(x)
	found, e := x.find(hash, key)
	ok := x.read(found, e)
	if ok {
		fn(e.value())
	}
	return ok
}

// read counts a read, and reports whether the key was found and the entry hasn't ended.
func (x *shard) read(found cell, e entry) bool {
	if found.bucket == nil || e.hasEnded(x) {
		x.misses++
		return false
	}
	found.read()
	x.hits++
	return true
}

// Has reports whether the cache has the key. It counts as no read.
func (c *Bytes) Has(key []byte) bool {
	if !c.life.alive() {
		return false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	c.lock(x)
	cell, e := x.find(hash, key)
	has := cell.bucket != nil && !e.hasEnded(x)
	c.done(x)
	return has
}

// Set sets the value of key. It evicts as many of the least wanted entries as the new one needs
// room. It returns an error that matches [ErrLarge], and sets nothing, if the entry takes more than
// [Bytes.Most]. It panics after the scope has closed. Cost: a hash, a copy, and for each evicted
// entry that leaves at most 18 looks.
func (c *Bytes) Set(key, value []byte) error { return c.SetUntil(key, value, forever) }

// SetUntil is Set for a value that ends at a time of the caller's clock: from [Bytes.Advance] of
// that time on, the cache doesn't have the key.
func (c *Bytes) SetUntil(key, value []byte, until int64) error {
	if !c.life.alive() {
		panic(closed{c.life, "Set in a cache.Bytes"})
	}
	need := header + len(key) + len(value)
	if until != forever {
		need += untilSize
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	c.lock(x)
	if need > c.most {
		x.rejected++
		c.done(x)
		return c.large(len(key), len(value), need)
	}
	x.set(hash, key, value, until, int64(need+7)&^7)
	c.done(x)
	return nil
}

func (c *Bytes) large(key, value, need int) error {
	return fmt.Errorf("%w: a key of %d bytes and a value of %d take %d with the header, and one takes at most %d, the "+
		"%dnd part of a shard; use fewer shards or a larger cache", ErrLarge, key, value, need, c.most, mostShare)
}

// set replaces or adds an entry of size bytes.
func (x *shard) set(hash uint64, key, value []byte, until, size int64) {
	c, e := x.find(hash, key)
	if c.bucket == nil {
		in := uint(small)
		if x.remembers(hash) {
			in = main
		}
		x.add(hash, key, value, until, size, in, 0)
		return
	}
	x.keyBytes -= uint64(e.keySize())
	x.valueBytes -= uint64(e.valueSize())
	if e.size() == size {
		write(e.all(), key, value, until)
		c.read()
		x.count(key, value)
		return
	}
	in, reads := c.queue(), c.count()
	e.kill()
	c.empty()
	x.entries--
	x.add(hash, key, value, until, size, in, reads)
}

func (x *shard) count(key, value []byte) {
	x.keyBytes += uint64(len(key))
	x.valueBytes += uint64(len(value))
}

func (x *shard) add(hash uint64, key, value []byte, until, size int64, in, reads uint) {
	if in == small && size > x.queues[small].size()/2 {
		in = main
	}
	q := &x.queues[in]
	for !q.fits(size) {
		x.evict(in)
	}
	place := q.put(size)
	write(q.bytes[place:], key, value, until)
	x.unused(hash).set(tagOf(hash), in, place, reads)
	x.entries++
	x.count(key, value)
}

// unused returns a cell of the emptier bucket. If both are full, it evicts the entry with the
// fewest reads there.
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

// gone counts an entry that was evicted.
func (x *shard) gone(e entry) {
	x.evictions++
	x.left(e)
}

// left counts an entry that isn't in the cache any more.
func (x *shard) left(e entry) {
	x.entries--
	x.keyBytes -= uint64(e.keySize())
	x.valueBytes -= uint64(e.valueSize())
}

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

// evict takes entries from the end of a queue until one has left the shard, or is dead.
func (x *shard) evict(in uint) {
	q := &x.queues[in]
	for chance := 0; ; chance++ {
		place, size := q.take()
		x.looked++
		e := q.entry(place)
		if e.isDead() {
			return
		}
		hash := x.hash(e.key())
		c := x.cellOf(hash, in, place)
		fills := in == small && x.queues[main].fits(size) // main has room: no key of it is evicted
		if e.hasEnded(x) || !fills && c.count() == 0 || chance == chances {
			c.empty()
			x.gone(e)
			if in == small {
				x.remember(hash)
			}
			return
		}
		if in == small { // to the main queue
			for !x.queues[main].fits(size) {
				x.evict(main)
			}
			to := x.queues[main].put(size)
			copy(x.queues[main].bytes[to:], e.all())
			c.move(main, to)
			c.reads &^= readsMost << (2 * c.n % 16)
			return
		}
		if !q.fits(size) { // at the wrap
			c.empty()
			x.gone(e)
			return
		}
		to := q.put(size)
		copy(q.bytes[to:], e.all())
		c.move(main, to)
		c.unread()
	}
}

// remember notes the key of an entry that left the small queue unread.
func (x *shard) remember(hash uint64) {
	k, _ := x.buckets(hash)
	for i := len(k.ghosts) - 1; i > 0; i-- {
		k.ghosts[i] = k.ghosts[i-1]
	}
	k.ghosts[0] = uint16(tagOf(hash))
}

// remembers reports whether a key left the small queue a short while ago, and forgets it.
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

// Delete removes key and returns true, or false if the cache has no such key.
func (c *Bytes) Delete(key []byte) bool {
	if !c.life.alive() {
		return false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	c.lock(x)
	cell, e := x.find(hash, key)
	if cell.bucket != nil {
		cell.empty()
		e.kill()
		x.left(e)
	}
	c.done(x)
	return cell.bucket != nil
}

// Clear removes all entries. The counters stay.
func (c *Bytes) Clear() {
	if !c.life.alive() {
		return
	}
	for i := range c.shards {
		x := &c.shards[i]
		c.lock(x)
		clear(x.index)
		x.rings = [2]ring{}
		x.entries, x.keyBytes, x.valueBytes = 0, 0, 0
		c.done(x)
	}
}

// Advance sets the clock of the times passed to [Bytes.SetUntil]; the unit is the caller's. It
// starts at 0.
func (c *Bytes) Advance(now int64) {
	for i := range c.shards {
		x := &c.shards[i]
		c.lock(x)
		x.now = now
		c.done(x)
	}
}

// Stats are the figures of a cache: counters since it was made, and bytes of now. In a state, Restore
// of package save restores the bytes, and not the counters.
type Stats struct {
	Hits, Misses, Evictions, Rejected uint64
	Crowded                           uint64 // evictions for a cell: Options.Entry is too large
	Looked                            uint64 // entries that evictions looked at
	Entries                           uint64
	KeyBytes, ValueBytes              uint64
	Index                             uint64 // bytes of the index and of evicted keys
	Padding                           uint64 // all other bytes
}

// figure returns the cache's line of a report, and false after its scope has closed.
func (c *Bytes) figure() (in scope.Inner, ok bool) {
	st := c.Stats()
	in = scope.Inner{Of: "bytes", Size: uint64(c.size), Used: st.KeyBytes + st.ValueBytes, Live: st.Entries, Failed: st.Rejected}
	in.CacheCounts = scope.CacheCounts{Hits: st.Hits, Misses: st.Misses, Evictions: st.Evictions}
	return in, c.life.alive()
}

// Len returns the number of entries, with those that have ended but weren't evicted so far.
func (c *Bytes) Len() int { return int(c.Stats().Entries) }

// Stats returns the sums over the shards. Cost: O(shards).
func (c *Bytes) Stats() (sum Stats) {
	if !c.life.alive() {
		return sum
	}
	for i := range c.shards {
		x := &c.shards[i]
		c.lock(x)
		sum.Hits += x.hits
		sum.Misses += x.misses
		sum.Evictions += x.evictions
		sum.Rejected += x.rejected
		sum.Crowded += x.crowded
		sum.Looked += x.looked
		sum.Entries += x.entries
		sum.KeyBytes += x.keyBytes
		sum.ValueBytes += x.valueBytes
		sum.Index += uint64(len(x.index)) * uint64(unsafe.Sizeof(bucket{}))
		c.done(x)
	}
	sum.Padding = uint64(c.size) - sum.Index - sum.KeyBytes - sum.ValueBytes
	return sum
}
