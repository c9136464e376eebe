package main

import (
	"errors"
	"fmt"
	"go/version"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/tests/step"
)

// The controls are work of a known amount: one contestant turns as often as byHand, and one twice
// as often.
var (
	workControl = work{letter: "Z",
		loops: []loop{{name: "Z control", unit: "turn", units: 1000, enter: func() []contestant {
			return []contestant{turning(byHand, 1000), turning("equal", 1000), turning("twice", 2000)}
		}}}}
	controls = []target{
		{work: "Z control", who: []string{"equal"}, most: 1, of: byHand, gate: instructions},
		{work: "Z control", who: []string{"twice", "equal"}, most: 1, of: byHand, gate: instructions},
	}
	turned uint64
)

func turning(who string, turns int) contestant {
	return contestant{who: who, other: turns != 1000, run: func(n int) uint64 {
		for range n {
			turned = 1
			for range turns {
				turned = turned*31 + 7
			}
		}
		return turned
	}}
}

func TestMain(m *testing.M) {
	works = append(works, workControl)
	if len(os.Args) > 1 && os.Args[1] == "-child" {
		targets = controls
		inside(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// TestTheGateTells compares figures with their records; each line has the row, both figures and the
// remedy.
func TestTheGateTells(t *testing.T) {
	row := counter{Go: "go1.26", Arch: "amd64", C: "gcc 12", Work: "A objects", Who: library}
	for _, x := range []struct {
		counted, recorded      float64
		held, missed, unjudged int
		says                   string
	}{
		{30, 30, 1, 0, 0, ""},
		{31, 30, 1, 0, 0, ""},
		{31.01, 30, 0, 1, 0, "missed: A objects, upfront: 31.01 instructions, 30.00 are recorded in " +
			"tests/bench/testdata/base.json: make it cheaper, or record it with make bench-base and give a reason\n"},
		{29, 30, 1, 0, 0, ""},
		{28.99, 30, 1, 0, 0, "fell: A objects, upfront: 28.99 instructions, 30.00 are recorded: make bench-base " +
			"records it\n"},
		{1010, 1000, 1, 0, 0, ""},
		{1010.01, 1000, 0, 1, 0, "missed: A objects, upfront: 1010.01 instructions, 1000.00 are recorded in " +
			"tests/bench/testdata/base.json: make it cheaper, or record it with make bench-base and give a reason\n"},
		{989.99, 1000, 1, 0, 0, "fell: A objects, upfront: 989.99 instructions, 1000.00 are recorded: make " +
			"bench-base records it\n"},
		{30, 0, 0, 0, 1, fmt.Sprintf("not judged: nothing is recorded for %s, %s, C by %s: "+
			"make bench-base records A objects, upfront\n", here().Go, here().Arch, here().C)},
		{math.NaN(), 30, 0, 0, 1, "not judged: nothing was counted of A objects, upfront\n"},
	} {
		var said strings.Builder
		g, recorded, counts := &gatekeeper{to: &said}, base{}, figures{}
		if x.recorded != 0 {
			recorded[row] = x.recorded
		}
		if !math.IsNaN(x.counted) {
			counts[[2]string{row.Work, row.Who}] = x.counted
		}
		g.instructions([]counter{row}, counts, recorded, nil)
		if g.held != x.held || g.missed != x.missed || g.unjudged != x.unjudged || said.String() != x.says {
			t.Errorf("%v of %v: %+v: %s", x.counted, x.recorded, g, said.String())
		}
	}
}

// TestTheGateComparesTwins: a row may take twinMost times the instructions of its twin, or as many
// times as dearer allows.
func TestTheGateComparesTwins(t *testing.T) {
	for _, x := range []struct {
		row          counter
		n, twin      float64
		held, missed int
		says         string
	}{
		{counter{Work: "A objects", Who: library}, 231, 200, 1, 0, ""},
		{counter{Work: "A objects", Who: library}, 233, 200, 0, 1, "missed: A objects, upfront: 233.00 instructions, " +
			"hand-written Go 200.00, at most 1.15 times as many: make it cheaper, or give a reason in " +
			"tests/bench/targets.go\n"},
		{counter{Work: "B mixed sizes", Who: byNumber}, 38, 25, 1, 0, ""},
		{counter{Work: "A objects", Who: library}, 233, math.NaN(), 0, 0, ""},
		{counter{Work: "H flush", Who: library}, 233, 1, 0, 0, ""},
	} {
		var said strings.Builder
		g := &gatekeeper{to: &said}
		g.twins([]counter{x.row}, figures{{x.row.Work, x.row.Who}: x.n, {x.row.Work, byHand}: x.twin})
		if g.held != x.held || g.missed != x.missed || said.String() != x.says {
			t.Errorf("%v of %v: %+v: %s", x.n, x.twin, g, said.String())
		}
	}
	for row, x := range dearer {
		counted := slices.ContainsFunc(contestants(targets), func(c counter) bool {
			return c.Work == row[0] && c.Who == row[1]
		})
		if !counted || x.most <= twinMost || x.why == "" {
			t.Errorf("%v isn't counted, or needs no entry in dearer", row)
		}
	}
}

// TestTheGateCounts counts a work, and twice that work. A record that is too low fails the gate.
func TestTheGateCounts(t *testing.T) {
	step.Needs(t, step.Check)
	h := &harness{programs: &programs{}}
	counts := countControls(t, h)
	equal, twice := counts.of("Z control", "equal"), counts.of("Z control", "twice")
	if math.Abs(twice/equal-2) > 0.01 {
		t.Errorf("a unit is %v instructions, and twice as much %v", equal, twice)
	}
	recorded := base{}
	for _, c := range contestants(controls) {
		recorded[c] = counts.of(c.Work, c.Who)
	}
	var said strings.Builder
	if err := h.hold(controls, recorded, &said, true); err != nil ||
		said.String() != "2 of 2 rows held, 0 not judged\n" {
		t.Errorf("%v: %s", err, said.String())
	}
	said.Reset()
	recorded[contestants(controls)[1]] -= 1.5
	err := h.hold(controls, recorded, &said, false)
	if err != errMissed || !strings.HasPrefix(said.String(), "missed: Z control, twice: ") ||
		!strings.HasSuffix(said.String(), "\n1 of 2 rows held, 0 not judged\n") {
		t.Errorf("%v: %s", err, said.String())
	}
}

// countControls returns the controls' instructions, or skips t where they can't be counted.
func countControls(t *testing.T, h *harness) figures {
	t.Helper()
	counts, err := h.countInstructions(controls)
	if why := missing(""); errors.As(err, &why) {
		step.Lacks(t, string(why), "valgrind")
	} else if err != nil {
		t.Skip("not judged: ", err)
	}
	return counts
}

// TestCallgrindIsStartedAgain checks that a try that ends early leaves no row unjudged. If all
// tries end early, no row is judged, and the gate doesn't fail. A missing tool fails the gate if
// tools are required.
func TestCallgrindIsStartedAgain(t *testing.T) {
	step.Needs(t, step.Check)
	h := &harness{programs: &programs{}}
	countControls(t, h)
	path := os.Getenv("PATH")
	for _, x := range []struct {
		early int // tries that end early
		fails bool
	}{{1, false}, {tries, true}} {
		dir := t.TempDir()
		started := filepath.Join(dir, "started")
		script := fmt.Sprintf("#!/bin/sh\necho >> %[1]q\n[ $(wc -l < %[1]q) -gt %[2]d ] || exit 1\n"+
			"PATH=%[3]q exec valgrind \"$@\"\n", started, x.early, path)
		if err := os.WriteFile(filepath.Join(dir, "valgrind"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+string(filepath.ListSeparator)+path)
		var said strings.Builder
		err := h.hold(controls, base{}, &said, true)
		if gaveUp := strings.Contains(said.String(), "exit status 1"); err != nil || gaveUp != x.fails ||
			!strings.HasSuffix(said.String(), "\n0 of 0 rows held, 2 not judged\n") {
			t.Errorf("%d tries end early: %v: %s", x.early, err, said.String())
		}
	}
	t.Setenv("PATH", t.TempDir())
	for _, required := range []bool{false, true} {
		var said strings.Builder
		if err := h.hold(controls, base{}, &said, required); (err != nil) != required ||
			!strings.Contains(said.String(), "valgrind is not installed") {
			t.Errorf("required %v: %v: %s", required, err, said.String())
		}
	}
}

// TestEveryRowIsRecorded checks the rows of each Go version and architecture of the base.
func TestEveryRowIsRecorded(t *testing.T) {
	recorded, err := readBase()
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(baseFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir(filepath.Dir(baseFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := recorded.write(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(baseFile); err != nil || string(now) != string(was) {
		t.Errorf("%s isn't as bench -base writes it: %v", baseFile, err)
	}
	type row struct{ work, who string }
	rows := map[row]bool{}
	for _, c := range contestants(targets) {
		rows[row{c.Work, c.Who}] = true
	}
	made := map[[2]string]map[row]bool{}
	for c := range recorded {
		by := [2]string{c.Go, c.Arch}
		if made[by] == nil {
			made[by] = map[row]bool{}
		}
		made[by][row{c.Work, c.Who}] = true
	}
	if len(made) == 0 {
		t.Error("nothing is recorded")
	}
	for by, list := range made {
		if !maps.Equal(list, rows) {
			t.Errorf("%v: %v are recorded, and %v have a gate of instructions", by, list, rows)
		}
	}
}

// TestNoTimeIsGated checks that only counts are judged.
func TestNoTimeIsGated(t *testing.T) {
	for _, x := range targets {
		l, isLoop := findLoop(x.work)
		p, _ := findPart(x.work)
		switch x.gate {
		case instructions:
			if !isLoop || l.few {
				t.Errorf("%s isn't a loop that callgrind counts", x.work)
			}
		case inC:
			if p.heaps == nil {
				t.Errorf("%s isn't of the C program", x.work)
			}
		case count:
			if isLoop || x.of != "" || x.ofWork != "" || strings.Contains(x.work, "tick") {
				t.Errorf("%s isn't the same each time", x.work)
			}
		}
	}
}

// TestTargetsAreOfWhoIsThere checks that each row names a work and one of its contestants.
func TestTargetsAreOfWhoIsThere(t *testing.T) {
	step.Machine(t, step.Addresses(4<<30)) // of a budget for each loop, and of threads
	for _, x := range targets {
		l, ok := findLoop(x.work)
		if !ok || l.few {
			continue // a process each, or much memory; a missing one ends the gate
		}
		var who []string
		for _, c := range l.enter() {
			who = append(who, c.who)
			if c.end != nil {
				defer c.end()
			}
		}
		for _, name := range append(slices.Clone(x.who), x.of) {
			if name != "" && !slices.Contains(who, name) {
				t.Errorf("%s: there is no %q among %q", x.work, name, who)
			}
		}
	}
}

// TestLoopsAreCompiledWhereTheyStand checks that functions with contestants are noinline: a copy of
// a loop would call the library instead of inlining it.
func TestLoopsAreCompiledWhereTheyStand(t *testing.T) {
	files, err := filepath.Glob("work_*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	makers := regexp.MustCompile(`(?m)^(//go:noinline\n)?func (\w+)(?:\[.*\])?\(.*\) (?:\[\])?contestant \{$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range makers.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "" {
				t.Errorf("%s: %s isn't noinline", file, m[2])
			}
		}
	}
}

// TestAllDoTheSame runs each loop's contestants for a short time: a different result is an error.
func TestAllDoTheSame(t *testing.T) {
	step.Machine(t, step.Addresses(4<<30)) // of a budget for each loop, and of threads
	h := &harness{rounds: 1, time: time.Microsecond}
	for _, w := range works {
		for _, l := range w.loops {
			if l.once && step.Now() < step.Gate {
				continue
			}
			list, err := h.loop(l)
			if err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
			for _, s := range list {
				if len(s.values) != 1 || s.values[0] <= 0 {
					t.Errorf("%s: %s took %v", l.name, s.who, s.values)
				}
			}
		}
	}
}

// TestWhoDoesLessIsRefused checks that a contestant that doesn't zero an object, write it, or make
// it is an error.
func TestWhoDoesLessIsRefused(t *testing.T) {
	for name, wrong := range map[string]func(p *object, i int) bool{
		"not zeroed":  func(p *object, i int) bool { p[0] = uint64(i); return true },
		"not written": func(p *object, i int) bool { *p = object{}; return true },
		"too few":     func(p *object, i int) bool { *p = object{uint64(i)}; return i != 7 },
	} {
		memory := make([]object, objectCount)
		lazy := contestant{who: "lazy", run: func(int) uint64 {
			var list []unsafe.Pointer
			for i := range memory {
				if wrong(&memory[i], i) {
					list = append(list, unsafe.Pointer(&memory[i]))
				}
			}
			return inspect(list)
		}}
		l := loop{name: "A", units: objectCount, enter: func() []contestant { return append(enterA()[1:2], lazy) }}
		_, err := (&harness{rounds: 1, time: time.Microsecond}).loop(l)
		if err == nil || !strings.Contains(err.Error(), "their work differs") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPartsMeasureTheirRows covers parts with targets that need no library.
func TestPartsMeasureTheirRows(t *testing.T) {
	step.Needs(t, step.Gate)
	h := &harness{rounds: 1, programs: &programs{}}
	defer h.programs.end()
	for _, p := range slices.Concat(workH.parts, workT.parts) {
		t.Run(p.name, func(t *testing.T) {
			list, err := p.measure(h)
			if why := missing(""); errors.As(err, &why) {
				step.Lacks(t, string(why), "lib"+string(why)+"-dev")
			}
			if err != nil {
				t.Fatal(err)
			}
			all := figures{}
			all.add(list)
			for _, x := range targets {
				if found, _ := findPart(x.work); found.name == p.name && !(x.ratio(all) >= 0) {
					t.Errorf("%s of %v comes to %v", x.work, x.who, x.ratio(all))
				}
			}
		})
	}
}

// TestResidentMemory holds the bytes of work M, at the end and at most. The plan bounds the memory
// of C; limitM is enough for the rest of the process.
func TestResidentMemory(t *testing.T) {
	step.Needs(t, step.Gate)
	h := &harness{programs: &programs{}}
	defer h.programs.end()
	file, err := h.visits(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(w way) map[string]float64 {
		f, err := h.run(w, file)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f MB at the end, %.1f at most", w.name, f["resident"]/1e6, f["peak"]/1e6)
		return f
	}
	glibcs := run(plainM)
	if glibcs["resident"] < 2*limitM*1e6 {
		t.Errorf("glibc keeps only %.0f bytes: the work finds no fault", glibcs["resident"])
	}
	for _, w := range []way{moduleOnceM, mallocM, mallocOnceM} {
		f := run(w)
		if f["sum"] != glibcs["sum"] {
			t.Errorf("%s: other results than with glibc", w.name)
		}
		if f["resident"] > limitM*1e6 {
			t.Errorf("%s: %.0f bytes at the end, at most %d MB", w.name, f["resident"], limitM)
		}
		if f["plan"] == 0 || f["peak"] > f["plan"]+limitM*1e6 {
			t.Errorf("%s: %.0f bytes at most, with a plan of %.0f", w.name, f["peak"], f["plan"])
		}
	}
}

// TestLibraries compares the resident bytes of work L at the end. In a c_heap each library has at
// most half of those with glibc.
func TestLibraries(t *testing.T) {
	step.Needs(t, step.Gate)
	h := &harness{programs: &programs{}}
	defer h.programs.end()
	for _, l := range librariesL {
		t.Run(l.name, func(t *testing.T) {
			run := func(w way) map[string]float64 {
				program, err := h.buildL(l, w)
				if why := missing(""); errors.As(err, &why) {
					t.Skip(step.Unproven + err.Error()) // make deps doesn't install it
				}
				if err != nil {
					t.Fatal(err)
				}
				f, err := figuresOf(exec.Command(program, roundsL, "end"))
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %.1f MB at the end", w.name, f["anonymous"]/1e6)
				return f
			}
			glibcs, inHeap := run(glibcL), run(heapL)
			if inHeap["sum"] != glibcs["sum"] {
				t.Error("other results than with glibc")
			}
			if inHeap["anonymous"] > glibcs["anonymous"]/2 {
				t.Errorf("%.0f bytes at the end, of glibc's %.0f", inHeap["anonymous"], glibcs["anonymous"])
			}
		})
	}
}

// TestReadmeTable checks that careful Go is an arena written by hand, or else one slice.
func TestReadmeTable(t *testing.T) {
	var all table
	beside := work{letter: "T", columns: []string{"p50", longest}}
	all.add(beside, []series{
		{work: "T pool: get", unit: "call", who: "p50", values: []float64{2}},
		{work: "T pool: get", unit: "call", who: longest, values: []float64{30}},
		{work: "T pool: put", unit: "call", who: longest, values: []float64{4}},
	})
	all.add(work{letter: "A"}, []series{
		{work: "A objects", unit: "object", who: floor, values: []float64{10}},
		{work: "A objects", unit: "object", who: byHand, values: []float64{12}},
		{work: "A objects", unit: "object", who: library, values: []float64{11}},
		{work: "A objects", unit: "object", who: modernc, values: []float64{50}},
		{work: "E peak RSS", unit: "times the data", who: oneSlice, values: []float64{2}},
		{work: "E peak RSS", unit: "times the data", who: library, values: []float64{1.5}},
		{work: "A not shown", unit: "object", who: library, values: []float64{1}},
	})
	file := filepath.Join(t.TempDir(), "README.md")
	old := "before\n" + readmeBegin + "old\n" + readmeEnd + "after\n" + marks(beside.letter) + "old\n" + readmeEnd
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := all.intoReadme(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + readmeBegin + machine() + "\n\n" +
		"| work | unit | C | careful Go | upfront | upfront, a cgo call each | Go heap | sync.Pool | best other |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|\n" +
		"| A objects | ns a object | 10.0 | 12.0 (1.20) | 11.0 (1.10) |  |  |  | 50.0 (5.00) modernc memory |\n" +
		"| E peak RSS | times the data |  | 2.00 | 1.50 |  |  |  |  |\n" + readmeEnd + "after\n" +
		marks(beside.letter) + machine() + "\n\n| T | unit | p50 | max |\n|---|---|--:|--:|\n" +
		"| pool: get | ns a call | 2.00 | 30.0 |\n| pool: put | ns a call |  | 4.00 |\n" + readmeEnd
	if string(text) != want {
		t.Errorf("expected %s\ngot %s", want, text)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil || all.intoReadme(file) == nil {
		t.Error("a page without marks is an error", err)
	}

	other := marks(version.Lang(runtime.Version()))
	if err := os.WriteFile(file, []byte(old+other+readmeEnd), 0o600); err != nil || all.intoReadme(file) == nil {
		t.Error("a table of columns for another Go is an error", err)
	}
	rows := table{sections: all.sections[1:], least: all.least}
	if err := rows.intoReadme(file); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(file); err != nil || string(text) != old+other+rows.readme()+readmeEnd {
		t.Errorf("only the table of this Go should be new: %v\ngot %s", err, text)
	}
}

func TestRowsAboveTheirTargetsAreMarked(t *testing.T) {
	var all table
	all.add(work{letter: "X"}, []series{
		{work: "X", unit: "thing", who: byHand, values: []float64{10}},
		{work: "X", unit: "thing", who: library, values: []float64{12}},
	})
	var said strings.Builder
	all.judge(&said, []target{{work: "X", who: []string{library}, most: 1.1, of: byHand},
		{work: "X", who: []string{library}, most: 1.2, of: byHand}, {work: "Y", who: []string{library}, most: 1}})
	for _, line := range []string{
		"| X    | upfront    | hand-written Go | 1.10    | 1.20     | above |\n",
		"| X    | upfront    | hand-written Go | 1.20    | 1.20     |       |\n",
		"| Y    | upfront    |                 | 1.00    |          |       |\n",
	} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("no %q in %s", line, said.String())
		}
	}
}

func TestRatiosAreOfTheLeast(t *testing.T) {
	var all table
	all.add(work{letter: "X"}, []series{
		{work: "X", unit: "thing", who: floor, values: []float64{10, 100, 1000}},
		{work: "X", unit: "thing", who: byHand, values: []float64{40, 5, 1000}},
		{work: "X", unit: "thing", who: library, values: []float64{20, 200, 500}},
		{work: "X other", unit: "% of things", who: library, values: []float64{1, 1, 1}},
	})
	var printed strings.Builder
	all.print(&printed)
	for _, line := range []string{"\n| X | ns a thing | median |", "\n| upfront | 20.0 | 200 | 2.00 | 4.00 |  | 0 |\n",
		"\n| X other | % of things | median |", "\n| upfront | 1.00 | 1.00 |  |  |  | 0 |\n"} {
		if !strings.Contains(printed.String(), line) {
			t.Errorf("no %q in %s", line, printed.String())
		}
	}
}
