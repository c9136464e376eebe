// Package index has an index of boxes with a history of eight ticks. In each tick of a game 20,000
// entities move, and players shoot at places as they were up to seven ticks ago. A server of a
// shooter looks back like that (lag compensation); a rollback game plays again from a past tick.
//
// The index is a [Grid] of 178 lines: a scope.HandlePool of entities, and for each cell an
// arena.Ptr to its first entity. Nothing in it says history. The ring of package save takes the
// whole index once in a tick, Ring.Restore brings a past tick in place, and IDs are part of it: an
// ID finds nothing in a tick before its entity entered. [Grid.In] has files and deltas from outside
// checked, too.
//
// Four programs play the same game, and two of them the same with the same hits, by their sums:
//
//	                                  ring a snapshot  garbage in 100 ticks  best tick
//	in a region, with history         1.125 × in use   0                     1.02 to 1.04 ×
//	in a region, without history                       0                     1
//	tidwall/rtree, Copy each tick                      75 GB                 66 ×
//	tidwall/rtree, without history                     64 MB                 37 ×
//
// The garbage is 0, or 5,576 bytes if Go starts a thread meanwhile.
//
// In use are 1,012,768 bytes: the entities, their records in the pool, the cells and the IDs. The
// ring has an image for each tick, and one more for images from outside, which makes the 1.125. A
// look back costs a Restore for each past tick, and one to the present: 64 shots into eight ticks
// take 0.2 ms, and their searches alone take 8 µs. The tree's copies need no Restore.
//
// The tree of github.com/tidwall/rtree v1.10.0 is as published. Its Copy is cheap; a change copies
// the nodes on its way that a copy of the tree shares. In that version a node's copy keeps the
// number of its former owner, so the node is copied again by each later change. With that one line
// mended the history's garbage is 156 MB in place of 75 GB, and its best tick is that of the tree
// without history. A tree suits boxes of all sizes anywhere; a grid suits a game whose entities are
// about as large as each other and spread out.
//
// A Go program can copy arrays as flat as the grid's by hand, at the same cost. In the region there
// is no list of arrays to keep complete, a 20,001st entity is an error with the number to raise,
// and the same bytes are hashed, sent and written.
//
// The entities are in a pool, not on an arena.Heap. A Take of 20,000 live chunks costs 20 µs. A
// Take of 20,000 blocks of a heap that State.Heap packs costs 195 µs, because the heap is walked
// block by block. With 2,000 of them live it is 20 and 43 µs. A heap suits values of many lengths.
//
// At the bound: a ninth snapshot replaces the oldest, and Restore of that one names those that the
// ring holds. The 20,001st box is refused with n. The plan's region has less than 64 KiB to spare.
package index
