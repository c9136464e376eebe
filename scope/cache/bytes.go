package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
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
// to end ([Bytes.SetUntil]). The index takes 8 bytes for each 3/4 entry, the memory of evicted keys
// 4 bytes for each entry.
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

// shard is a part of the cache with its own queues and index. All but the lock is in the scope.
type shard struct {
	mu   sync.Mutex
	seed *wyhash.Seed
	*words
	index       []bucket
	ghost       []uint32 // by hash: the fingerprint of a key that was evicted unread
	small, main queue
	_           [56]byte // shards of two processors share no line
}

// words are the first bytes of a shard.
type words struct {
	small, main                                ring
	now                                        int64
	hits, misses, evictions, rejected, crowded uint64
	looked, entries, keyBytes, valueBytes      uint64
}

// bucket is a line of the index. A cell is 0, or the entry's offset in units of 8 bytes, its queue,
// its reads up to 3, and 16 bits of its hash.
type bucket [cells]uint64

const (
	cells     = 8
	cellReads = 1 << 32 // two bits
	cellMain  = 1 << 34
	cellUsed  = 1 << 35
	cellTag   = 48

	readsMost = 3 * cellReads

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
	each := size / n &^ 7
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
	x.words = (*words)(cut(int(unsafe.Sizeof(words{})+63) &^ 63))
	entries := max(len(all)/(entry+header+8*8/6+4), 1)
	buckets := (entries + 5) / 6 // a mean of six entries in eight cells
	x.index = unsafe.Slice((*bucket)(cut(buckets*int(unsafe.Sizeof(bucket{})))), buckets)
	ghosts := (entries + 1) &^ 1
	x.ghost = unsafe.Slice((*uint32)(cut(4*ghosts)), ghosts)
	small := len(all) / smallShare &^ 7
	x.small, x.main = queue{all[:small:small], &x.words.small}, queue{all[small:], &x.words.main}
}

// Most returns the largest sum of the sizes of a key and its value, and the header, that the cache
// takes: a thirty-second of a shard.
func (c *Bytes) Most() int { return c.most }

func (c *Bytes) hash(key []byte) uint64 { return c.seed.Hash(c.seed[0], key) }

func (x *shard) hash(key []byte) uint64 { return x.seed.Hash(x.seed[0], key) }

// shardOf returns the shard of a hash, locked.
func (c *Bytes) shardOf(hash uint64) *shard {
	x := &c.shards[(hash>>16)&uint64(len(c.shards)-1)]
	if c.locks {
		x.mu.Lock()
	}
	return x
}

func (c *Bytes) done(x *shard) {
	if c.locks {
		x.mu.Unlock()
	}
}

// buckets returns the two buckets of a hash.
func (x *shard) buckets(hash uint64) (a, b *bucket) {
	n := uint64(len(x.index))
	i, _ := bits.Mul64(hash, n)
	k, _ := bits.Mul64(hash*0x9e3779b97f4a7c15, n)
	return &x.index[i], &x.index[k]
}

// tagOf returns the bits of a hash in a cell. They are other bits than a bucket's number has.
func tagOf(hash uint64) uint64 { return cellUsed | hash<<cellTag }

const tagMask = cellUsed | 0xffff<<cellTag

func (x *shard) queueOf(cell uint64) *queue {
	if cell&cellMain != 0 {
		return &x.main
	}
	return &x.small
}

func at(cell uint64) int64 { return int64(uint32(cell)) * 8 }

// find returns the cell of a key, or nil, and its entry.
func (x *shard) find(hash uint64, key []byte) (cell *uint64, e entry) {
	tag := tagOf(hash)
	a, b := x.buckets(hash)
	for {
		for i := range a {
			if c := a[i]; c&tagMask == tag {
				e := x.queueOf(c).entry(at(c))
				if string(e.key()) == string(key) {
					return &a[i], e
				}
			}
		}
		if a == b {
			return nil, entry{}
		}
		a = b
	}
}

// entry is the bytes of a queue from an entry on.
type entry struct{ bytes []byte }

func (q *queue) entry(at int64) entry { return entry{q.bytes[at:]} }

func (e entry) sizes() uint64 { return binary.LittleEndian.Uint64(e.bytes) }

