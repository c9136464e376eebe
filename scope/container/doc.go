// Package container provides containers of fixed capacity in scopes: [List], [Deque], [Map] and
// [StringMap].
//
//	var flies = scope.Plain[Fly]()
//
//	near := container.NewList(level, flies, 16)       // takes 16 * size of Fly, now
//	if !near.Push(Fly{ID: 7}) { … }                   // false: the list has 16 values
//	byName := container.NewStringMap(level, flies, 100, 32)
//	byName.Set(player, fly)                           // copies the key
//	byName.GetBytes(packet[2:10]).Bites++             // without making a string
//
// A container takes the bytes for its whole capacity when it is made, and never grows: growing by
// moving would leave the old bytes unused until the scope closes. For an unknown size use
// scope.Builder, scope.List, or Append of scope.Maker. All contents are in the scope, and the Go
// value only points to them. So a container can't be stored in a block, and its values can't hold
// Go pointers.
//
// # Full
//
// Making a container in a full scope unwinds to the enclosing Do or Load, as every allocation in a
// scope does. Later operations allocate nothing in the scope, so it may be covered or frozen by
// then.
//
// # On a heap
//
// NewListOn, NewDequeOn, NewMapOn and NewStringMapOn make a container on an arena.Heap or Buddy, or
// through a Shared or Proxy of the heap. Use them for containers that come and go while the game
// runs, as with the chunks of a world. They return false when the heap is full, and Free frees the
// bytes. A container that isn't freed ends with the scope of its heap. Don't use a container after
// a Reset of its heap, which isn't detected. A heap in a state may hold containers, whose bytes are
// the same in each run. Package save doesn't check these containers in an image from outside; the
// program must.
//
// # Lifetime
//
// After its scope has closed, a container is empty, and adding a value panics with an error that
// wraps a [scope.Misuse]. Every method checks this, in every build. Pointers, slices and strings
// from a container end with the scope, and their use isn't checked. If a constructor of
// scope.Maker.Make fails, the containers that it made end, but a later use of them isn't detected
// because the scope is still open.
//
// Pass a container by pointer; go vet reports copies. The zero container panics. One goroutine at a
// time may write; while none writes, any number may read.
//
// # Pointers to values
//
// A value of a Deque or of a map doesn't move. A pointer, scope.Ref or scope.Addr of the value is
// valid until a Pop, Delete or Clear removes the value. Afterwards another value may be there. In a
// List, RemoveSwap also moves the last value.
//
// # State
//
// A container made between save.Begin and save.NewRing (package budget/save) is part of the state:
// Take, Restore, Hash, Delta and files include it, and the Go value stays valid after a Restore. In
// a state, removed values become zeros, so that the bytes are the same in every build. The hashes
// of a map in a state are seeded with 0 or by [Map.Seed], not at random. An image from outside is
// checked before anything changes. Bytes that no sequence of operations leaves are refused, and the
// error names the container. Value types follow the rules of a state's other types: no padding, no
// addresses. After a Restore, look up each pointer into a container again, because its value may be
// gone.
//
// # Costs
//
// Push of a List and PushBack of a Deque are inlined: two or three comparisons and a copy. Get and
// Set of the maps cost a hash and a few ns. Three operations allocate on the Go heap: making a
// container in a state, making the first Map of a key type, and the first error of each kind of
// StringMap.Set.
package container
