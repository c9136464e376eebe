//go:build goexperiment.arenas && !upfront_cgo

package main

import "arena"

const offered = goArena

// arenaObjects is work A with Go's arena experiment. It frees an arena where upfront rewinds.
//
//go:noinline
func arenaObjects(look func() uint64) []contestant {
	var filled *arena.Arena
	return []contestant{again(goArena, func() {
		a := arena.NewArena()
		for i := range kept {
			p := arena.New[object](a)
			p[0] = uint64(i)
			kept[i] = p
		}
		filled = a
	}, look, func() {
		clear(kept[:])
		filled.Free()
	})}
}
