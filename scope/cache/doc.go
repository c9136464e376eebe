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
// A cache takes all its bytes when it is made, headers and index included, and never a byte more.
// It evicts the values that are least wanted, and their finalizers run before their bytes are used
// again. No operation but a load allocates on the Go heap, and the collector doesn't look into a
// cache.
//
// # Policy
//
// Both caches evict by S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak, "FIFO Queues are All You Need for
// Cache Eviction", SOSP 2023). A new value enters a small queue, which has a tenth of the values or
// a twentieth of the bytes. At its end a value that was read moves to the main queue, and any other
// is evicted; its key is remembered for a while, and enters the main queue at once if it comes
// back. At the end of the main queue a value that was read goes back to the front, up to three
// times for as many reads. So a scan of keys that don't come back passes through the small queue
// only.
//
// A pinned value of an Of leaves its queue when its turn has come, and enters the main queue at its
// last Unpin. An eviction of an Of gives at most 32 second chances: apart from pinned values it
// examines at most 33. An eviction of a Bytes gives at most 16.
package cache
