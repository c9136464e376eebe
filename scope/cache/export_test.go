package cache

import "unsafe"

// Walk checks all bytes of the cache.
func (c *Bytes) Walk() error { return c.look() }

// Raw returns all bytes of the cache.
func (c *Bytes) Raw() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(c.shards[0].words)), c.planned)
}

// LookAt checks an image of all bytes.
func (c *Bytes) LookAt(image []byte, entry int) error {
	of := &Bytes{seed: c.seed, shards: make([]shard, len(c.shards))}
	of.lay(image, eachOf(c.planned, len(c.shards)), entry)
	return of.look()
}

// Fits reports whether an entry fits at the head of a queue with entries.
func Fits(bytes, head, tail, size int64) bool {
	return (&queue{make([]byte, bytes), &ring{head: head, tail: tail, count: 1}}).fits(size)
}
