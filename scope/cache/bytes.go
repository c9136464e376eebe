package cache

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
	"github.com/upfront-mem/upfront/scope/internal/wyhash"
	"github.com/upfront-mem/upfront/scope/stack"
)

// ErrLarge matches, with errors.Is, the error of a Set whose key and value are larger than the
// cache accepts.
var ErrLarge = errors.New("cache: the key and value are too large")

// Options configure a [Bytes]. The zero Options make a cache for one goroutine.
type Options struct {
	// Shards is the number of parts of the cache: a power of two up to 4096, or 0. Each shard has a
	// lock, so any number of goroutines may call the cache's methods. With more shards the
	// goroutines wait less often, but the largest entry is smaller ([Bytes.Most]). With 0 the cache
	// has one shard without a lock, and one goroutine at a time uses the cache.
	Shards int
	// Entry is the expected mean size of a key and its value in bytes, at most [Bytes.Most]. 0
	// means 256. It decides the size of the index. If the entries are smaller, the index is full
	// before the bytes are: with entries of a quarter of the size, about two thirds of the bytes
	// stay unused. Stats.Crowded is then nearly equal to Stats.Evictions. Sizes vary, so pass a
	// tenth less than the mean.
	Entry int
	// Seed determines the hashes. With 0 the cache chooses a random seed, so that an attacker can't
	// choose keys that collide. In a state of package budget/save, 0 is the seed itself, so that
	// the bytes are the same in every run.
	Seed uint64
}

// Bytes is a cache of fixed size whose keys and values are byte strings.
//
// An entry is a header, a key and its value, rounded up to a multiple of 8 bytes. The header has 8
// bytes, or 16 if the entry has a time to end ([Bytes.SetUntil]). The index takes 64 bytes for each
// 6 entries of the mean size. It also remembers evicted keys.
//
// A key, a value or a buffer of the caller may cause a memory fault that
// runtime/debug.SetPanicOnFault turns into a panic. After that panic each entry is whole or absent,
// and no shard is locked.
type Bytes struct {
	_       stack.NoCopy
	life    lifetime.Life
	shards  []shard
	seed    wyhash.Seed
	locks   bool
	most    int // of an entry
	planned int // the largest size

	sizing sync.Mutex // guards size; taken before the lock of a shard
	size   int        // of now
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

type counters struct{ hits, misses, evictions, rejected, crowded, examined uint64 }

// words are the first bytes of a shard.
type words struct {
	rings                         [2]ring
	now                           int64
	entries, keyBytes, valueBytes uint64
}

const (
	header    = 8
	untilSize = 8

	// chances is the most entries that go back to the front for one eviction.
	chances = 16

	shardsMost   = 4096
	entryDefault = 256
	leastShard   = 4096
	mostShard    = 1 << 35 // a place has 32 bits, in units of 8 bytes
	mostShare    = 32      // an entry takes at most this part of a shard
	smallShare   = 20      // the small queue takes this part of a shard
)

// NewBytes makes an empty cache of size bytes in s. The cache never takes more of s. A full scope
// unwinds. NewBytes panics if s isn't the topmost scope, if the options are out of range, or if a
// shard would have fewer than 4096 bytes or more than 32 GiB. Cost: O(size), to zero the bytes, and
// a few Go allocations.
func NewBytes(s scope.Scope, size int, o Options) *Bytes {
	if o.Shards < 0 || o.Shards > shardsMost || o.Shards&(o.Shards-1) != 0 {
		panic(misuse("NewBytes with %d shards: pass 0, or a power of two up to %d", o.Shards, shardsMost))
	}
	n := max(o.Shards, 1)
	each := eachOf(size, n)
	if each < leastShard {
		panic(misuse("NewBytes of %d bytes, %d for each shard (Options.Shards is %d): pass %d bytes or more",
			size, max(each, 0), o.Shards, n*leastShard))
	}
	if int64(each) > mostShard {
		panic(misuse("NewBytes of %d bytes, %d for each shard (Options.Shards is %d): a shard has %d at most; use "+
			"more shards", size, each, o.Shards, int64(mostShard)))
	}
	if most := each / mostShare; o.Entry < 0 || o.Entry > most {
		panic(misuse("NewBytes with an Options.Entry of %d: pass 0 for %d, or up to the %d bytes that an entry may "+
			"have", o.Entry, entryDefault, most))
	}
	entry := o.Entry
	if entry == 0 {
		entry = entryDefault
	}
	c := &Bytes{seed: wyhash.Of(o.Seed), locks: o.Shards != 0, most: each / mostShare, size: size, planned: size,
		shards: make([]shard, n)}
	all := octets.SliceAligned(s, size, arena_c.LineSize)
	c.life = lifetime.Of(s)
	c.lay(all, each, entry)
	if st := lifetime.Watching(s); st != nil {
		st.NoteTenant(all, stack.Tenant{Name: "cache.Bytes", Check: func(image []byte) error {
			of := &Bytes{seed: c.seed, shards: make([]shard, n)}
			of.lay(image, each, entry)
			return of.look()
		}})
	} else if o.Seed == 0 {
		c.seed = wyhash.Random()
	}
	stack.Of(c.life.End).NoteCache(unsafe.Pointer(unsafe.SliceData(all)), c.figure)
	return c
}

// eachOf returns the bytes of each of n shards: whole lines.
func eachOf(size, n int) int { return size / n &^ (arena_c.LineSize - 1) }

// lines returns a number of bytes rounded up to whole lines.
func lines(size int) int { return (size + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1) }

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
	x.words = (*words)(cut(lines(int(unsafe.Sizeof(words{})))))
	entries := max(len(all)/(entry+header+int(unsafe.Sizeof(bucket{}))/cellsUsed), 1)
	buckets := (entries + cellsUsed - 1) / cellsUsed
	x.index = unsafe.Slice((*bucket)(cut(buckets*int(unsafe.Sizeof(bucket{})))), buckets)
	part := len(all) / smallShare &^ 7
	x.queues = [2]queue{{all[:part:part], &x.rings[small]}, {all[part:], &x.rings[main]}}
}

