//go:build goexperiment.arenas && !upfront_cgo

package main

import "arena"

const offered = goArena

// arenaObjects is work A with the experiment: an arena that is freed is what it has for a rewind.
//
//go:noinline
func arenaObjects() []contestant {
	return []contestant{{who: goArena, run: func(n int) (sum uint64) {
		for round := range n {
			a := arena.NewArena()
			for i := range kept {
				p := arena.New[object](a)
				p[0] = uint64(i)
				kept[i] = p
			}
			if round == n-1 {
				sum = inspect(pointers(kept[:]))
			}
			clear(kept[:])
			a.Free()
		}
		return sum
	}}}
}
