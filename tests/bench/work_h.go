package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

const (
	noFronts = "upfront, no front lists"
	theBuddy = "upfront buddy"
)

var workH = work{
	letter: "H", title: "a heap: a random one of the live blocks is freed, and one of a random " +
		"size is allocated in its place",
	absent: "upfront's heap parks up to 256 freed blocks, and 1600 in the row that frees so many at once. " +
		"Numbers have a few words, each result is a new block, and their arithmetic counts, too. All are called " +
		"from C, in a program of one thread, which is glibc's best case: it takes no lock there. TLSF is " +
		"third_party/tlsf, without its assertions. A flush has 100,000 live blocks of 16 to 256 bytes. Memory is " +
		"the smallest block that never refuses one of 210,000 requests, with 10,000 live blocks of " +
		"16 to 4096 bytes: with parked blocks flushed when a request needs them, and " +
		"never flushed. A front of C's malloc, and an arena.Shared, serve a block of 64 bytes again and " +
		"again, one row a block of 2 KiB. The stress is a million operations of threads that free each " +
		"other's blocks, in a process of each malloc: libupfront-malloc.so and the others are preloaded. " +
		"SQLite and Lua are those of tests/c/clients, with a lock around each call of SQLite's; their rows " +
		"are the processor's time.",
	columns: []string{library, noFronts, theBuddy, tlsf, glibc, jemalloc, mimalloc},
	parts: []part{
		inHeaps("H 16-256 bytes, 1k live", "pair", "pairs", "1000", "256"),
		inHeaps("H 16-256 bytes, 10k live", "pair", "pairs", "10000", "256"),
		inHeaps("H 16-256 bytes, 100k live", "pair", "pairs", "100000", "256"),
		inHeaps("H 16-4096 bytes, 1k live", "pair", "pairs", "1000", "4096"),
		inHeaps("H 16-4096 bytes, 10k live", "pair", "pairs", "10000", "4096"),
		inHeaps("H 16-4096 bytes, 100k live", "pair", "pairs", "100000", "4096"),
		inHeaps("H 32 bytes, 1600 at once", "pair", "one-size"),
		inHeaps("H numbers", "number", "numbers"),
		inFront("H C's malloc, a front"),
		inFront("H C's malloc, profiled", "profiled"),
		inFront("H C's malloc, 2 KiB", "large"),
		inShared("H a Shared"),
		inHeaps("H flush", "ns a parked block", "flush"),
		inHeaps("H memory", timesAsked, "memory"),
		inHeaps("H unflushed memory", timesAsked, "unflushed"),
		inStress("H stress, 1 thread", "1"),
		inStress("H stress, 4 threads", "4"),
		inStress("H stress, 16 threads", "16"),
		inClient("H SQLite", "sqlite3", "sqlite_work.c"),
		inClient("H Lua binary-trees", "lua5.4", "lua_work.c", "binary-trees"),
		inClient("H Lua strings", "lua5.4", "lua_work.c", "strings"),
		inClient("H Lua mixed", "lua5.4", "lua_work.c", "mixed"),
	},
}

const timesAsked = "times the requested bytes"

func (h *harness) heapsProgram() (string, error) {
	return h.programs.compile("heaps", "-Ithird_party/tlsf", "heaps/main.c", "heaps/pairs.c",
		"heaps/times.c", "heaps/shapes.c", "third_party/tlsf/tlsf.c", "-ldl")
}

func (h *harness) heaps(args ...string) ([][]string, error) {
	program, err := h.heapsProgram()
	if err != nil {
		return nil, err
	}
	return fields(program, slices.Concat([]string{strconv.Itoa(h.rounds)}, args)...)
}

func inHeaps(name, unit string, args ...string) part {
	return part{name: name, heaps: args, program: (*harness).heapsProgram, measure: func(h *harness) ([]series, error) {
		lines, err := h.heaps(slices.Concat(args, h.only)...)
		if err != nil {
			return nil, err
		}
		return whoTook(name, unit, lines)
	}}
}

func (h *harness) sharedProgram() (string, error) {
	return h.programs.compile("shared", "heaps/shared.c", "-pthread")
}

