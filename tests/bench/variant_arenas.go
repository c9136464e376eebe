//go:build goexperiment.arenas && !upfront_cgo

package main

import (
	"arena"
	"unsafe"
)

const offered, shownAs = goArena, goArena

// arenaObjects is work A with the experiment: an arena that is freed is what it has for a rewind.
func arenaObjects() []contestant {
	return []contestant{{who: goArena, run: func(n int) (sum uint64) {
		for round := range n {
			a, previous := arena.NewArena(), uintptr(0)
			for i := range uint64(objectCount) {
				p := arena.New[object](a)
				p[0], p[1] = i, uint64(previous)
				previous = uintptr(unsafe.Pointer(p))
			}
			if round == n-1 {
				sum = look(previous, objectWords)
			}
			a.Free()
		}
		return sum
	}}}
}
