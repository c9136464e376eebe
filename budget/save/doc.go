// Package save takes snapshots of a level's state. It restores and hashes snapshots, sends their
// changes, writes them to files, and names the first field in which two of them differ.
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
// player, and to find the field in which two machines differ. It can't restore data outside the
// region: Go values (the length of a scope.Text or of a slice), files, sockets, and a C library's
// own memory. The size of a state is fixed once the region is loaded.
//
// [State.Heap] is for a heap in the state. [Ring.Delta] and [Ring.Apply] send changes;
// [Ring.Write], [Ring.AppendFile] and [Ring.Read] are for files; [Ring.Diff] and [DiffFiles] report
// differences.
//
// # The state
//
// A state is the bytes allocated between Begin and NewRing, and its pools' counts of free and
// retired chunks. In a snapshot that is hashed, sent or written, free chunks are zeros, and so are
// the scope's records of pools and labels, which differ between plans. Handles are part of the
// state: after a Restore, the game creates the same handles again. Scopes, pools and pointers into
// the region stay valid, since nothing moves. Checked and asan builds reuse a chunk at another
// address, so there a function of [State.Rebuild] renews pointers into pools.
//
// Lists, deques and maps of package container that are made in the state belong to it entirely:
// their Go values only point into it. In a state region the program seeds the hashes of a map
// (container.Map.Seed), so that the bytes are the same everywhere. Call Done on each scope.Builder
// before NewRing, which panics while a Builder is in use.
//
// An arena.Heap or arena.Buddy on bytes of the state belongs to it. With [State.Heap], snapshots
// skip a heap's free bytes, so their cost and size follow the bytes in use. Snapshots hold all
// bytes of other heaps, and of a buddy: a buddy doesn't know the requested sizes, so the ends of
// its blocks would differ after a Restore. Checked builds fill free bytes, and race builds fill
// freed blocks, so the hash of a state with such bytes differs between builds.
//
// In each snapshot from outside, the control words of the arenas that the load made between Begin
// and NewRing, and of a graph's instances, are checked. After NewRing an arena's constructor
// refuses the state's bytes. An arena in a block of another arena lives as long as the state.
//
// A C library's data in an arena.Shared, in a heap that C made (arena_c/room.h), or in a heap of
// [State.Library] may hold addresses, which can't be checked. Take and Restore work on such a
// state; snapshots from outside need [State.Authenticated].
//
// Calls that hash, compare, send, write or read snapshots need a state region
// (budget.RegionPlan.State). Its loads begin with zeros, and a type with padding or an address is
// refused with the name of the field. So its bytes, except those of a Buddy and of a Heap without
// State.Heap, are the same on every machine and in every build if play computes the same numbers
// from the same inputs. Convert each float product that is added, as in float64(x*y) + z, since Go
// may fuse the two, and keep NaN out. The tool upfront-vet finds such products, and [State.NaN] a
// NaN; README.md has other causes. The types int and uint are allowed, but snapshots with them
// don't pass between 64-bit and 32-bit machines.
//
// Play, the game's code that runs on a loaded state, may depend on data outside the state, such as
// a map or a script. [State.Of] names that data with a checksum. A file or delta with another
// checksum is refused.
//
// # Failure
//
// If the scope passed to NewRing is full, NewRing unwinds with an error that names the key to
// raise. A ring's calls return an error, for example if the ring doesn't hold the snapshot, its
// load is over, or a file or delta is damaged or has other types. Nothing has changed then, unless
// a function of [State.Rebuild] fails in Restore. Data from outside becomes a snapshot of the ring
// only when it is complete and correct; only Restore changes the state.
//
// A hostile snapshot can harm only the game's own data: see [Ring.Apply]. A game that indexes by a
// number in its state, or relies on the range of an enum, checks it in a function of
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
// A Ring belongs to the goroutine that drives its regions. Restore waits for workers that have a
// region pinned, as a load does. Take doesn't wait: call it when no goroutine writes the state.
package save
