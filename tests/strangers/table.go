package main

import (
	"fmt"
	"slices"
	"strings"
)

// table returns a table of the medians of all rounds. A version with upfront also has the ratios to
// its twin. Ratios above their targets are bold.
func table(chosen []program, seen map[string][]figures) string {
	var b strings.Builder
	b.WriteString("| program | CPU s | garbage MB | tick p99.9 µs | peak resident MB | lines " +
		"|\n|---|--:|--:|--:|--:|--:|\n")
	for _, p := range chosen {
		var twin figures
		for i, v := range p.versions {
			f := medians(seen[p.name+"/"+v.name])
			if i == 0 {
				twin = f
			}
			fmt.Fprintf(&b, "| %s, %s | %s | %s | %s | %s | %d |\n", p.name, v.name,
				cell("%.2f", f.CPU, twin.CPU, mostCPU, i),
				cell("%.1f", f.Garbage, twin.Garbage, mostGarbage, i),
				cell("%.0f", f.Slowest, twin.Slowest, mostSlowest, i),
				cell("%.1f", f.Resident, twin.Resident, mostResident, i), codeLines(v.file))
		}
	}
	return b.String()
}

func cell(format string, value, twin, most float64, at int) string {
	text := fmt.Sprintf(format, value)
	if at == 0 || twin == 0 {
		return text
	}
	ratio := fmt.Sprintf("%.2f of %v", value/twin, most)
	if value > most*twin {
		ratio = "**" + ratio + "**"
	}
	return text + " (" + ratio + ")"
}

// medians returns the median of each figure of all rounds.
func medians(rounds []figures) (f figures) {
	median := func(of func(figures) float64) float64 {
		var all []float64
		for _, r := range rounds {
			all = append(all, of(r))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	f.CPU = median(func(f figures) float64 { return f.CPU })
	f.Garbage = median(func(f figures) float64 { return f.Garbage })
	f.Slowest = median(func(f figures) float64 { return f.Slowest })
	f.Resident = median(func(f figures) float64 { return f.Resident })
	return f
}

// codeLines returns the number of lines in a version's file, without blank lines and comments.
func codeLines(file string) (n int) {
	text, err := sources.ReadFile(file)
	if err != nil {
		panic(err) // the file isn't embedded: its name in programs is wrong
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
