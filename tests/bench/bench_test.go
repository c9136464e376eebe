package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// control is work of which is known who does how much: one turns round as often as the other, and one twice as often.
var (
	workControl = work{letter: "Z", loops: []loop{{name: "Z control", unit: "turn", units: 1000, enter: func() []contestant {
		return []contestant{turning(byHand, 1000), turning("equal", 1000), turning("twice", 2000)}
	}}}}
	controls = []target{
		{work: "Z control", who: []string{"equal"}, most: 1, of: byHand},
		{work: "Z control", who: []string{"twice"}, most: 1, of: byHand},
		{work: "Z control", who: []string{"equal"}, most: 1, of: byHand, counted: true},
		{work: "Z control", who: []string{"twice"}, most: 1, of: byHand, counted: true},
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

// TestTheGateTells: equal work is held, and what takes twice as long is missed, by time and by instructions.
func TestTheGateTells(t *testing.T) {
	h := &harness{rounds: 25, time: 500 * time.Microsecond}
	var said strings.Builder
	err := gate(h, controls, &said, false)
	want := []string{"held", "missed", "held", "missed"}
	last := "2 of 4 rows held\n"
	counts, missing := countInstructions(controls)
	if missing != nil {
		if t.Log("without instructions:", missing); os.Getenv("REQUIRE_ALL") == "1" {
			t.Fail()
		}
		want, last = []string{"held", "missed", "not judged", "not judged"}, "1 of 2 rows held\n"
	} else if equal, twice := controls[2].ratio(counts), controls[3].ratio(counts); math.Abs(equal-1) > 0.02 || math.Abs(twice-2) > 0.04 {
		t.Errorf("of the instructions equal work has %v, and twice as much %v", equal, twice)
	}
	var got []string
	for line := range strings.Lines(said.String()) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| Z") {
			got = append(got, strings.TrimSpace(cells[7]))
		}
	}
	if err != errMissed || !slices.Equal(got, want) || !strings.HasSuffix(said.String(), "\n"+last) {
		t.Errorf("%v: %s", err, said.String())
	}
}

// TestCallgrindIsStartedAgain: one that ends early leaves no row unjudged, and one that always does is an error.
func TestCallgrindIsStartedAgain(t *testing.T) {
	if _, missing := countInstructions(controls); missing != nil {
		t.Skip(missing)
	}
	path := os.Getenv("PATH")
	for _, x := range []struct {
		early int // so many tries end early
		fails bool
	}{{tries - 1, false}, {tries, true}} {
		dir := t.TempDir()
		started := filepath.Join(dir, "started")
		script := fmt.Sprintf("#!/bin/sh\necho >> %[1]s\n[ $(wc -l < %[1]s) -gt %[2]d ] || exit 1\n"+
			"PATH=%[3]q exec valgrind \"$@\"\n", started, x.early, path)
		if err := os.WriteFile(filepath.Join(dir, "valgrind"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+string(filepath.ListSeparator)+path)
		counts, err := countInstructions(controls)
		if (err != nil) != x.fails || !x.fails && math.IsNaN(controls[2].ratio(counts)) {
			t.Errorf("%d tries end early: %v, %v", x.early, counts, err)
		}
	}
}

// TestTheGateIsOpen: nothing is missed where all is held, by time or by instructions where they decide; where they must be counted and
// weren't, a row is missed. What is late is explained, also where it is held.
func TestTheGateIsOpen(t *testing.T) {
	held := verdict{target{work: "A", most: 1}, 1.09, math.NaN(), nil}
	uncounted := verdict{target{work: "B", most: 1, counted: true}, 0.5, math.NaN(), nil}
	absent := verdict{target{work: "B", most: 1}, math.NaN(), math.NaN(), nil}
	late := verdict{target{work: "C", most: 1, counted: true}, 7, 1.05, []series{{work: "C", who: library, values: []float64{14, 16, 21}}}}
	missed := verdict{target{work: "C", most: 1}, 7, 1.05, nil}
	for _, x := range []struct {
		list     []verdict
		required bool
		last     string
		err      error
	}{
		{[]verdict{held}, true, "1 of 1 rows held\n", nil},
		{[]verdict{held, uncounted}, false, "1 of 1 rows held\n", nil},
		{[]verdict{held, uncounted}, true, "1 of 2 rows held\n", errMissed},
		{[]verdict{held, absent}, false, "1 of 1 rows held\n", nil},
		{[]verdict{held, absent}, true, "1 of 2 rows held\n", errMissed},
		{[]verdict{held, missed}, true, "1 of 2 rows held\n", errMissed},
		{[]verdict{late}, true, "C takes long: upfront, least 14.0 ns, median 16.0\n1 of 1 rows held\n", nil},
	} {
		var said strings.Builder
		if err := conclude(&said, x.list, x.required); err != x.err || !strings.HasSuffix(said.String(), x.last) {
			t.Errorf("%v: %v: %s", x.list, err, said.String())
		}
	}
}

// TestTargetsAreOfWhoIsThere: each row names a work that is done by whom it names.
func TestTargetsAreOfWhoIsThere(t *testing.T) {
	for _, x := range targets {
		l, ok := findLoop(x.work)
		if !ok || l.few {
			continue // of a process each, or of much memory; what isn't there ends the gate
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

// TestLoopsAreCompiledWhereTheyStand: who makes contestants is noinline. In a copy of a loop the library would be called, not inlined.
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

// TestAllDoTheSame runs each loop's contestants shortly: those that leave something else behind are an error.
func TestAllDoTheSame(t *testing.T) {
	h := &harness{rounds: 1, time: time.Microsecond}
	for _, w := range works {
		for _, l := range w.loops {
			if l.once && testing.Short() {
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

// TestWhoDoesLessIsRefused: an object that isn't zeroed, one that wasn't written to, and one too few.
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
		if err == nil || !strings.Contains(err.Error(), "they don't do the same") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPartsMeasureTheirRows: whose rows have targets, and who needs no library.
func TestPartsMeasureTheirRows(t *testing.T) {
	h := &harness{rounds: 1, programs: &programs{}}
	defer h.programs.end()
	for _, w := range []work{workH, workT} {
		for _, p := range w.parts {
			if testing.Short() && p.name != w.parts[0].name {
				continue
			}
			list, err := p.measure(h)
			if why := missing(""); errors.As(err, &why) {
				if t.Log(p.name, why); os.Getenv("REQUIRE_ALL") == "1" {
					t.Fail()
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			all := figures{}
			all.add(list)
			for _, x := range targets {
				if v := x.ratio(all); measurementOf(x.work) == p.name && !(v >= 0) {
					t.Errorf("%s of %v comes to %v", x.work, x.who, v)
				}
			}
		}
	}
}

// TestReadmeTable: careful Go is who writes an arena by hand, and else who has one slice.
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
	old := "before\n" + readmeBegin + "old\n" + readmeEnd + "after\n" + marks(beside) + "old\n" + readmeEnd
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
		marks(beside) + machine() + "\n\n| T | unit | p50 | max |\n|---|---|--:|--:|\n" +
		"| pool: get | ns a call | 2.00 | 30.0 |\n| pool: put | ns a call |  | 4.00 |\n" + readmeEnd
	if string(text) != want {
		t.Errorf("expected %s\ngot %s", want, text)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil || all.intoReadme(file) == nil {
		t.Error("a page without marks is an error", err)
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
