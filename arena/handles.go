package arena

// Handle names a chunk of a scope.HandlePool: an index, and the generation that the chunk had. It is
// plain data of 8 bytes: it may lie in a block, be saved, and be read on another machine. The zero
// Handle names nothing.
type Handle[T any] uint64
