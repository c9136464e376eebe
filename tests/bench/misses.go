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
	list := make([]*object, fewK)
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
		sweepCache()
		if walk(list) != sum {
			panic("a walk saw something else")
		}
	}
	for range walks - more {
		sweepCache()
	}
	return map[string]float64{"sum": float64(sum >> 12)}
}

// countMisses counts, with cachegrind's model of this machine's caches, what a walk misses: with the walks less without them.
func (h *harness) countMisses() (list []series, err error) {
	if !h.cachegrind {
		return nil, nil
	}
	for _, who := range []string{library, goHeap, glibc} {
		var with, without map[string]float64
		if with, err = missesOf(who, walks); err == nil {
			without, err = missesOf(who, 0)
		}
		if err != nil {
			return nil, err
		}
		for _, cache := range []string{"D1", "LLd"} {
			x := newSeries("K misses, "+cache, "misses an object", who)
			x.values = []float64{(with[cache] - without[cache]) / (walks * fewK)}
			list = append(list, x)
		}
	}
	return list, nil
}

var missLine = regexp.MustCompile(`(D1|LLd) +misses: +([0-9,]+)`)

func missesOf(who string, more int) (map[string]float64, error) {
	_, said, err := child("K", who, more, "valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null")
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
