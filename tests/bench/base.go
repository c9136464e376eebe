package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// baseFile holds the recorded instructions, a line for each contestant, Go version and
// architecture. Changes of the file show in a review.
const baseFile = "testdata/base.json"

// counter is a contestant whose instructions are counted, and the compilers that made it.
type counter struct {
	Go, Arch  string
	C         string `json:",omitempty"` // the C compiler, if C has a part in the figure
	Work, Who string
}

// base has the instructions of a unit of work, by contestant.
type base map[counter]float64

type line struct {
	counter
	Instructions float64
}

// here returns a counter with this program's Go version and architecture.
func here() counter {
	arch := runtime.GOARCH
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "GOAMD64" && s.Value != "v1" {
			arch += " " + s.Value
		}
	}
	return counter{Go: regexp.MustCompile(`go1\.\d+`).FindString(runtime.Version()), Arch: arch, C: compiledBy()}
}

// contestants returns the contestants of the rows that are counted, each once.
func contestants(rows []target) (list []counter) {
	for _, t := range rows {
		if t.gate != instructions && t.gate != inC {
			continue
		}
		for _, who := range t.who {
			c := here()
			if c.Work, c.Who = t.work, who; t.gate == instructions {
				c.C = ""
			}
			if !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

func readBase() (base, error) {
	text, err := os.ReadFile(baseFile)
	if err != nil {
		return nil, err
	}
	var lines []line
	if err := json.Unmarshal(text, &lines); err != nil {
		return nil, fmt.Errorf("%s: %w", baseFile, err)
	}
	b := base{}
	for _, l := range lines {
		b[l.counter] = l.Instructions
	}
	return b, nil
}

func (b base) write() error {
	var lines []string
	for c, n := range b {
		text, err := json.Marshal(line{c, n})
		if err != nil {
			return err
		}
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	return os.WriteFile(baseFile, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}

// renew counts the rows' contestants and records the figures. They replace the figures of the same
// Go version.
func (h *harness) renew(rows []target) error {
	b, err := readBase()
	if err != nil {
		return err
	}
	counts, err := h.countInstructions(rows)
	if err != nil {
		return err
	}
	list := contestants(rows)
	maps.DeleteFunc(b, func(c counter, _ float64) bool {
		return slices.ContainsFunc(list, func(x counter) bool {
			other := x.C != "" && c.C != "" && c.C != x.C
			return c.Go == x.Go && c.Arch == x.Arch && c.Work == x.Work && !other
		})
	})
	for _, c := range list {
		b[c] = math.Round(100*counts.of(c.Work, c.Who)) / 100
	}
	return b.write()
}
