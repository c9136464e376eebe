// Package index has an index of boxes with a history of eight ticks. In each tick of a game 20,000
// entities move, and players shoot at places as they were up to seven ticks ago. The server of a
// shooter looks back in this way (lag compensation). A rollback game plays again from a past tick.
//
// The index is a [Grid] of 178 lines: a scope.HandlePool of entities, and for each cell an
// arena.Ptr to its first entity. Its code has nothing about history. The ring of package save takes
// a snapshot of the whole index once in a tick, and Ring.Restore puts a past tick in place. The IDs
// are part of the snapshot: in a tick before an entity entered, its ID finds nothing. [Grid.In]
// also checks files and deltas from outside.
//
// Four programs play the same game. The two with history have the same hits, by their sums:
//
//	                                  ring a snapshot  garbage in 100 ticks  best tick
//	in a region, with history         1.125 × in use   0                     1.02 to 1.06 ×
//	in a region, without history                       0                     1
//	tidwall/rtree, Copy each tick                      75 GB                 66 ×
//	tidwall/rtree, without history                     64 MB                 37 ×
//
// In a region the garbage is 0, or 5,576 bytes if Go starts a thread meanwhile.
//
// The index uses 1,012,768 bytes: the entities, their records in the pool, the cells and the IDs.
// The ring has an image for each of the eight ticks, and a ninth image for data from outside, so a
// snapshot takes 1.125 times these bytes. A look back costs a Restore for each past tick, and a
// Restore to the present. 64 shots into eight ticks take 0.2 ms. Of this time, the searches take 8
// µs. The tree's copies need no Restore.
//
// The tree is github.com/tidwall/rtree v1.10.0, as published. Its Copy is cheap: a later change
// copies the nodes on its way that a copy of the tree shares. In this version a node's copy keeps
// the number of its former owner, so each later change copies the node again. With this one line
// fixed, the garbage with history is 156 MB instead of 75 GB, and the best tick is as fast as
// without history. A tree suits boxes of all sizes anywhere. A grid suits a game whose entities are
// of similar sizes and spread out.
//
// A Go program can copy arrays as flat as the grid's by hand, at the same cost. With a region, the
// program doesn't need a complete list of the arrays. A 20,001st entity is an error with the number
// to raise. The same bytes are hashed, sent and written.
//
// The entities are in a pool, not on an arena.Heap. A Take of 20,000 live chunks costs 20 µs. A
// Take of 20,000 blocks of a heap that State.Heap packs costs 195 µs, because the heap is walked
// block by block. With 2,000 live of each, it is 20 µs and 43 µs. A heap suits values of many
// lengths.
//
// A ninth snapshot replaces the oldest. A Restore of the replaced snapshot returns an error with
// the snapshots that the ring has. The error for the 20,001st box has n, the number to raise. The
// plan's region has less than 64 KiB to spare.
package index
