package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestCheckCommands compares the output and exit codes of check with testdata/check.txt.
func TestCheckCommands(t *testing.T) {
	var all strings.Builder
	for _, command := range []string{
		"check DATA/main.json --against DATA/main.json",
		"check DATA/branch.json --against DATA/main.json --max-growth 3%",
		"check DATA/branch.json --against DATA/main.json --max-growth 3% --json",
		"check DATA/branch.json --against DATA/main.json --max-growth 200 --min-growth 700",
		"check DATA/main.json --against DATA/branch.json --max-growth 0%",
		"check DATA/main.json DATA/branch.json --against DATA/main.json --max-growth 25%",
		"check DATA/live.json --against DATA/main.json",
		"check RECORDED/long.json --against DATA/main.json",
		"check RECORDED/long.json --against DATA/main.json --json",
		"check DATA/main.json DATA/none.json --against DATA/torn.json",
		"check DATA/main.json",
		"check --against DATA/main.json",
		"check DATA/main.json --against DATA/main.json --max-growth -1%",
		"check DATA/main.json --against DATA/main.json --min-growth -1",
		"check DATA/timeline.json --against DATA/expecting.json",
		"check DATA/timeline.json --against DATA/expecting.json --json",
		"check DATA/main.json DATA/timeline.json --against DATA/expecting.json",
		"check DATA/main.json --against DATA/expecting.json",
		"check RECORDED/long.json --against DATA/expecting.json",
		"check DATA/none.json DATA/torn.json DATA/fine.json --against DATA/expecting.json",
		"check DATA/timeline.json --against DATA/expecting.json --max-growth 5%",
		"check DATA/timeline.json --against DATA/fine.json",
		"check DATA/timeline.json --against DATA/faulty.json",
		"check DATA/timeline.json --against DATA/main.json",
		"plan check DATA/expecting.json DATA/timeline.json",
		"plan suggest DATA/main.json --expected DATA/timeline.json --tolerance 5",
		"plan suggest DATA/main.json --expected DATA/main.json",
		"plan suggest DATA/main.json --expected DATA/timeline.json --tolerance 100",
	} {
		all.WriteString(shown(command, map[string]string{"DATA/": "testdata/", "RECORDED/": recorded}))
	}
	compare(t, "testdata/check.txt", all.String())
}

