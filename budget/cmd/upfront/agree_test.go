package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/budget"
)

// TestAgree checks the figures of diff and check against agree.txt, the table that each reader of
// agree.json must match. They compare that report with one of the same parts, all empty.
func TestAgree(t *testing.T) {
	const full = "../../testdata/agree.json"
	data, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	var r budget.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]budget.ArenaReport{r.Arenas, r.Quotas} {
		for i, a := range list {
			list[i] = budget.ArenaReport{Name: a.Name, Part: a.Part, Index: a.Index, Kind: a.Kind}
		}
	}
	data, err = json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, data, 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../../testdata/agree.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string]func() []difference{
		"diff": func() []difference {
			var d reportDiff
			said(t, &d, "report", "diff", full, empty, "--json")
			return d.Differences
		},
		"check": func() (list []difference) {
			var result gateResult
			said(t, &result, "check", empty, "--against", full, "--json")
			for _, g := range result.Reports[0].Figures {
				list = append(list, g.difference)
			}
			return list
		},
	} {
		got, compared := map[string]uint64{}, 0
		for _, d := range list() {
			key := d.Region + " " + d.Figure
			if d.Kind == "label" {
				key = d.Region + " label:" + d.Name + ":" + strings.TrimPrefix(d.Figure, "arena_")
			}
			if d.Kind != "scope" {
				got[key] = d.A
			}
		}
		for line := range strings.Lines(string(table)) {
			var part, figure string
			var value uint64
			if n, _ := fmt.Sscan(line, &part, &figure, &value); n != 3 || value == 0 {
				continue
			}
			if a, told := got[part+" "+figure]; told {
				compared++
				if a != value {
					t.Errorf("%s: %d: %s", name, a, line)
				}
			} else if strings.HasSuffix(figure, "peak") && figure != "arena_load_peak" && figure != "pool_chunks_peak" {
				t.Errorf("%s says nothing of: %s", name, line) // others are optional
			}
		}
		if compared < 10 {
			t.Errorf("%s: %d figures were compared", name, compared)
		}
	}
}

func said(t *testing.T, into any, args ...string) {
	t.Helper()
	_, out, err := runs(args...)
	if json.Unmarshal([]byte(out), into) != nil {
		t.Fatal(out, err)
	}
}
