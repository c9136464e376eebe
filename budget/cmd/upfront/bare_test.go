package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
)

// TestBarePlans: each command takes plans without a region, frame or scratch, and the reports and
// timelines of their budgets.
func TestBarePlans(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	save := func(name string, v any) {
		data, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(file(name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	save("name.json", budget.Plan{Name: "bare"})
	save("go.json", budget.Plan{Name: "bare", GoHeap: 64 * budget.MiB})
	save("c.json", budget.Plan{Name: "bare", GoHeap: 64 * budget.MiB, CHeap: budget.CHeapPlan{Size: 64 * budget.MiB},
		Expected: []budget.Expected{{Part: "c_heap", Play: budget.MiB, Tolerance: 10}}})
	b, err := budget.Open(budget.Plan{Name: "bare"})
	if err != nil {
		t.Fatal(err)
	}
	moments := timeline.Start(b, 0)
	moments.Sample()
	report := b.Report()
	save("report.json", report)
	save("timeline.json", moments.Read())
	report.CHeap.Name, report.CHeap.Part, report.CHeap.Kind = "c_heap", "c_heap", "c_heap"
	report.CHeap.Size, report.CHeap.Peak = 64*budget.MiB, budget.MiB
	save("used.json", report)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command, says string
		code          int
	}{
		{"plan check name.json go.json c.json", "C heap 65536KiB", codeFine},
		{"plan draw name.json", "tables  64KiB", codeFine},
		{"plan draw c.json -o plan.svg", "", codeFine},
		{"plan diff name.json c.json", `+ go_heap   "64MiB"`, codeFound},
		{"plan diff name.json c.json -o diff.svg", "", codeFound},
		{"plan merge name.json go.json c.json -o -", `"c_heap":"64MiB"`, codeFine},
		{"plan fleet c.json --only deployment", "C heap 67108864", codeFine},
		{"plan suggest report.json", `"name": "bare"`, codeFine},
		{"plan check report.json", "this is a report, not a plan", codeFound},
		{"plan check timeline.json", "this is a timeline, not a plan", codeFound},
		{"report draw report.json", "budget bare: 64KiB", codeFine},
		{"report draw report.json -o report.html", "", codeFine},
		{"report diff report.json report.json", "equal", codeFine},
		{"report draw name.json", "this is a plan, not a report", codeTrouble},
		{"report draw timeline.json", "this is a timeline, not a report", codeTrouble},
		{"check report.json --against report.json", "fine", codeFine},
		{"check used.json --against c.json", "c_heap", codeFine},
		{"check timeline.json --against name.json", "the plan expects nothing", codeTrouble},
	} {
		words := strings.Fields(c.command)
		for i, word := range words {
			if strings.Contains(word, ".") {
				words[i] = file(word)
			}
		}
		code, out, said := runs(words...)
		if code != c.code || !strings.Contains(out+said, c.says) {
			t.Errorf("%s: exit %d\n%s%s", c.command, code, out, said)
		}
	}
}