func (e entry) keySize() int   { return int(e.sizes() >> entryKey & keyMost) }
func (e entry) valueSize() int { return int(uint32(e.sizes())) }
func (e entry) begin() int     { return header + int(e.sizes()>>63)*untilSize }
func (e entry) key() []byte    { return e.bytes[e.begin():][:e.keySize()] }

func (e entry) value() []byte {
	return e.bytes[e.begin()+e.keySize():][:e.valueSize()]
}

// until returns the time at which the entry ends, or the largest int64.
func (e entry) until() int64 {
	if e.sizes()&entryEnds == 0 {
		return forever
	}
	return int64(binary.LittleEndian.Uint64(e.bytes[header:]))
}

func (e entry) isDead() bool { return e.sizes()&entryDead != 0 }

func (e entry) kill() {
	binary.LittleEndian.PutUint64(e.bytes, e.sizes()|entryDead)
}

const forever = 1<<63 - 1

// size returns the bytes that the entry takes.
func (e entry) size() int64 { return int64(e.begin()+e.keySize()+e.valueSize()+7) &^ 7 }

// write makes an entry at the front of the bytes.
func (e entry) write(key, value []byte, until int64) {
	sizes := uint64(len(value)) | uint64(len(key))<<entryKey
	rest := e.bytes[header:]
	if until != forever {
		sizes |= entryEnds
		binary.LittleEndian.PutUint64(rest, uint64(until))
		rest = rest[untilSize:]
	}
	binary.LittleEndian.PutUint64(e.bytes, sizes)
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
	e, ok := x.read(hash, key)
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
	defer c.done(x)
	e, ok := x.read(hash, key)
	if ok {
		fn(e.value())
	}
	return ok
}

// read finds an entry that hasn't ended, and counts the read.
func (x *shard) read(hash uint64, key []byte) (entry, bool) {
	cell, e := x.find(hash, key)
	if cell == nil || e.until() <= x.now {
		x.misses++
		return entry{}, false
	}
	if *cell&readsMost != readsMost {
		*cell += cellReads
	}
	x.hits++
	return e, true
}

