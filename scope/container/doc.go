// Package container provides containers of fixed capacity in scopes and on heaps: [List], [Deque],
// [Map] and [StringMap].
//
//	var flies = scope.Plain[Fly]()
//
//	near := container.NewList(level, flies, 16)       // takes 8 + 16 * size of Fly bytes, now
//	if !near.Push(Fly{ID: 7}) { … }                   // false: the list has 16 values
//	byName := container.NewStringMap(level, flies, 100, 32)
//	byName.Set(player, fly)                           // copies the key
//	byName.GetBytes(packet[2:10]).Bites++             // without making a string
//
// A container takes the bytes for its whole capacity when it is made. It never grows, because a
// move would leave the old bytes unused until the scope closes. For an unknown size use
// scope.Builder, scope.List, or Append of scope.Maker. All contents are in the scope, and the
// container itself is a Go value that points to them. So a container can't be stored in an arena,
// and its values can't hold Go pointers.
//
// # Full
//
// Making a container in a full scope unwinds to the enclosing Do or Load, as every allocation in a
// scope does. Later operations allocate nothing in the scope, so the scope may be covered or frozen
// then.
//
// # On a heap
//
// NewListOn, NewMapOn and NewStringMapOn make a container on an arena.Heap or Buddy, or through a
// Shared or Proxy of the heap. Use these functions for containers that come and go while
// the game runs, as the chunks of a world do. They return false when the heap is full. A
// container's Free frees its bytes. A container that isn't freed ends with the scope of its heap.
// Don't use a container after a Reset of its heap: no method detects the Reset. A heap in a state
// of package budget/save may hold containers. Their bytes are the same in each run. Package save
// doesn't check these containers in a snapshot from outside, so the program must check them.
//
// # Lifetime
//
// After its scope has closed, a container is empty, and adding a value panics with an error that
// wraps a [scope.Misuse]. Every method but In checks whether the scope is open, in every build.
// Pointers, slices and strings from a container end with the scope, and no check detects a later
// use. If a constructor passed to scope.Maker.Make fails, the containers that it made end. A later
// use of these containers isn't detected, because the scope is still open.
//
// Pass a container by pointer; go vet reports copies. Methods of a zero container panic. One
// goroutine at a time may write to a container. While no goroutine writes, any number of goroutines
// may read.
//
// # Pointers to values
//
// A value of a Deque or of a map doesn't move. A pointer, scope.Ref or scope.Addr of the value is
// valid until a Pop, Delete or Clear removes the value, or the container ends. Afterwards the
// pointer may lead to another value. In a List, RemoveSwap also moves the last value.
//
// # State
//
// A container made between save.Begin and save.NewRing (package budget/save) is part of the state:
// Take, Restore, Hash, Delta and files include the container's contents. The Go value stays valid
// after a Restore. In a state, removed values become zeros, so that the bytes are the same in every
// build. The hashes of a map in a state have the seed 0 or the number passed to [Map.Seed], not a
// random seed. Package save checks a snapshot from outside before anything changes. It refuses a
// container whose counts, order or index contradict each other, and the error names the container.
// The types of values follow the rules for all types of a state: no padding and no addresses. After
// a Restore, look up each pointer into a container again, because the value may be gone.
//
// # Costs
//
// Push of a List and PushBack of a Deque are inlined, and cost two or three comparisons and a copy.
// Get and Set of a map cost a hash and a few ns, and Set the copy of the value. These operations
// allocate on the Go heap: making a container in a state, making the first Map of a key type, In,
// and errors. StringMap.Set makes an error of each kind only once for each map.
package container
