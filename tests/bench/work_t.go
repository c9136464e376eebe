package main

import (
	"fmt"
	"strconv"
)

// partsT are the percentiles of an operation's times.
var partsT = []string{"p50", "p99.9", "p99.99", longest}

const longest = "max"

var workT = work{
	letter: "T", title: "single operations without interruptions: of up to 20,000 each, " +
		"the least of 15 equal plays",
	absent: "The first row is a read of the clock, which is subtracted from the others: they are as " +
		"fine as its steps. The heaps have 100,000 live blocks of 16 to 4096 bytes; a realloc may " +
		"move them. glibc, jemalloc and mimalloc are played 7 times, in a process each; they take memory " +
		"from the system, and its page faults count.",
	columns: partsT,
	parts:   []part{{name: "T", measure: measureT}},
}

func measureT(h *harness) (list []series, err error) {
	lines, err := h.heaps("times")
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if len(line) != 2+len(partsT) {
			return nil, fmt.Errorf("%q", line)
		}
		for i, who := range partsT {
			x := newSeries("T "+line[0]+": "+line[1], "call", who)
			took, err := strconv.ParseFloat(line[2+i], 64)
			if err != nil {
				return nil, err
			}
			x.values = []float64{took}
			list = append(list, x)
		}
	}
	return list, nil
}
