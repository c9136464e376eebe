// Package container has containers of fixed capacity in scopes: [List], [Deque], [Map] and
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
// scope.Builder, scope.List, or Append of scope.Maker. Values, and words such as a length or a
// map's index, are in the scope. The Go value only points to them, so a container can't be stored
// in a block, and its values can't hold Go pointers.
//
// # Full
//
// Making a container in a full scope unwinds to the enclosing Do or Load, as every allocation in a
// scope does. No later operation allocates in the scope, which may be covered or frozen by then.
// Each false, nil or error of a method has one meaning, which its comment names.
//
// # On a heap
//
// NewListOn, NewDequeOn, NewMapOn and NewStringMapOn make a container on an arena.Heap or Buddy, or
// through a Shared or Proxy of the heap. Use them for containers that come and go while the game
// runs, as with the chunks of a world. They return false when the heap is full, and Free frees the
// bytes. A container that isn't freed ends with the scope of its heap. A Reset of the heap frees
// its bytes, and the container doesn't notice. A heap in a state may hold containers, whose bytes
// are the same in each run. Package save doesn't check them in an image from outside; the program
// must.
//
// # Lifetime
//
// After its scope has closed, a container is empty, and adding a value panics with an error that
// wraps a [scope.Misuse]. Every method checks this, in every build. Pointers, slices and strings
// from a container aren't checked, and end with the scope. If the constructor that made a container
// fails (Make of scope.Maker), the container ends with it. Its scope is still open then, so a later
// use isn't detected.
//
// Pass a container by pointer; go vet reports a copy. The zero container panics. One goroutine at a
// time writes; while none does, many may read.
//
// # Pointers to values
//
// A value of a Deque or of a map doesn't move. A pointer, scope.Ref or scope.Addr of the value is
// valid until a Pop, Delete of its key, or Clear removes the value. Then another value may take its
// place. In a List, RemoveSwap also moves the last value.
//
// # State
//
// A container made between save.Begin and save.NewRing (package budget/save) is part of the state:
// Take, Restore, Hash, Delta and files include it, and the Go value stays valid after a Restore. In
// a state, removed values become zeros, so that the bytes are the same in every build. The hashes
// of a map there are seeded with 0 or by [Map.Seed], not at random. An image from outside is
// checked before anything changes. Bytes that no sequence of operations leaves are refused, and the
// error names their place. Value types follow the rules of a state's other types: no padding, no
// addresses. After a Restore, look up each pointer into a container again: the value may be gone.
//
// # Costs
//
// Push of a List and PushBack of a Deque are inlined: two or three comparisons and a copy. Get and
// Set of the maps cost a hash and a few ns. Three operations allocate on the Go heap: making a
// container in a state, making the first Map of a key type, and the first full of a StringMap.
// Counts are elements, sizes are bytes.
package container
