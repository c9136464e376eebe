// Package container has containers of a fixed capacity in scopes: [List], [Deque], [Map] and
// [StringMap].
//
// They can't grow, and take the bytes for all that may ever be in them at once, when they are made:
// a capacity that is never reached is memory that nothing else has. What has no known size is a
// scope.Builder or a scope.List, or grows by Append of scope.Maker. All that a container holds lies in the scope:
// its values, and its words (its length, a deque's front, a map's index). The Go value only points
// there, so a container can't lie in a block; its values can't hold Go pointers.
//
//	var flies = scope.Plain[Fly]()
//
//	near := container.NewList(level, flies, 16)           // 16 * size of Fly, now
//	if !near.Push(Fly{ID: 7}) { … }                       // false has one meaning: 16 are in it
//	byName := container.NewStringMap(level, flies, 100, 32)
//	byName.Set(player, fly)                               // the bytes of the key are copied
//	byName.GetBytes(packet[2:10]).Bites++                 // no string in between
//
// # On a heap
//
// NewListOn, NewDequeOn, NewMapOn and NewStringMapOn make one on an arena.Heap or Buddy, or by a Shared or a Proxy before one:
// for containers that come and go in play, as those of a chunk of a world. Full is an answer there, false, and Free gives the
// bytes back. One that isn't freed ends with the scope that the heap lies in; a heap's Reset ends its bytes and isn't asked
// for. A heap in a state may have them: their bytes are as alike as those of others there. But nobody looks at an image of
// them, so one from outside is for the program to check.
//
// # Full
//
// To make one may be full: it unwinds to the enclosing Do or Load, as all that a scope gives does.
// Nothing else takes bytes, so it doesn't matter whether the scope is covered or frozen later. Each
// false, nil or error of a method has one meaning, and its comment names it.
//
// # Lifetime
//
// After its scope closed a container is empty: there is nothing to read or to take away, and to put
// something into it panics with an error that wraps a [scope.Misuse]. Each method asks for that, in
// every build. The pointers, slices and strings that a container gave are not asked: they die with the scope as all
// others do. A container that was made inside a constructor that failed (Make of scope.Maker) is
// gone like any other pointer from there: its scope is alive, so nothing tells who still uses it.
//
// A container isn't copied, which go vet says: pass a pointer. The zero one is of no use. One
// goroutine at a time writes; while none does, many may read.
//
// # Pointers to values
//
// A value of a Deque or of a map doesn't move. Its pointer, a scope.Ref or a scope.Addr of it, is
// good until the value is taken away: by Pop, by Delete of its key, by Clear. Then the place is
// nobody's, and may be another value's soon. In a List, RemoveSwap moves the last value too.
//
// # State
//
// A container that is made between save.Begin and save.NewRing (package budget/save) is part of the
// state: Take, Restore, Hash, Delta and files have it, and the Go value is as good after a Restore
// as before. In a state region what is taken away becomes zeros, so that the bytes are the same in
// every build. The hashes of a map have the seed of 0 there, or that of [Map.Seed], and no random
// one. An image from outside is looked at whole before anything changes: one that no play of the
// container leaves is refused, with where. The types of values have the rules of a state's other
// types: no padding, no address. Ask for a pointer into a container anew after Restore: its value
// may be gone.
//
// # Costs
//
// Push of a List or a Deque is inlined: two comparisons and the copy of the value. Get and Set of
// the maps cost a hash and a few ns. Nothing here makes a Go allocation, but to make a container in
// a state, and the first full of a StringMap. A count is of elements, a size is in bytes.
//
// # Why
//
// Why do they have a fixed capacity? What grows by moving leaves its old bytes behind until the
// scope closes. Why are the bytes taken at once? One that takes them later is full for two reasons,
// and the second one comes in play.
package container
