package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

type thing struct{ X, Y, Z int64 }

var things = scope.Plain[thing]()

// recordGame records a small game: three maps, with a number of objects each.
func recordGame(t *testing.T, plan budget.Plan, counts ...int) []byte {
	b, err := budget.Open(plan)
	if err != nil {
		t.Fatal(err)
	}
	var to bytes.Buffer
	recording, err := record.Start(b, &to)
	if err != nil {
		t.Fatal(err)
	}
	for i, count := range counts {
		recording.Mark("E1M" + strconv.Itoa(i+1))
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*thing, error) {
			s.Temp(4000).Bytes(1000)
			err := s.Do("things", func(inner scope.Scope) error {
				things.Slice(inner, count)
				return nil
			})
			return &things.Slice(s, count)[0], err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := recording.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func gamePlan() budget.Plan {
	return budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "init", Size: 64 * budget.KiB},
		{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 16 * budget.KiB}}
}

// TestReplay compares replays with testdata/replay.txt, and writes the recordings of the page.
func TestReplay(t *testing.T) {
	compare(t, "testdata/monday.trace", string(recordGame(t, gamePlan(), 1000, 3000, 2000)))
	compare(t, "testdata/tuesday.trace", string(recordGame(t, gamePlan(), 500, 700)))
	t.Chdir("testdata")
	var all strings.Builder
	for _, line := range []string{"replay monday.trace tuesday.trace",
		"replay monday.trace tuesday.trace --plan small.json",
		"replay monday.trace tuesday.trace --plan small.json --json", "plan suggest monday.trace tuesday.trace",
		"replay tuesday.trace monday.trace --plan fine.json", "replay main.json",
		"replay monday.trace --plan faulty.json", "replay monday.trace --plan none.json",
		"replay monday.trace tuesday.trace -o /dev/null", "plan suggest monday.trace main.json"} {
		all.WriteString(shown(line, nil))
	}
	compare(t, "replay.txt", all.String())
}

// TestSuggestedFits checks that all recordings fit in the suggested plan, and that one doesn't if
// the region that they fill is one percent smaller.
func TestSuggestedFits(t *testing.T) {
	dir := t.TempDir() + "/"
	if code, _, said := runs("plan", "suggest", "testdata/monday.trace", "testdata/tuesday.trace", "-o",
		dir+"plan.json"); code != codeFine {
		t.Fatal(code, said)
	}
	if code, out, said := runs("replay", "testdata/monday.trace", "testdata/tuesday.trace", "--plan",
		dir+"plan.json"); code != codeFine {
		t.Error(code, out, said)
	}
	plan, err := budget.ReadPlan(dir + "plan.json")
	if err != nil {
		t.Fatal(err)
	}
	plan.Regions[1].Size -= plan.Regions[1].Size / 100
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"less.json", text, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runs("replay", "testdata/monday.trace", "--plan", dir+"less.json", "--json")
	var got replayed
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != codeFound || got.Traces[0].Mark != "E1M2" ||
		got.Traces[0].Key != "regions[1].size" {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	if code, _, _ := runs("replay", "testdata/tuesday.trace", "--plan", dir+"less.json"); code != codeFine {
		t.Error("the smaller maps fit all the same")
	}
}

// TestReplayReport checks that commands read the report of a replay as they read a program's.
func TestReplayReport(t *testing.T) {
	name := t.TempDir() + "/report.json"
	if code, _, said := runs("replay", "testdata/monday.trace", "-o", name); code != codeFine {
		t.Fatal(code, said)
	}
	if code, out, said := runs("report", "draw", name); code != codeFine || !strings.Contains(out, "level") {
		t.Error(code, out, said)
	}
	if code, out, _ := runs("check", name, "--against", name); code != codeFine {
		t.Error(code, out)
	}
	report, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ := runs("replay", "testdata/monday.trace", "-o", "-"); code != codeFine || out != string(report) {
		t.Error(code, out)
	}
	none := t.TempDir() + "/none.json"
	if code, out, _ := runs("replay", "testdata/monday.trace", "--plan", "testdata/small.json", "-o",
		none); code != codeFound ||
		!strings.Contains(out, "doesn't fit") {
		t.Error(code, out)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("what didn't fit has no report")
	}
}

// TestReplayIsPrintable checks that names in a recording can't steer a terminal.
func TestReplayIsPrintable(t *testing.T) {
	trace := bytes.ReplaceAll(recordGame(t, gamePlan(), 1000, 3000), []byte("E1M2"), []byte("\x1b[2J"))
	trace = bytes.ReplaceAll(trace, []byte("things"), []byte("\x1b[31m\n"))
	name := t.TempDir() + "/hostile.trace"
	if err := os.WriteFile(name, trace, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, said := runs("replay", name, "--plan", "testdata/small.json")
	if code != codeFound || !strings.Contains(out, `after mark "\x1b[2J"`) || strings.Contains(out+said, "\x1b") {
		t.Errorf("exit %d: %q %q", code, out, said)
	}
}
