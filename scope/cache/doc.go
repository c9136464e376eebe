// Package cache has caches of fixed size in scopes: [Bytes] holds byte strings in so many bytes,
// and [Of] holds so many values of a type.
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
// Cache Eviction", SOSP 2023). A new value enters a small queue, a tenth of the values or a
// twentieth of the bytes. At its end a value that was read moves to the main queue, and any other
// is evicted; its key is remembered for a while, and enters the main queue at once if it comes
// back. At the end of the main queue a value that was read goes back to the front, up to three
// times for as many reads. So a scan of keys that don't come back passes through that queue alone.
package cache
