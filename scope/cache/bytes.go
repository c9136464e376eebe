package cache

import "github.com/upfront-mem/upfront/scope"

// Options are choices for a Bytes. The zero Options are for one goroutine.
type Options struct {
	// Shards divides the cache, so that as many goroutines can use it at a time: a power of two.
	// Each shard has a lock. 0: no lock, and one goroutine at a time uses the cache.
	Shards int
	// Entry is the mean size in bytes of a key and its value, for which the index has room; 0: 256.
	// With smaller entries the cache evicts before its bytes are full.
	Entry int
	// Seed is the seed of the hashes. 0: a random seed, except in a state (budget/save).
	Seed uint64
}

// Bytes is a cache of byte strings in a fixed number of bytes.
type Bytes struct{}

// NewBytes makes a cache of size bytes in s.
func NewBytes(s scope.Scope, size int, o Options) *Bytes { panic("not yet") }

// Get appends the value of key to dst, and returns the result and whether the cache has the key.
func (c *Bytes) Get(dst, key []byte) ([]byte, bool) { panic("not yet") }

// Set sets the value of key.
func (c *Bytes) Set(key, value []byte) error { panic("not yet") }
