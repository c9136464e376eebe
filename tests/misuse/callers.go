package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

// Misuse of the core by C.

var callers = []line{
	{"C passes null, a bad alignment, a stale scope, zeros for an arena", []program{
		{name: "C allocates in null", run: func(wrong bool) { ask(caller.AllocInNull(wrong), "NULL") }},
		{name: "C allocates in a null scope", run: func(wrong bool) {
			header, generation := open().Scratch(0, 0).Open("query").C()
			if wrong {
				header, generation = nil, 0
			}
			allocInC(header, generation, 8)
		}},
		{name: "C asks for a bad alignment", run: func(wrong bool) {
			header, generation := open().Scratch(0, 0).Open("query").C()
			align := uint64(8)
			if wrong {
				align = 12
			}
			allocInC(header, generation, align)
		}},
		{name: "C allocates in a zero header", run: func(wrong bool) { ask(caller.AllocInZeros(wrong), "NULL") }},
		{name: "C closes a null pool, and asks it", run: func(wrong bool) { ask(caller.ClosePool(wrong), "NULL") }},
		{name: "C walks a heap with a zero header", run: func(wrong bool) { ask(caller.WalkHeap(wrong), "NULL") }},
		{name: "C makes an arena of an unaligned block", run: func(wrong bool) {
			ask(caller.MakeArena(wrong), "NULL")
		}},
		{name: "C allocates in a closed scope", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			header, generation := query.C()
			when(wrong, query.Close)
			allocInC(header, generation, 8)
		}},
	}, []answer{
		{every, "argument", "NULL", told},
	}, ""},
	{"C passes null to an inline function, but those that ask (upfront.h)", []program{
		{name: "C takes from a null pool", run: func(wrong bool) { ask(caller.TakeFromPool(wrong), "NULL") }},
	}, []answer{
		{"release, race, checked", "no access", "SIGSEGV: segmentation violation", panics},
		{"asan", "ASan", "SEGV on unknown address", asanEnd},
	}, ""},
	{"C allocates in a copy of an arena's header", []program{
		{name: "C allocates in a copied header", goesOn: "after the copy: 0x707070707070707", run: func(wrong bool) {
			say("after the copy: %#x", caller.AllocInCopy(wrong))
		}},
	}, nil, "writes past the copy"},
}

func allocInC(header unsafe.Pointer, generation, align uint64) {
	ask(caller.AllocInScope(header, generation, 8, align), "NULL")
}
