package main

import "github.com/upfront-mem/upfront/tests/misuse/caller"

// What C does with the core.

var callers = []line{
	{"C passes null, a bad alignment, a stale scope, zeros for an arena", []program{
		{name: "C allocates in null", run: cNull},
		{name: "C allocates in a null scope", run: cNullScope},
		{name: "C asks for a bad alignment", run: cAlign},
		{name: "C allocates in an arena that nobody made", run: cUnmade},
		{name: "C makes an arena of an unaligned block", run: cUnaligned},
		{name: "C allocates in a closed scope", run: cClosed},
	}, []answer{
		{every, "argument", "NULL", told},
	}, ""},
	{"C allocates in a copy of an arena's header", []program{
		{name: "C allocates in a copied header", run: cCopied, goesOn: "beside the copy lies 0x707070707070707"},
	}, nil, "writes beside the copy"},
}

func cNull(wrong bool) { ask(caller.AllocInNull(wrong), "NULL") }

func cNullScope(wrong bool) {
	slot, tag := open().Scratch(0, 0).Open("query").C()
	if wrong {
		slot, tag = nil, 0
	}
	ask(caller.AllocInScope(slot, tag, 8, 8), "NULL")
}

func cAlign(wrong bool) {
	slot, tag := open().Scratch(0, 0).Open("query").C()
	align := uint64(8)
	if wrong {
		align = 12
	}
	ask(caller.AllocInScope(slot, tag, 8, align), "NULL")
}

func cUnmade(wrong bool) { ask(caller.AllocInZeros(wrong), "NULL") }

func cUnaligned(wrong bool) { ask(caller.MakeArena(wrong), "NULL") }

func cClosed(wrong bool) {
	query := open().Scratch(0, 0).Open("query")
	slot, tag := query.C()
	if wrong {
		check(query.Close())
	}
	ask(caller.AllocInScope(slot, tag, 8, 8), "NULL")
}

func cCopied(wrong bool) { say("beside the copy lies %#x", caller.AllocInCopy(wrong)) }