// Has reports whether the cache has the key. It counts as no read.
func (c *Bytes) Has(key []byte) bool {
	if !c.life.alive() {
		return false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	cell, e := x.find(hash, key)
	has := cell != nil && e.until() > x.now
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
	if cell, e := x.find(hash, key); cell != nil {
		x.keyBytes -= uint64(e.keySize())
		x.valueBytes -= uint64(e.valueSize())
		if e.size() == size {
			e.write(key, value, until)
			if *cell&readsMost != readsMost {
				*cell += cellReads
			}
			x.count(key, value)
			return
		}
		reads, was := *cell&readsMost, *cell&cellMain
		e.kill()
		*cell = 0
		x.entries--
		x.add(hash, key, value, until, size, was, reads)
		return
	}
	in := uint64(0)
	if x.remembers(hash) {
		in = cellMain
	}
	x.add(hash, key, value, until, size, in, 0)
}

func (x *shard) count(key, value []byte) {
	x.keyBytes += uint64(len(key))
	x.valueBytes += uint64(len(value))
}

func (x *shard) add(hash uint64, key, value []byte, until, size int64, in, reads uint64) {
	q := x.queueOf(in)
	if in == 0 && size > q.size()/2 {
		in, q = cellMain, &x.main
	}
	for !q.fits(size) {
		x.evict(q)
	}
	place := q.put(size)
	q.entry(place).write(key, value, until)
	x.enter(hash, tagOf(hash)|in|reads|uint64(place/8))
	x.entries++
	x.count(key, value)
}

// enter adds a cell to the emptier of its buckets. If both are full, the entry with the fewest
// reads there is evicted.
func (x *shard) enter(hash, cell uint64) {
	a, b := x.buckets(hash)
	unused := func(k *bucket) (n int, at *uint64) {
		for i := range k {
			if k[i] == 0 {
				n, at = n+1, &k[i]
			}
		}
		return n, at
	}
	n, to := unused(a)
	if m, other := unused(b); m > n {
		to = other
	}
	if to == nil {
		to = &a[0]
		for _, k := range []*bucket{a, b} {
			for i := range k {
				if k[i]&(cellMain|readsMost) < *to&(cellMain|readsMost) {
					to = &k[i]
				}
			}
		}
		x.queueOf(*to).entry(at(*to)).kill()
		x.gone(x.queueOf(*to).entry(at(*to)))
		x.crowded++
	}
	*to = cell
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
func (x *shard) cellOf(hash uint64, place int64, in uint64) *uint64 {
	want := tagOf(hash) | in | uint64(place/8)
	a, b := x.buckets(hash)
	for _, k := range [2]*bucket{a, b} {
		for i := range k {
			if k[i]&^uint64(readsMost) == want {
				return &k[i]
			}
		}
	}
	return nil
}

// evict takes entries from the end of a queue until one has left the shard, or is dead.
func (x *shard) evict(q *queue) {
	in := uint64(0)
	if q == &x.main {
		in = cellMain
	}
	for chance := 0; ; chance++ {
		place, size := q.take()
		x.looked++
		e := q.entry(place)
		if e.isDead() {
			return
		}
		hash := x.hash(e.key())
		cell := x.cellOf(hash, place, in)
		reads := *cell & readsMost
		fills := in == 0 && x.main.fits(size) // main has room: no key of it is evicted
		if e.until() <= x.now || !fills && reads == 0 || chance == chances {
			*cell = 0
			x.gone(e)
			if in == 0 {
				x.remember(hash)
			}
			return
		}
		if in == 0 { // to the main queue
			for !x.main.fits(size) {
				x.evict(&x.main)
			}
			to := x.main.put(size)
			copy(x.main.bytes[to:to+size], e.bytes[:size])
			*cell = *cell&^(cellUsed-1) | cellUsed | cellMain | uint64(to/8)
			return
		}
		if !q.fits(size) { // at the wrap
			*cell = 0
			x.gone(e)
			return
		}
		to := q.put(size)
		copy(q.bytes[to:to+size], e.bytes[:size])
		*cell = *cell&^(cellMain-1) | (reads - cellReads) | uint64(to/8)
	}
}

// remember notes the key of an entry that left the small queue unread.
func (x *shard) remember(hash uint64) {
	x.ghost[hash%uint64(len(x.ghost))] = fingerprint(hash)
}

func fingerprint(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// remembers reports whether a key left the small queue a short while ago, and forgets it.
func (x *shard) remembers(hash uint64) bool {
	g := &x.ghost[hash%uint64(len(x.ghost))]
	if *g != fingerprint(hash) {
		return false
	}
	*g = 0
	return true
}

// Delete removes key and returns true, or false if the cache has no such key.
func (c *Bytes) Delete(key []byte) bool {
	if !c.life.alive() {
		return false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	cell, e := x.find(hash, key)
	if cell != nil {
		*cell = 0
		e.kill()
		x.left(e)
	}
	c.done(x)
	return cell != nil
}

// Clear removes all entries. The counters stay.
func (c *Bytes) Clear() {
	if !c.life.alive() {
		return
	}
	for i := range c.shards {
		x := &c.shards[i]
		if c.locks {
			x.mu.Lock()
		}
		clear(x.index)
		clear(x.ghost)
		*x.small.ring, *x.main.ring = ring{}, ring{}
		x.entries, x.keyBytes, x.valueBytes = 0, 0, 0
		c.done(x)
	}
}

// Advance sets the clock of the times passed to [Bytes.SetUntil]; the unit is the caller's. It
// starts at 0.
func (c *Bytes) Advance(now int64) {
	for i := range c.shards {
		x := &c.shards[i]
		if c.locks {
			x.mu.Lock()
		}
		x.now = now
		c.done(x)
	}
}

// Stats are the figures of a cache: counters since it was made, and bytes of now.
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
	in = scope.Inner{Size: uint64(c.size), Used: st.KeyBytes + st.ValueBytes, Live: st.Entries, Failed: st.Rejected}
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
		if c.locks {
			x.mu.Lock()
		}
		sum.Hits += x.hits
		sum.Misses += x.misses
		sum.Evictions += x.evictions
		sum.Rejected += x.rejected
		sum.Crowded += x.crowded
		sum.Looked += x.looked
		sum.Entries += x.entries
		sum.KeyBytes += x.keyBytes
		sum.ValueBytes += x.valueBytes
		sum.Index += uint64(len(x.index))*uint64(unsafe.Sizeof(bucket{})) + 4*uint64(len(x.ghost))
		c.done(x)
	}
	sum.Padding = uint64(c.size) - sum.Index - sum.KeyBytes - sum.ValueBytes
	return sum
}
