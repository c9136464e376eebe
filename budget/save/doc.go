// Package save copies the whole state of a level, puts it back, hashes it, sends what changed,
// writes it to a file, and says who differs first. What lives in a region holds no Go pointer and
// lies in one range, so each of these is a call, whatever the state is made of.
//
//	level, err := budget.Load(ctx, region, func(s scope.Scope) (*Level, error) {
//		l := &Level{lines: readLines(s)}                // what never changes
//		state, room := save.Begin(region, s, roomMaker) // from here on: what a tick changes
//		l.room, l.frogs = room, frogMaker.HandlePool(s, 64)
//		l.ring = save.NewRing(s, 8, state)              // up to here: memory for eight snapshots
//		return l, nil
//	})
//
//	err = ring.Take(tick)          // 8 ticks back are always there
//	err = ring.Restore(ctx, tick)  // in place: same addresses, same handles
//	hash, err := ring.Hash(tick)   // equal on every machine, or they have parted
//
// Use it for rollback, for save games, to send a state to who joins, and to find out which field
// made two machines differ. It can't put back what lies elsewhere: Go values (the length of a
// scope.Text, or of a slice), files, sockets, what C keeps of its own; and a state that goes on
// changing its size is none, since a loaded region is frozen.
//
// Five names to know: [Begin], [NewRing], [Ring.Take], [Ring.Restore], [Ring.Hash]. [Ring.Delta]
// and [Ring.Apply] are for who sends; [Ring.Write], [Ring.AppendFile] and [Ring.Read] are files;
// [Ring.Diff] and [DiffFiles] say what differs.
//
// # What a state is
//
// The bytes between Begin and NewRing, and of the pools that were made there how many chunks are
// free. Chunks that are free are zeros in a snapshot: what was in them is nobody's. So is what says
// which pool ends at Close, which differs from plan to plan. Handles are state: who plays again
// from a snapshot gets the same ones. Scopes, pools and pointers into the region stay as good as
// they were, since nothing moves. In checked and asan builds, where what is put and taken again
// lies elsewhere, ask for pointers into pools anew; see [State.Rebuild].
//
// The lists, deques and maps of package container that were made there are state too, with all that
// they know: their Go values only point to it. In a state region the hashes of a map are seeded by
// the program (container.Map.Seed), so that the bytes are the same everywhere. A scope.Builder is
// done before NewRing, which refuses one that isn't.
//
// An arena.Heap or arena.Buddy on bytes of the state is part of it, its free bytes included. Checked
// builds fill those, and race builds what is freed: of such a state two builds have two hashes. All
// arenas of package arena that the load makes between Begin and NewRing are known, and so are a
// graph's instances: what comes from outside is checked in their words, too. No arena is made on the
// state's bytes after NewRing: the constructor's error says so. One in a block of another lives as
// long as the state.
//
// What a C library keeps in a heap of the state, by an arena.Shared or by one that C made itself
// (arena_c/room.h), nobody can check: it has addresses. Such a state is good for Take and Restore in
// its process, and refused when it comes from outside, but see [State.Authenticated].
//
// Everything but Take and Restore asks for a state region (budget.RegionPlan.State): there the
// bytes, but a Heap's and a Buddy's, are the same on every machine and in every build that got the
// same inputs. Its loads begin with zeros, and a type with padding or with an address in it is
// refused, with the field. An int or a uint is let in: it has 8 bytes on every 64-bit machine, and
// 4 on those of 32 bits, whose states are others.
//
// What play depends on beside the state, a map or a script, isn't in it: a save of one map would go
// on with another. [State.Of] names it, with a sum, and files and deltas of another are refused.
//
// # Failure
//
// A state that has no room unwinds as a full of the scope that NewRing was given, with its knob. A
// snapshot that the ring doesn't hold, of a load that is over, a damaged file or delta, one of
// other types: an error that says which, and nothing has changed. Whatever comes from outside
// becomes a snapshot of the ring first, when it is whole and fits; only Restore touches the state.
//
// What comes harms the game alone: see [Ring.Apply]. A game that indexes by what its state holds,
// or counts on an enum, says so by [State.Verify]:
//
//	state.Verify(func(v save.View) error {
//		l := save.At(v, level) // the snapshot's, of which nothing is in place yet
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
// region pinned, as a load does; Take doesn't: call it when nobody writes.
package save
