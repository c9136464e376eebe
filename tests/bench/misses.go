package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	fewK  = 100_000 // objects under valgrind
	walks = 8
)

// childK makes the objects and walks over them once, or, when asked, 1 + walks times.
func childK(who string, more int) map[string]float64 {
	list := make([]*little, fewK)
	switch who {
	case library:
		madeInScope(list)
	case goHeap:
		madeOnGoHeap(list)
	case glibc:
		madeByMalloc(list)
	}
	sum := walk(list)
	for range more {
		if walk(list) != sum {
			panic("a walk saw something else")
		}
	}
	return map[string]float64{"sum": float64(sum >> 12)}
}

// countMisses counts with cachegrind what a walk misses in a cache of 32 KiB, and behind it in one of 1 MiB, which hold no more than a
// part of the objects: with the walks less without them.
func (h *harness) countMisses() ([]series, error) {
	if !h.cachegrind {
		return nil, nil
	}
	near, far := []series{}, []series{}
	for _, who := range []string{library, goHeap, glibc} {
		with, err := missesOf(who, walks)
		if err != nil {
			return nil, err
		}
		without, err := missesOf(who, 0)
		if err != nil {
			return nil, err
		}
		of := func(name, cache string) series {
			x := newSeries(name, "misses an object", who)
			x.values = []float64{(with[cache] - without[cache]) / (walks * fewK)}
			return x
		}
		near, far = append(near, of("K misses, 32 KiB", "D1")), append(far, of("K misses, 1 MiB", "LLd"))
	}
	return append(near, far...), nil
}

var missLine = regexp.MustCompile(`(D1|LLd) +misses: +([0-9,]+)`)

func missesOf(who string, more int) (map[string]float64, error) {
	_, said, err := child("K", who, more, "valgrind", "--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64",
		"--LL=1048576,16,64", "--cachegrind-out-file=/dev/null")
	if err != nil {
		return nil, fmt.Errorf("cachegrind: %w", err)
	}
	found := map[string]float64{}
	for _, m := range missLine.FindAllStringSubmatch(said, -1) {
		found[m[1]], _ = strconv.ParseFloat(strings.ReplaceAll(m[2], ",", ""), 64)
	}
	if len(found) != 2 {
		return nil, fmt.Errorf("cachegrind said nothing of misses: %s", said)
	}
	return found, nil
}