// inShared measures a malloc and a free through the functions of an arena.Shared without a profile.
func inShared(name string) part {
	return part{name: name, heaps: []string{"shared"}, program: (*harness).sharedProgram,
		measure: func(h *harness) ([]series, error) {
			program, err := h.sharedProgram()
			if err != nil {
				return nil, err
			}
			lines, err := fields(program, strconv.Itoa(h.rounds))
			if err != nil {
				return nil, err
			}
			return whoTook(name, "pair", lines)
		}}
}

// frontProgram builds a program whose malloc is that of arena/with/malloc.
func (h *harness) frontProgram() (string, error) {
	const folder = "../../arena/with/malloc/"
	return h.programs.compile("front", "heaps/front.c", folder+"process.c", folder+"profile.c", folder+"caller.c",
		"-ldl", "-pthread")
}

// inFront measures a malloc and a free that a front of C's malloc serves. The argument is
// "profiled" for a heap with a profile, or "large" for blocks of 2 KiB.
func inFront(name string, kind ...string) part {
	return part{name: name, heaps: append([]string{"front"}, kind...), program: (*harness).frontProgram,
		measure: func(h *harness) ([]series, error) {
			program, err := h.frontProgram()
			if err != nil {
				return nil, err
			}
			lines, err := fields(program, slices.Concat([]string{strconv.Itoa(h.rounds), "front"}, kind)...)
			if err != nil {
				return nil, err
			}
			return whoTook(name, "pair", lines)
		}}
}

// inClient measures a C library's work with all its memory in a heap, and with glibc's malloc, each
// time in a process of tests/c/clients. The figure is CPU time.
func inClient(name, library, source string, args ...string) part {
	return part{name: name, measure: func(h *harness) ([]series, error) {
		flags, err := exec.Command("pkg-config", "--cflags", "--libs", library).Output()
		if err != nil {
			return nil, missing(library)
		}
		program, err := h.programs.compile(source+".out", slices.Concat(
			[]string{"../c/clients/" + source}, strings.Fields(string(flags)))...)
		if err != nil {
			return nil, err
		}
		return h.runClient(name, program, args)
	}}
}

// runClient runs a client in both ways. A client prints a line: the CPU nanoseconds from the first
// call of the library to the last, and the result.
func (h *harness) runClient(name, program string, args []string) ([]series, error) {
	list := []series{newSeries(name, "ms in all", library), newSeries(name, "ms in all", glibc)}
	with := [][]string{{"heap", "256"}, {"glibc"}}
	did := ""
	for round := range 2 * min(h.rounds, 3) {
		i := (round + round/2) % 2 // the way that comes second in a round comes first in the next
		c := exec.Command(program, slices.Concat(args, with[i])...)
		out, err := c.Output()
		said := strings.Fields(string(out))
		if err != nil || len(said) < 2 {
			return nil, fmt.Errorf("%s: %v: %s", list[i].who, err, out)
		}
		if did == "" {
			did = said[1]
		}
		if said[1] != did {
			return nil, fmt.Errorf("%s has result %s, the first run had %s", list[i].who, said[1], did)
		}
		took, err := strconv.ParseFloat(said[0], 64)
		if err != nil {
			return nil, err
		}
		list[i].values = append(list[i].values, took/1e6)
	}
	return list, nil
}

// inStress measures so many threads on the malloc of a process, in a process of each contestant.
func inStress(name, threads string) part {
	return part{name: name, measure: func(h *harness) (list []series, err error) {
		program, err := h.programs.build("stress", []string{"gcc"}, "-std=gnu11", "-O2", "heaps/stress.c", "-pthread")
		if err != nil {
			return nil, err
		}
		var envs [][]string
		var lacks error
		for _, who := range []string{library, glibc, jemalloc, mimalloc} {
			env, err := h.preload(who)
			if why := missing(""); errors.As(err, &why) {
				lacks = errors.Join(lacks, err)
				continue
			} else if err != nil {
				return nil, err
			}
			list, envs = append(list, newSeries(name, "operation", who)), append(envs, env)
		}
		for range min(h.rounds, 9) {
			for _, i := range rand.Perm(len(list)) {
				c := exec.Command(program, threads, "1000000")
				c.Env = slices.Concat(os.Environ(), envs[i])
				out, err := output(c)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", list[i].who, err)
				}
				took, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
				if err != nil {
					return nil, err
				}
				list[i].values = append(list[i].values, took)
			}
		}
		return list, lacks
	}}
}