func reportIn(t *testing.T, name string) budget.Report {
	t.Helper()
	r, err := newTool(io.Discard, io.Discard).readReport(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func changed(t *testing.T, base string, change func(r *budget.Report)) (name string) {
	t.Helper()
	r := reportIn(t, base)
	change(&r)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(t.TempDir(), "now.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// tooMuch returns the figures that check finds, and its exit code.
func tooMuch(t *testing.T, args ...string) (code int, list []string) {
	t.Helper()
	code, out, said := runs(append([]string{"check", "--json"}, args...)...)
	var result gateResult
	if err := json.Unmarshal([]byte(out), &result); err != nil || len(result.Reports) != 1 {
		t.Fatalf("%s: exit %d, %s%s", args, code, out, said)
	}
	for _, x := range result.Reports[0].Figures {
		if x.TooMuch {
			list = append(list, strings.Join(strings.Fields(x.Region+" "+x.Kind+" "+x.Name+" "+x.Figure), " "))
		}
	}
	if len(list) != result.TooMuch || result.Fine != (len(list) == 0) {
		t.Errorf("%s: it counts %d of %s", args, result.TooMuch, list)
	}
	return code, list
}

// sizesOf returns pointers to each figure that may grow by a share.
func sizesOf(r *budget.Report) map[string][]*uint64 {
	all := map[string][]*uint64{"size": {&r.Size}, "go_heap.limit": {&r.GoHeap.Limit}}
	for i := range r.Arenas {
		a := &r.Arenas[i]
		add := func(name string, value *uint64) {
			name = a.Part + " " + name
			all[name] = append(all[name], value)
		}
		add("arena_size", &a.Size)
		add("arena_peak", &a.Peak)
		for i := range a.Labels {
			add("label "+a.Labels[i].Name+" arena_peak", &a.Labels[i].Peak)
		}
		for i := range a.Scopes {
			add("scope "+a.Scopes[i].Name+" arena_peak", &a.Scopes[i].Peak)
		}
	}
	return all
}

// TestPlanted grows each size and peak of a report of frogpond by 4 %, which check finds, and by 2
// %, which it doesn't find.
func TestPlanted(t *testing.T) {
	base, planted := recorded+"builtin.json", 0
	r := reportIn(t, base)
	for name, values := range sizesOf(&r) {
		was := *slices.MaxFunc(values, func(a, b *uint64) int { return int(*a) - int(*b) })
		by := func(share percent) []string {
			return []string{changed(t, base, func(r *budget.Report) {
				for _, value := range sizesOf(r)[name] {
					*value += share.of(*value)
				}
			}), "--against", base, "--max-growth", "3%"}
		}
		code, found := tooMuch(t, by(2*onePercent)...)
		if code != codeFine || len(found) != 0 {
			t.Errorf("%s, 2 %% more: exit %d, %s", name, code, found)
		}
		code, found = tooMuch(t, by(4*onePercent)...)
		if (4 * onePercent).of(was) <= aCacheLine {
			if code != codeFine || len(found) != 0 {
				t.Errorf("%s, 4 %% of %d bytes more: exit %d, %s", name, was, code, found)
			}
			continue
		}
		planted++
		finds := []string{name}
		if part, size := strings.CutSuffix(name, " arena_size"); size && len(values) > 1 {
			finds = []string{part + " size", name} // the size of the part, and of one arena
		}
		if code != codeFound || !slices.Equal(found, finds) {
			t.Errorf("%s, 4 %% more: exit %d, %s", name, code, found)
		}
		_, out, _ := runs(append([]string{"check"}, by(4*onePercent)...)...)
		words := strings.Fields(name)
		if !strings.Contains(out, words[max(0, len(words)-2)]) || strings.Count(out, "too much") != len(finds) {
			t.Errorf("%s, 4 %% more:\n%s", name, out)
		}
	}
	if planted < 20 {
		t.Errorf("only %d figures were large enough", planted)
	}
}

// TestNoMore checks that one more full, leak or error is too much, for any allowed growth.
func TestNoMore(t *testing.T) {
	for want, change := range map[string]func(r *budget.Report){
		"match fulls":      func(r *budget.Report) { r.Arenas[2].Fulls++ },
		"errors":           func(r *budget.Report) { r.ErrorCount++ },
		"leaks.scopes":     func(r *budget.Report) { r.Leaks.Scopes++ },
		"leaks.owned":      func(r *budget.Report) { r.Leaks.Owned++ },
		"leaks.finalizers": func(r *budget.Report) { r.Leaks.Finalizers++ },
		"leaks.slots":      func(r *budget.Report) { r.Leaks.Slots++ },
		"leaks.scratch":    func(r *budget.Report) { r.Leaks.Scratch++ },
		"leaks.blocks":     func(r *budget.Report) { r.Leaks.Blocks++ },
		"leaks.quotas":     func(r *budget.Report) { r.Leaks.Quotas++ },
	} {
		for _, base := range []string{"testdata/main.json", "testdata/branch.json"} {
			code, found := tooMuch(t, changed(t, base, change), "--against", base, "--max-growth", "1000%",
				"--min-growth", "1000")
			if code != codeFound || !slices.Equal(found, []string{want}) {
				t.Errorf("%s in %s: exit %d, %s", want, base, code, found)
			}
		}
	}
}

// TestJudged lists the judged figures.
func TestJudged(t *testing.T) {
	got := map[string]judgement{}
	for name, f := range known {
		if how := judged(f); how != notJudged {
			got[name] = how
		}
	}
	want := map[string]judgement{
		"size": inBytes, "arena_size": inBytes, "arena_peak": inBytes, "go_heap.limit": inBytes,
		"fulls": atAll, "errors": atAll,
		"leaks.scopes": atAll, "leaks.owned": atAll, "leaks.finalizers": atAll, "leaks.slots": atAll,
		"leaks.scratch": atAll, "leaks.blocks": atAll, "leaks.quotas": atAll}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestOutside: the memory outside may grow by its error, and is judged if both reports know it.
func TestOutside(t *testing.T) {
	unknown := budget.Outside{Unknown: "no /proc"}
	known := func(bytes, most uint64) budget.Outside {
		return budget.Outside{Bytes: bytes, Error: most, Process: 100 * budget.MiB}
	}
	for _, c := range []struct {
		base, now budget.Outside
		want      string
	}{
		{budget.Outside{}, budget.Outside{}, ""},
		{budget.Outside{}, known(50*budget.MiB, 0), ""},
		{known(50*budget.MiB, 0), unknown, ""},
		{known(0, 0), known(budget.MiB, 0), ""},
		{known(0, 0), known(budget.MiB+1, 0), "outside"},
		{known(0, 0), known(4*budget.MiB, 4*budget.MiB), ""},
		{known(50*budget.MiB, 0), known(51_500*budget.KiB, 0), ""},
		{known(50*budget.MiB, 0), known(54*budget.MiB, 0), "outside"},
	} {
		base := changed(t, "testdata/main.json", func(r *budget.Report) { r.Outside = c.base })
		now := changed(t, "testdata/main.json", func(r *budget.Report) { r.Outside = c.now })
		code, list := tooMuch(t, now, "--against", base)
		if got := strings.Join(list, " "); got != c.want || (code == codeFine) != (got == "") {
			t.Errorf("%+v, now %+v: %q, exit %d", c.base, c.now, got, code)
		}
	}
}

// TestAllowed checks the growth allowed as a share of an old value, as a share of the region for a
// new value, and in bytes.
func TestAllowed(t *testing.T) {
	base := budget.Report{Name: "x", Size: 100_000, Arenas: []budget.ArenaReport{
		{Name: "used", Part: "used", Size: 50_000, Peak: 10_000, Labels: []scope.Usage{{Name: "small", Peak: 16},
			{Name: "large", Peak: 5000}}},
		{Name: "idle", Part: "idle", Size: 40_000},
	}}
	for _, c := range []struct {
		share string
		least uint64
		says  string
		now   func(r *budget.Report)
		want  uint64
	}{
		{"3%", 64, "used label small", func(r *budget.Report) { r.Arenas[0].Labels[0].Peak = 32 }, 64},
		{"3%", 0, "used label small", func(r *budget.Report) { r.Arenas[0].Labels[0].Peak = 32 }, 0},
		{"50%", 0, "used label small", func(r *budget.Report) { r.Arenas[0].Labels[0].Peak = 32 }, 8},
		{"3%", 64, "used label large", func(r *budget.Report) { r.Arenas[0].Labels[1].Peak++ }, 150},
		{"3%", 64, "used label new", func(r *budget.Report) {
			r.Arenas[0].Labels[0] = scope.Usage{Name: "new", Peak: 1}
		}, 300},
		{"3%", 64, "idle scope new", func(r *budget.Report) {
			r.Arenas[1].Scopes = []scope.Usage{{Name: "new", Peak: 1}}
		}, 1200},
		{"3%", 64, "idle", func(r *budget.Report) { r.Arenas[1].Peak = 1 }, 1200},
		{"3%", 64, "", func(r *budget.Report) { r.Size++ }, 3000},
		{"3%", 64, "", func(r *budget.Report) { r.GoHeap.Limit = 1 }, 64},
	} {
		now := base
		now.Arenas = slices.Clone(base.Arenas)
		now.Arenas[0].Labels = slices.Clone(base.Arenas[0].Labels)
		c.now(&now)
		g := gate{bytes: c.least}
		if err := g.share.Set(c.share); err != nil {
			t.Fatal(err)
		}
		list := g.growths(figuresOf(base), base, now)
		i := slices.IndexFunc(list, func(x growth) bool { return x.B > x.A })
		if i < 0 {
			t.Errorf("%s %s: %v", c.share, c.says, list)
			continue
		}
		x := list[i]
		if is := strings.TrimSpace(fmt.Sprint(x.Region, " ", x.Kind, " ", x.Name)); is != c.says ||
			x.Allowed != c.want || x.TooMuch != (x.B-x.A > c.want) {
			t.Errorf("%s %s: %v", c.share, c.says, x)
		}
	}
}

// TestPercent checks the spellings of percentages, and shares of numbers of any size.
func TestPercent(t *testing.T) {
	for text, want := range map[string]percent{"3%": 30_000, "3": 30_000, "3 %": 30_000, "0%": 0, "0.5%": 5_000,
		"1000%": 10_000_000, "0.0001": 1} {
		var p percent
		if err := p.Set(text); err != nil || p != want {
			t.Errorf("%q: %d, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "%", "-1%", "-0.1", "NaN", "nan%", "Inf", "-Inf", "1001%", "1e300", "x", "3%%",
		"3KiB", "3,5"} {
		p := percent(7)
		if err := p.Set(text); err == nil || p != 7 {
			t.Errorf("%q: %d, %v", text, p, err)
		}
		code, out, said := runs("check", "testdata/main.json", "--against", "testdata/main.json", "--max-growth="+text)
		if code != codeTrouble || out != "" || !strings.Contains(said, "--max-growth") {
			t.Errorf("%q: exit %d, %s%s", text, code, out, said)
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	largest := new(big.Int).SetUint64(math.MaxUint64)
	for range 10_000 {
		n, p := random.Uint64()>>random.IntN(64), percent(random.Uint64N(uint64(percentMost)*uint64(onePercent)+1))
		want := new(big.Int).SetUint64(n)
		want.Mul(want, new(big.Int).SetUint64(uint64(p))).Div(want, big.NewInt(1_000_000))
		if want.Cmp(largest) > 0 {
			want = largest
		}
		if p.of(n) != want.Uint64() {
			t.Fatalf("%v of %d is %d, not %d; seed %d", p, n, p.of(n), want, seed)
		}
	}
}

// TestHugeSums checks that sums of a report written by hand don't overflow.
func TestHugeSums(t *testing.T) {
	huge := changed(t, "testdata/main.json", func(r *budget.Report) {
		for i := range r.Arenas {
			if r.Arenas[i].Part == "match" {
				r.Arenas[i].Fulls, r.Arenas[i].Used = math.MaxInt, math.MaxUint64
			}
		}
	})
	r := reportIn(t, huge)
	values := figuresOf(r).values
	match := whose{Region: "match"}
	if values[figure{match, "arenas"}] != 3 || values[figure{match, "fulls"}] != math.MaxUint64 ||
		values[figure{match, "used"}] != math.MaxUint64 {
		t.Errorf("%v", values)
	}
	if code, found := tooMuch(t, huge, "--against", "testdata/branch.json", "--max-growth",
		"1000%"); code != codeFound || !slices.Contains(found, "match fulls") {
		t.Errorf("exit %d, %s", code, found)
	}
}
