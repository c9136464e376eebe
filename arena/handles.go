package arena

// Handle names a chunk of a scope.HandlePool: an index, and the chunk's generation when Get
// returned it. It is 8 bytes of plain data that may be stored in a block, saved, and read on
// another machine. The zero Handle names no chunk.
type Handle[T any] uint64
