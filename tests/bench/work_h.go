package main

import (
	"slices"
	"strconv"
)

const (
	noFronts = "upfront, no front lists"
	theBuddy = "upfront buddy"
)

var workH = work{
	letter: "H", title: "a heap: of so many live things a random one is freed, and one of a random " +
		"size allocated in its place",
	absent: "upfront's parks up to 256 freed blocks. All are called from C, in a program of one " +
		"thread, which is glibc's best case: it takes no lock there. TLSF is third_party/tlsf, " +
		"without its assertions. A flush is with 100,000 things of 16 to 256 bytes live. Memory is " +
		"the smallest block in which 10,000 live things of 16 to 4096 bytes come and go, and of " +
		"210,000 requests none is refused: with what is parked flushed when a request needs it, and " +
		"never flushed.",
	columns: []string{library, noFronts, theBuddy, tlsf, glibc, jemalloc, mimalloc},
	parts: []part{
		inHeaps("H 16-256 bytes, 1k live", "pair", "pairs", "1000", "256"),
		inHeaps("H 16-256 bytes, 10k live", "pair", "pairs", "10000", "256"),
		inHeaps("H 16-256 bytes, 100k live", "pair", "pairs", "100000", "256"),
		inHeaps("H 16-4096 bytes, 1k live", "pair", "pairs", "1000", "4096"),
		inHeaps("H 16-4096 bytes, 10k live", "pair", "pairs", "10000", "4096"),
		inHeaps("H 16-4096 bytes, 100k live", "pair", "pairs", "100000", "4096"),
		inHeaps("H flush", "parked block", "flush"),
		inHeaps("H memory", timesAsked, "memory"),
		inHeaps("H unflushed memory", timesAsked, "unflushed"),
	},
}

const timesAsked = "times what is asked for"

// heaps runs the program of works H and T.
func (h *harness) heaps(args ...string) ([][]string, error) {
	program, err := h.programs.compile("heaps", "-Ithird_party/tlsf", "heaps/main.c", "heaps/pairs.c",
		"heaps/times.c", "third_party/tlsf/tlsf.c", "-ldl")
	if err != nil {
		return nil, err
	}
	return fields(program, slices.Concat([]string{strconv.Itoa(h.rounds)}, args)...)
}

func inHeaps(name, unit string, args ...string) part {
	return part{name, func(h *harness) ([]series, error) {
		lines, err := h.heaps(slices.Concat(args, h.only)...)
		if err != nil {
			return nil, err
		}
		return whoTook(name, unit, lines)
	}}
}
