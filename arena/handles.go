package arena

// Handle names a chunk of a scope.HandlePool by an index, and by the chunk's generation when Get
// returned it. It is 8 bytes without a pointer. It may be stored in a block, saved, and read on
// another machine. The zero Handle names no chunk.
type Handle[T any] uint64