// Most returns the size of the largest entry that the cache accepts, in bytes: a thirty-second of a
// shard. An entry's size is the sum of its header, its key and its value.
func (c *Bytes) Most() int { return c.most }

func (c *Bytes) hash(key []byte) uint64 { return c.seed.Hash(c.seed[0], key) }

func (x *shard) hash(key []byte) uint64 { return x.seed.Hash(x.seed[0], key) }

func (c *Bytes) shardOf(hash uint64) *shard { return &c.shards[(hash>>16)&uint64(len(c.shards)-1)] }

func (c *Bytes) lock(x *shard) {
	if c.locks {
		x.mu.Lock()
	}
}

// done is deferred where memory of the caller is used, because that may panic.
func (c *Bytes) done(x *shard) {
	if c.locks {
		x.mu.Unlock()
	}
}

// Get appends the value of key to dst. It returns the result and true, or dst and false if the
// cache doesn't have the key or the scope has closed. Get makes no Go allocation if dst has room.
// Cost: a hash, one or two cache lines of the index, and a copy.
func (c *Bytes) Get(dst, key []byte) ([]byte, bool) {
	if !c.life.Alive() {
		return dst, false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	if c.locks { // as lock and done, in fewer instructions
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	found, e := x.find(hash, key)
	if !x.read(found, e) {
		return dst, false
	}
	return append(dst, e.value()...), true
}

// View calls fn with the value of key. The value is valid until fn returns. View returns false and
// doesn't call fn if the cache doesn't have the key or the scope has closed. The shard is locked
// while fn runs. So fn must not use the cache, or call a method that reports on the cache's region.
func (c *Bytes) View(key []byte, fn func(value []byte)) bool {
	if fn == nil {
		panic(misuse("View without a function"))
	}
	if !c.life.Alive() {
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

// Has reports whether the cache has the key. It returns false after the scope has closed. A Has
// doesn't count as a read.
func (c *Bytes) Has(key []byte) bool {
	if !c.life.Alive() {
		return false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	c.lock(x)
	defer c.done(x)
	cell, e := x.find(hash, key)
	return cell.bucket != nil && !e.hasEnded(x)
}

// Set sets the value of key. It evicts the least wanted entries until the new entry has room, in
// the index as well. If the new entry takes more than [Bytes.Most], Set removes the old value of
// key, and returns an error that matches [ErrLarge]. So Get never returns a value that is older
// than the last Set of its key. Set panics after the scope has closed. Cost: a hash, a copy, and
// the examination of at most 18 entries for each entry that is evicted, moved to the main queue, or
// found deleted or replaced.
func (c *Bytes) Set(key, value []byte) error { return c.SetUntil(key, value, forever) }

// SetUntil is Set for a value that ends at a time of the caller's clock. Once [Bytes.Advance] has
// set the clock to that time or a later one, the cache doesn't have the key. If the clock is
// already there, only the key's old value goes. A value with the time math.MaxInt64 never ends.
func (c *Bytes) SetUntil(key, value []byte, until int64) error {
	if !c.life.Alive() {
		panic(lifetime.Closed{Life: c.life, What: "Set in a cache.Bytes"})
	}
	need := header + len(key) + len(value)
	if until != forever {
		need += untilSize
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	if c.locks { // as lock and done, in fewer instructions
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	if need > c.most {
		x.rejected++
		x.delete(hash, key)
		return c.large(len(key), len(value), need)
	}
	x.set(hash, key, value, until, int64(need+7)&^7)
	return nil
}

func (c *Bytes) large(key, value, need int) error {
	n := len(c.shards)
	or := ""
	if n > 1 {
		or = ", or fewer shards"
	}
	return fmt.Errorf("%w: a key of %d bytes and a value of %d take %d with the header, and one takes at most %d, a "+
		"%dnd of a shard (there are %d); pass NewBytes %d bytes or more%s", ErrLarge, key, value, need, c.most,
		mostShare, n, n*lines(need*mostShare), or)
}

// Delete removes key and returns true. It returns false if the cache has no entry of the key or the
// scope has closed. An entry that has ended ([Bytes.SetUntil]) counts until it is evicted.
func (c *Bytes) Delete(key []byte) bool {
	if !c.life.Alive() {
		return false
	}
	hash := c.hash(key)
	x := c.shardOf(hash)
	c.lock(x)
	defer c.done(x)
	return x.delete(hash, key)
}

// Clear removes all entries. The counters stay.
func (c *Bytes) Clear() {
	if !c.life.Alive() {
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

// Advance sets the cache's clock, to which the times passed to [Bytes.SetUntil] refer. The caller
// chooses the unit. The clock starts at 0. Advance to an earlier time changes nothing. Only a
// Restore of package save sets the clock back.
func (c *Bytes) Advance(now int64) {
	if !c.life.Alive() {
		return
	}
	for i := range c.shards {
		x := &c.shards[i]
		c.lock(x)
		x.now = max(x.now, now)
		c.done(x)
	}
}

// Stats are the figures of a cache. Hits to Examined are counted since the cache was made, and the
// other fields are the numbers of this moment. In a state, Restore of package save leaves the
// counters as they are.
type Stats struct {
	Hits, Misses, Evictions, Rejected uint64
	Crowded                           uint64 // evictions for room in the index (Options.Entry)
	Examined                          uint64 // entries that evictions examined
	Entries                           uint64 // those included whose time has passed (SetUntil)
	KeyBytes, ValueBytes              uint64
	Index                             uint64 // bytes of the index and of evicted keys
	Padding                           uint64 // all other bytes, free ones included
}

// figure returns the cache's line of a report, and false after its scope has closed.
func (c *Bytes) figure() (in stack.Inner, ok bool) {
	st, size := c.stats()
	in = stack.Inner{Of: "bytes", Size: uint64(size), Used: st.KeyBytes + st.ValueBytes, Live: st.Entries,
		Failed: st.Rejected}
	in.CacheCounts = stack.CacheCounts{Hits: st.Hits, Misses: st.Misses, Evictions: st.Evictions}
	return in, c.life.Alive()
}

// Stats returns the cache's figures, summed over the shards. Cost: O(shards).
func (c *Bytes) Stats() (sum Stats) {
	sum, _ = c.stats()
	return sum
}

// stats returns the figures and the size. A Resize changes neither meanwhile.
func (c *Bytes) stats() (sum Stats, size int) {
	c.sizing.Lock()
	defer c.sizing.Unlock()
	if !c.life.Alive() {
		return sum, c.size
	}
	for i := range c.shards {
		x := &c.shards[i]
		c.lock(x)
		sum.Hits += x.hits
		sum.Misses += x.misses
		sum.Evictions += x.evictions
		sum.Rejected += x.rejected
		sum.Crowded += x.crowded
		sum.Examined += x.examined
		sum.Entries += x.entries
		sum.KeyBytes += x.keyBytes
		sum.ValueBytes += x.valueBytes
		sum.Index += uint64(len(x.index)) * uint64(unsafe.Sizeof(bucket{}))
		c.done(x)
	}
	sum.Padding = uint64(c.size) - sum.Index - sum.KeyBytes - sum.ValueBytes
	return sum, c.size
}
