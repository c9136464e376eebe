// Package save takes snapshots of a level's state. It restores and hashes snapshots, sends the
// changes between two snapshots, writes snapshots to files, and names the first field in which two
// snapshots differ.
//
//	level, err := budget.Load(ctx, region, func(s scope.Scope) (*Level, error) {
//		l := &Level{lines: readLines(s)}                // data that never changes
//		state, room := save.Begin(region, s, roomMaker) // from here on: data that a tick changes
//		l.room, l.frogs = room, frogMaker.HandlePool(s, 64)
//		l.ring = save.NewRing(s, 8, state) // ends the state: memory for eight snapshots
//		return l, nil
//	})
//
//	err = ring.Take(tick)         // the ring holds the last 8 ticks
//	err = ring.Restore(ctx, tick) // in place: same addresses, same handles
//	hash, err := ring.Hash(tick)  // equal on machines with equal states
//
// A region's memory is one range without Go pointers, so each of these tasks is one call, and the
// game lists no fields. Use the package for rollback, for save games, to send a state to another
// player, and to find the field in which two machines differ. The package can't restore data
// outside the region: Go values (such as the length of a scope.Text or of a slice), files, sockets,
// and a C library's own memory. The size of a state is fixed once the region is loaded.
//
// [State.Heap] is for a heap in the state. [Ring.Delta] and [Ring.Apply] are for changes.
// [Ring.Write], [Ring.AppendFile] and [Ring.Read] are for files. [OpenCheckpoints] is for states
// that survive a kill of the process. [Ring.Diff] and [DiffFiles] are for differences.
//
// # The state
//
// A state consists of the bytes allocated between Begin and NewRing, and of the counts of free and
// retired chunks of each pool. A snapshot that is hashed, sent or written has zeros for chunks that
// aren't live. It also has zeros for the scope's records of pools and labels, because these records
// differ between plans. Handles are part of the state: after a Restore, the game creates the same
// handles again. Scopes, pools and pointers to values of the snapshot stay valid, because Restore
// moves no memory. In checked and asan builds a chunk gets another address when it is reused. There
// a function passed to [State.Rebuild] must renew pointers into pools.
//
// Lists, deques and maps of package container that are made in the state belong to the state
// entirely, because their Go values only point into it. The hashes of a map in a state have the
// seed 0 until container.Map.Seed sets another, so that the bytes are the same everywhere. Call
// Done on each scope.Builder before NewRing; NewRing panics while a Builder is in use.
//
// An arena.Heap or arena.Buddy on bytes of the state belongs to the state. With [State.Heap],
// snapshots skip a heap's free bytes, so a snapshot's cost and size follow the bytes in use.
// Snapshots hold all bytes of other heaps and of buddies. They can't skip a buddy's free bytes: a
// buddy doesn't know the requested sizes, so the ends of its blocks would differ after a Restore.
// Checked builds fill free bytes, and race builds fill freed blocks. So the hash of a snapshot that
// holds free bytes may differ between builds.
//
// A snapshot from outside is one that [Ring.Apply] or [Ring.Read] makes from data of another
// program. Apply and Read check the control words of all arenas that the load made between Begin
// and NewRing, and of a graph's instances (package flow). After NewRing, constructors of arenas
// refuse the state's bytes. An arena in a block of another arena lives as long as the state.
//
// A C library's data in an arena.Shared, in a heap that C made (arena_c/room.h), or in a heap of
// [State.Library] may hold addresses. Addresses can't be checked. So Take and Restore work on a
// state with this data, but Apply and Read need [State.Authenticated].
//
// Calls that hash, compare, send, write or read snapshots need a state region
// (budget.RegionPlan.State). A load of a state region begins with zeroed memory. There Begin and
// NewRing refuse padding and addresses in the types of the root, of pools and containers, and of
// values that these lead to. A checked build refuses them in all types. The error names the field.
// Play is the game's code that runs on a loaded state. If play computes the same numbers from the
// same inputs, a snapshot's hash is the same on every machine and in every build, unless the state
// has a type with an int or uint, a Buddy, or a Heap without State.Heap.
//
// Go may fuse a float product with an addition, so convert the product, as in float64(x*y) + z.
// Keep NaN out of the state. The tool upfront-vet looks for products without conversion, and
// [State.NaN] looks for a NaN. README.md has other causes of differences. The types int and uint
// are allowed, but a 64-bit and a 32-bit machine can't exchange snapshots with these types.
//
// Play may depend on data outside the state, such as a map or a script. [State.Of] names that data
// with a checksum. Read and Apply refuse a file or delta with another checksum.
//
// # Older files
//
// A program with other types reads its older files after a call of [State.Version]. [Ring.Read]
// then copies the fields of the same name and type. [Dropped], [Renamed], [Renumbered] and
// [Converted] list the other changes. [State.Name] and [Enum] add to a file the names that a
// conversion needs. README.md has a table of changes.
//
// # Failure
//
// If the scope passed to NewRing is full, NewRing unwinds with an error that names the key to
// raise. A ring's methods return an error, for example if the ring doesn't hold the snapshot, if
// the ring's load is over, or if a file or delta is damaged or has other types. After an error
// nothing has changed, unless a function of [State.Rebuild] failed in Restore. Apply and Read add a
// snapshot to the ring only if it passes all checks. Of a ring's methods only Restore changes the
// state.
//
// A hostile snapshot can harm only the game's own data: see [Ring.Apply]. If the game indexes by a
// number of the state, or relies on the range of an enum, check the number in a function passed to
// [State.Verify]:
//
//	state.Verify(func(v save.View) error {
//		l := save.At(v, level) // in the snapshot: the state is as it was
//		lamps := save.GetSlice(v, l.Lamps)
//		if l.Mode > lastMode || l.Chosen >= uint32(len(lamps)) {
//			return fmt.Errorf("mode %d, lamp %d of %d", l.Mode, l.Chosen, len(lamps))
//		}
//		return nil
//	})
//
// # Goroutines
//
// A Ring belongs to the goroutine that loads and rewinds its regions. Like a load, Restore waits
// for workers that have a region pinned. Take doesn't wait, so call Take when no goroutine writes
// the state.
package save
