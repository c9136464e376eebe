// Package cache has caches of fixed size in scopes: [Bytes] holds byte strings in a fixed number of
// bytes, and [Of] holds a fixed number of values of a type.
//
//	blocks := cache.NewBytes(level, 64<<20, cache.Options{Shards: 16}) // takes 64 MiB, now
//	err := blocks.Set(key, block)             // may evict others; never full
//	block, ok := blocks.Get(buf[:0], key)     // a copy
//
//	chunks := cache.New(level, places, chunkMaker, 400) // takes 400 chunks, now
//	chunk, err := chunks.GetOrLoad(ctx, place, readChunk) // pins the chunk
//	defer chunks.Unpin(chunk)
//
// A cache takes all its bytes of the scope when it is made, headers and index included, and never
// takes more. When a cache is full, it evicts the values that are least wanted. The finalizer of a
// value runs before the value's bytes are used again. Of its operations, only these allocate on the
// Go heap: loads, waits for loads, the first finalizers, errors, and a Get of a Bytes whose buffer
// has no room. The garbage collector doesn't look into a cache.
//
// # Policy
//
// Both caches evict by S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak, "FIFO Queues are All You Need for
// Cache Eviction", SOSP 2023). A new value enters a small queue. That of a Bytes has a twentieth of
// the bytes, and a value that takes more than half of it enters the main queue. An Of evicts from
// the small queue while it has a tenth of the values or more. At the end of the small queue, a
// value that was read moves to the main queue, and a value that wasn't read is evicted; in a Bytes
// it moves as well, while the main queue has room. The cache remembers the key of the evicted value
// for a while. If the program sets or loads that key again meanwhile, the new value enters the main
// queue at once. At the end of the main queue, a value that was read goes back to the front, once
// for each read, but at most three times. So when the main queue is full, a scan of keys that don't
// come back passes mostly through the small queue.
//
// An eviction that finds a pinned value in an Of takes the value out of its queue. The last Unpin
// of the value puts it into the main queue. One eviction of an Of spares at most 32 values because
// they were read. So it examines at most 33 values that aren't pinned. One eviction of a Bytes
// spares at most 16 entries of a queue.
package cache
