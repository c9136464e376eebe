// Command strangers runs six programs and, for each, a careful twin on the Go heap. It prints the
// costs of the programs and the twins. README.md describes the programs and the measurement.
//
//	strangers [-rounds 5] [-programs rooms,game]
//	strangers -one rooms/Go
//
// The second form runs one version in this process, and prints a line of JSON. The first form
// starts the second form for each version, so that a process's CPU time, garbage and peak are the
// version's own.
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/upfront-mem/upfront/tests/strangers/game"
	"github.com/upfront-mem/upfront/tests/strangers/lines"
	"github.com/upfront-mem/upfront/tests/strangers/rollback"
	"github.com/upfront-mem/upfront/tests/strangers/rooms"
	"github.com/upfront-mem/upfront/tests/strangers/tiles"
	"github.com/upfront-mem/upfront/tests/strangers/twin"
	"github.com/upfront-mem/upfront/tests/strangers/work"
	"github.com/upfront-mem/upfront/tests/strangers/world"
)

// program is a program with its versions. The first version is the twin.
type program struct {
	name     string
	sum      uint64 // of each version
	versions []version
}

type version struct {
	name string
	run  work.Version
	file string // the file with the version's code
}

var programs = []program{
	{"rooms", 0xa67a78b98d8e34d0, []version{
		{"Go", twin.Rooms, "twin/rooms.go"},
		{"Upfront", rooms.Play, "rooms/rooms.go"},
	}},
	{"world", 0x71bbe92f1c025128, []version{
		{"Go", twin.World, "twin/world.go"},
		{"Slots", world.Slots, "world/slots.go"},
		{"Heap", world.Heap, "world/heap.go"},
	}},
	{"lines", 0x9fca32e772cab5bd, []version{
		{"Go", twin.Lines, "twin/lines.go"},
		{"Upfront", lines.Play, "lines/lines.go"},
	}},
	{"game", 0x97a52578ae6f812e, []version{
		{"Go", twin.Game, "twin/game.go"},
		{"Upfront", game.Play, "game/game.go"},
	}},
	{"rollback", 0x3c45db1ec3bda7ff, []version{
		{"Go", twin.Rollback, "twin/rollback.go"},
		{"Upfront", rollback.Play, "rollback/rollback.go"},
	}},
	{"tiles", 0xd3a5e94488dd3411, []version{
		{"Go", twin.Tiles, "twin/tiles.go"},
		{"Upfront", tiles.Play, "tiles/tiles.go"},
	}},
}

// The targets: at most this many times the twin's figure.
const (
	mostCPU      = 1.1
	mostGarbage  = 0.1
	mostSlowest  = 1.1
	mostResident = 1.3
)

//go:embed */*.go
var sources embed.FS

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "strangers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("strangers", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "`times` that each version is run")
	names := flags.String("programs", "", "the programs to run, `names` with commas; all without it")
	one := flags.String("one", "", "the `version` to run in this process, such as rooms/Go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *one != "" {
		return alone(*one)
	}
	chosen, err := choose(*names)
	if err != nil {
		return err
	}
	seen := map[string][]figures{}
	for round := range max(*rounds, 1) {
		for _, p := range chosen {
			for _, v := range p.versions {
				name := p.name + "/" + v.name
				f, err := start(name)
				if err == nil {
					err = p.check(v, f.Sum)
				}
				if err != nil {
					return err
				}
				seen[name] = append(seen[name], f)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, *rounds)
	}
	fmt.Print(table(chosen, seen))
	return nil
}

func choose(names string) (chosen []program, err error) {
	if names == "" {
		return programs, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		known := false
		for _, p := range programs {
			if p.name == name {
				chosen, known = append(chosen, p), true
			}
		}
		if !known {
			return nil, fmt.Errorf("-programs: no program %q", name)
		}
	}
	return chosen, nil
}

// check returns an error if a version's sum isn't the program's.
func (p program) check(v version, sum uint64) error {
	if sum != p.sum {
		return fmt.Errorf("%s/%s: the sum is %#x, and the program's is %#x", p.name, v.name, sum, p.sum)
	}
	return nil
}

// figures are the cost of a version. The version's process prints all of them but the CPU time.
type figures struct {
	Sum      uint64  `json:"sum"`
	CPU      float64 `json:"-"`           // s, of the whole process
	Garbage  float64 `json:"garbage_mb"`  // allocated on the Go heap after the set-up
	Slowest  float64 `json:"slowest_us"`  // the 99.9th percentile of ticks
	Resident float64 `json:"resident_mb"` // the process's peak, 0 if unknown
	Ticks    int     `json:"ticks"`
}

func alone(name string) error {
	for _, p := range programs {
		for _, v := range p.versions {
			if p.name+"/"+v.name != name {
				continue
			}
			sum, m, err := work.Run(v.run)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return json.NewEncoder(os.Stdout).Encode(figures{Sum: sum, Garbage: float64(m.Garbage()) / 1e6,
				Slowest: float64(m.Slowest().Nanoseconds()) / 1e3, Resident: peak(), Ticks: m.Ticks()})
		}
	}
	return fmt.Errorf("-one: no version %q", name)
}

// peak returns the most memory that this process had resident, in MB.
func peak() float64 {
	status, _ := os.ReadFile("/proc/self/status") // Linux; getrusage's peak includes the parent's
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	_, _ = fmt.Sscan(after, &kib)
	return kib * 1024 / 1e6
}

func start(name string) (f figures, err error) {
	program, err := os.Executable()
	if err != nil {
		return f, err
	}
	var out bytes.Buffer
	c := exec.Command(program, "-one", name)
	c.Stdout, c.Stderr = &out, os.Stderr
	if err = c.Run(); err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	f.CPU = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	return f, json.Unmarshal(out.Bytes(), &f)
}
