package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

var workJ = work{
	letter: "J", title: "frogpond's tick, 20,000 of them on MAP03 of the built-in levels, the least of five equal " +
		"plays: with upfront, in careful Go, whose slices and pools are used again, and on the plain Go heap",
	absent: "Without upfront the game is frogpond's own source with its makers, pools and offsets replaced " +
		"(testdata/goheap); it opens the same scopes. Objects with a finalizer, and the graph of the level, are in " +
		"the budget everywhere. All end in the same state. A timeline records each tick the bytes of each arena.",
	parts: []part{{name: "J", measure: measureJ}},
}

const (
	ticksJ   = 20_000
	replaysJ = 5
)

func measureJ(h *harness) ([]series, error) {
	folder, err := os.MkdirTemp("", "frogpond")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	ponds := []*pond{{who: library}, {who: byHand}, {who: goHeap}}
	for _, p := range ponds {
		if !h.wants(p.who) {
			continue
		}
		if p.program, err = buildPond(folder, p.who); err != nil {
			return nil, err
		}
	}
	sampled := &pond{who: library, program: ponds[0].program,
		flags: []string{"-timeline", filepath.Join(folder, "timeline")}}
	ponds = append(ponds, sampled)
	for range min(h.rounds, replaysJ) {
		for _, p := range ponds {
			if p.program == "" {
				continue
			}
			if err := p.play(filepath.Join(folder, "durations")); err != nil {
				return nil, err
			}
			if p.hash != ponds[0].hash {
				return nil, fmt.Errorf("the game of %s ended in %s, that of %s in %s", p.who, p.hash, library,
					ponds[0].hash)
			}
		}
	}
	var list []series
	for _, f := range figuresJ {
		for _, p := range ponds {
			if p.program == "" || p == sampled {
				continue
			}
			x := newSeries("J "+f.name, f.unit, p.who)
			if x.values = p.said[f.key]; f.key == "" {
				x.values = []float64{p.tick(f.rank)}
			}
			list = append(list, x)
		}
	}
	if sampled.program != "" {
		x := newSeries(sampledJ, "tick", library)
		x.values = []float64{sampled.tick(500)}
		list = append(list, x)
	}
	return list, nil
}

// sampledJ is the name of the row for ticks with a timeline of each arena.
const sampledJ = "J tick p50, with a timeline"

// figuresJ are ranks of the ticks, in thousandths, and figures of frogpond's report, by key.
var figuresJ = []struct {
	name, unit, key string
	rank            int
}{
	{name: "tick p50", unit: "tick", rank: 500},
	{name: "tick p99.9", unit: "tick", rank: 999},
	{name: "collections", unit: "in all", key: "collections"},
	{name: "Go allocations", unit: "in all", key: "go_allocs"},
	{name: "budget faults", unit: "in all", key: "budget_faults"},
}

// pond is a program that plays the same game each time: the least time of a tick in all plays is
// its time without interruptions.
type pond struct {
	who, program string
	flags        []string
	hash         any
	least        []uint32
	said         map[string][]float64 // by key, one value a play
}

func (p *pond) play(durations string) error {
	out, err := exec.Command(p.program,
		append([]string{"-json", "-wad", "builtin", "-maps", "MAP03", "-ticks", fmt.Sprint(ticksJ),
			"-durations", durations}, p.flags...)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return fmt.Errorf("frogpond of %s: %w: %s", p.who, err, failed.Stderr)
	}
	if err != nil {
		return err
	}
	var r struct{ Levels []map[string]any }
	if err := json.Unmarshal(out, &r); err != nil {
		return err
	}
	text, err := os.ReadFile(durations)
	if err != nil {
		return err
	}
	ticks := strings.Fields(string(text))
	if len(r.Levels) != 1 || len(ticks) != ticksJ {
		return fmt.Errorf("frogpond played %d maps, and %d ticks", len(r.Levels), len(ticks))
	}
	if p.least == nil {
		p.said = map[string][]float64{}
		p.least = slices.Repeat([]uint32{math.MaxUint32}, ticksJ)
	}
	for i, tick := range ticks {
		took, err := strconv.ParseUint(tick, 10, 32)
		if err != nil {
			return err
		}
		p.least[i] = min(p.least[i], uint32(took))
	}
	for key, value := range r.Levels[0] {
		if figure, ok := value.(float64); ok {
			p.said[key] = append(p.said[key], figure)
		}
	}
	p.hash = r.Levels[0]["hash"]
	return nil
}

// tick returns the time that this many thousandths of the ticks don't exceed.
func (p *pond) tick(rank int) float64 {
	sorted := slices.Sorted(slices.Values(p.least))
	return float64(sorted[max(1, (len(sorted)*rank+999)/1000)-1])
}
