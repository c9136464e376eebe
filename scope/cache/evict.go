package cache

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
	x.left(e)
	if e.size() == size && e.ends() == (until != forever) {
		tags, reads := c.tags[c.n&1], c.reads
		c.empty() // until the entry is whole: a read of key or value may panic
		e.rewrite(value, until)
		c.tags[c.n&1], c.reads = tags, reads
		c.read()
		x.entries++
		x.count(key, value)
		return
	}
	in, reads := c.queue(), c.count()
	c.empty()
	e.kill()
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

// delete removes a key, and reports whether the shard had it.
func (x *shard) delete(hash uint64, key []byte) bool {
	c, e := x.find(hash, key)
	if c.bucket == nil {
		return false
	}
	c.empty()
	e.kill()
	x.left(e)
	return true
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

// evict takes entries from the end of a queue until one has left the shard, or is dead.
func (x *shard) evict(in uint) {
	q := &x.queues[in]
	for chance := 0; ; chance++ {
		place, size := q.take()
		x.examined++
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
