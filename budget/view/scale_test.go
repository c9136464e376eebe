package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

var byteMaker = scope.Plain[byte]()

// used opens a plan, and fills a third of each region in every second slot, half of that under
// labels.
func used(t *testing.T, plan budget.Plan) *budget.Budget {
	t.Helper()
	b, err := budget.Open(plan)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	for _, r := range plan.Regions {
		if r.Slots == 0 {
			fill(t, b.Region(r.Name))
		}
		for i := range r.Slots {
			slot, err := b.Slots(r.Name).Acquire()
			require.NoError(t, err)
			if i%2 == 0 {
				fill(t, slot)
			}
		}
	}
	return b
}

func fill(t *testing.T, r budget.Region) {
	t.Helper()
	_, err := budget.Load(context.Background(), r, func(s scope.Scope) (*int, error) {
		half := int(r.Report().Size / 6)
		if half < 100 {
			return new(int), nil
		}
		byteMaker.Slice(s, half)
		scope.Label(s, "map", func() error { byteMaker.Slice(s, half/2); return nil })
		return new(int), scope.Label(s, "sound", func() error { byteMaker.Slice(s, half/4); return nil })
	})
	require.NoError(t, err)
}

// digits returns a number in groups of three digits.
func digits(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", digits(n/1000), n%1000)
}

// TestReportToScale: in the picture of the whole, the planned, most and current bytes of each part
// have the right length, and each figure has the report's text.
func TestReportToScale(t *testing.T) {
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			r := used(t, plan).Report()
			text := drawn(t, func(w io.Writer) error { return view.Report(w, r) })
			checkPicture(t, text)
			lines := drawn(t, func(w io.Writer) error { return view.ReportText(w, r) })
			checkText(t, lines)
			type bar struct{ class, x, width string }
			bars := map[bar]bool{}
			for _, m := range rectTag.FindAllStringSubmatch(text, -1) {
				if m[3] == "76" && m[5] == "40" {
					bars[bar{m[1], m[2], m[4]}] = true
				}
			}
			offset, scale := uint64(0), 840/float64(r.Size)
			for _, a := range r.Arenas {
				x, wide := 20.5+float64(offset)*scale, float64(a.Size)*scale-1
				if wide > 4 {
					assert.True(t, anyBar(bars, func(b bar) bool {
						return b.class == "ground" && math.Abs(number(t, b.x)-x) < .2 &&
							math.Abs(number(t, b.width)-wide) < .3
					}), "%s at %.1f, %.1f wide", a.Name, x, wide)
					if used := wide * float64(a.Used) / float64(a.Size); used > 1 {
						assert.True(t, anyBar(bars, func(b bar) bool {
							return !strings.Contains(b.class, " ") && b.class != "ground" &&
								math.Abs(number(t, b.x)-x) < .2 && math.Abs(number(t, b.width)-used) < .3
						}), "%s: %.1f used", a.Name, used)
					}
				}
				offset += a.Size
				for _, u := range a.Labels {
					if a.Kind == "region" { // siblings share one line
						assert.Contains(t, text, ">"+budget.SizeText(u.Bytes)+"</text>")
						assert.Contains(t, text, "label "+u.Name+": "+digits(u.Bytes)+" bytes now")
					}
				}
			}
			for _, p := range r.Parts() {
				planned := budget.SizeText(p.Value("arena_size"))
				if len(p.Arenas) > 1 {
					planned = fmt.Sprintf("%d×%s", len(p.Arenas), planned)
				}
				for _, figure := range []string{budget.SizeText(p.Value("used")),
					budget.SizeText(p.Value("arena_peak")), planned} {
					assert.Contains(t, text, ">"+figure+"</text>", p.Name)
					assert.Contains(t, lines, figure, p.Name)
				}
			}
		})
	}
}

func anyBar[B comparable](bars map[B]bool, is func(B) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(bars)), is)
}

// TestWhoEats: labels share the bar of their region, largest first, up to the used bytes.
func TestWhoEats(t *testing.T) {
	r := used(t, budget.Plan{Name: "eats", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}}).Report()
	text := drawn(t, func(w io.Writer) error { return view.Report(w, r) })
	var names []string
	for _, m := range textTag.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[4], "label ") || m[4] == "no label" {
			names = append(names, m[4])
		}
	}
	assert.Equal(t, []string{"label map", "label sound", "no label"}, names)
	from, reached := 0.0, 0.0
	grounds := regexp.MustCompile(`<rect class="ground" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="18"`)
	ground := grounds.FindStringSubmatch(text)
	from = number(t, ground[1])
	for _, m := range rectTag.FindAllStringSubmatch(text, -1) {
		if m[3] == ground[2] && m[5] == "18" && (len(m[1]) == 2 || m[1] == "other") {
			assert.InDelta(t, from+reached, number(t, m[2]), .11, "side by side")
			reached += number(t, m[4])
		}
	}
	assert.InDelta(t, number(t, ground[3])*float64(r.Arenas[0].Used)/float64(budget.MiB), reached, .3)
}

const longName = "a-name-that-is-as-long-as-it-may"

// TestLinesOfOneArena: a part of one arena has no sum apart, for lines of code as well.
func TestLinesOfOneArena(t *testing.T) {
	r := budget.Report{Name: "pond", Size: 1 << 20,
		Arenas: []budget.ArenaReport{{Name: "level", Part: "level", Kind: "region",
			Size: 1 << 20, Used: 4096, Peak: 4096,
			Sites: []stack.Site{{Made: []string{"a.load /src/load.go:31"}, Objects: 2, Bytes: 4096}}}}}
	html := drawn(t, func(w io.Writer) error { return view.ReportHTML(w, r) })
	assert.Contains(t, html, "load.go:31")
	assert.NotContains(t, html, "Together")
}

// TestLeastBars: in the page, the bars of a few bytes can be seen.
func TestLeastBars(t *testing.T) {
	r := budget.Report{Name: "pond", Size: budget.MiB, Arenas: []budget.ArenaReport{{Name: "level", Part: "level",
		Kind: "region", Size: budget.MiB, Used: 16, Peak: 32}}}
	html := drawn(t, func(w io.Writer) error { return view.ReportHTML(w, r) })
	for _, class := range []string{"peak", "used"} {
		assert.Contains(t, html, `<rect class="`+class+`" width="0.2%" height="100%"/>`)
	}
}

// TestManySlots: 4,096 different slots of a budget of 256 GiB make a small picture with complete
// sums.
func TestManySlots(t *testing.T) {
	r := budget.Report{Name: longName[:31], Size: 256 * budget.GiB}
	used := uint64(0)
	for i := range uint64(4096) {
		a := budget.ArenaReport{Name: fmt.Sprintf("%s %d", longName[:31], i), Part: longName[:31], Kind: "slot",
			Size: 60 * budget.MiB, Used: i * 1024, Peak: i*1024 + 500}
		r.Arenas = append(r.Arenas, a)
		used += a.Used
	}
	text := drawn(t, func(w io.Writer) error { return view.Report(w, r) })
	checkPicture(t, text)
	assert.Less(t, len(text), 200*1024)
	assert.Contains(t, text, digits(used))
	text = drawn(t, func(w io.Writer) error { return view.ReportText(w, r) })
	checkText(t, text)
	assert.Contains(t, text, "4095 of 4096 in use")
}

// hostile returns reports of an attacker.
func hostile() map[string]budget.Report {
	const most = math.MaxUint64
	evil := "</svg>\x00\x1b[31m\u2028&\"'<script>"
	arena := budget.ArenaReport{Name: evil, Part: evil, Size: 1, Used: most, Peak: most, PoolCap: most, PoolPeak: most,
		Fulls: -5, LastFull: strings.Repeat(evil, 50)}
	for i := range 40 {
		arena.Labels = append(arena.Labels, scope.Usage{Name: evil + strings.Repeat("世", i), Bytes: most - uint64(i),
			Peak: most})
	}
	arena.Scopes = arena.Labels
	all := budget.Report{Name: evil, Size: 0, Arenas: []budget.ArenaReport{arena, {}, arena, {Name: "x 1", Part: "x"},
		{Name: "x 2", Part: "x", Size: most, Used: 1}, arena, {Name: "frame 0", Part: "frame", Kind: "frame",
			Size: most, Used: most},
		{Name: "frame 1", Part: "frame", Kind: "frame", Size: most}, {Name: "scratch"}},
		Errors: []string{evil, evil}, NotGranted: []string{strings.Repeat("a", 1000)}, ErrorCount: -1,
		GoHeap: budget.GoHeap{Limit: 1, Used: most, Collections: most}}
	all.Leaks.Slots = -1
	all.Proxies = slices.Grow(all.Proxies, 20)[:20]
	for i := range all.Proxies {
		all.Proxies[i].Name, all.Proxies[i].Asked, all.Proxies[i].Failed = evil, most, most
	}
	whole := all
	whole.Size = most
	return map[string]budget.Report{"zero": {}, "all": all, "whole": whole}
}

// TestHostileReport draws reports from outside, without markup or control characters of theirs.
func TestHostileReport(t *testing.T) {
	for name, r := range hostile() {
		t.Run(name, func(t *testing.T) { checkReport(t, r) })
	}
}

func checkReport(t testing.TB, r budget.Report) {
	checkPicture(t, drawn(t, func(w io.Writer) error { return view.Report(w, r) }))
	checkText(t, drawn(t, func(w io.Writer) error { return view.ReportText(w, r) }))
}

// FuzzReport: any report that is JSON can be drawn.
func FuzzReport(f *testing.F) {
	for _, name := range []string{filepath.Join("testdata", "report.json"),
		filepath.Join("..", "..", "tests", "frogpond", "testdata", "recorded", "freedoom.json")} {
		data, err := json.Marshal(readReport(f, name))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"size": 18446744073709551615, "regions": [{"name": "a 1", "used": 18446744073709551615, "labels": [{"name": "", "bytes": 1}]}, {"name": "a 2", "size": 1, "peak": 2}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r budget.Report
		if json.Unmarshal(data, &r) != nil {
			t.Skip()
		}
		checkReport(t, r)
	})
}

// A label has its expected size in the column of planned ones. A peak above the tolerance has a
// line of its own.
func TestReportOfExpectations(t *testing.T) {
	r := readReport(t, filepath.Join("testdata", "report.json"))
	var before, text, page strings.Builder
	require.NoError(t, view.ReportText(&before, r))
	r.Plan.Expected = []budget.Expected{
		{Part: "level", Label: "sound", Load: 9000 * budget.KiB, Play: 1000, Tolerance: 10},
		{Part: "level", Label: "decals", Play: 200 * budget.KiB, Tolerance: 20},
		{Part: "level", Play: 20_000 * budget.KiB},
		{Part: "boot", Boot: 300 * budget.KiB, Tolerance: 5},
		{Part: "room", Label: "sound", Play: 1},
	}
	require.NoError(t, view.ReportText(&text, r))
	require.NoError(t, view.ReportHTML(&page, r))
	var added []string
	was := strings.Split(before.String(), "\n")
	for line := range strings.Lines(text.String()) {
		if line = strings.TrimSuffix(line, "\n"); !slices.Contains(was, line) {
			added = append(added, strings.Join(strings.Fields(line), " "))
		}
	}
	assert.Equal(t, []string{
		"boot: 350KiB at most, and 300KiB expected, ±5%",
		"label decals: 256KiB at most, and 200KiB expected, ±20%",
		"label sound [########.........] 8192KiB 8192KiB 9000KiB",
		"label decals [#................] 64KiB 256KiB 200KiB",
	}, added)
	assert.Contains(t, page.String(), "label decals: 256KiB at most, and 200KiB expected, ±20%")
	assert.Contains(t, page.String(), "8,388,608 at most, 9,216,000 expected")
}

// TestReportOfNotes: the text, the picture and the page have the note of a region, because its size
// may be for another run than the reported one.
func TestReportOfNotes(t *testing.T) {
	r := budget.Report{Name: "pond", Size: 1 << 20,
		Arenas: []budget.ArenaReport{{Name: "systems", Part: "systems", Kind: "region", Size: 1 << 20, Peak: 1}},
		Plan: budget.Plan{Regions: []budget.RegionPlan{{Name: "level", Note: "of another part"},
			{Name: "systems", Note: `from "long"`}}}}
	for _, draw := range []func(io.Writer, budget.Report) error{view.ReportText, view.Report, view.ReportHTML} {
		text := unescaped(drawn(t, func(w io.Writer) error { return draw(w, r) }))
		assert.Contains(t, text, `note: from "long"`)
		assert.NotContains(t, text, "of another part")
	}
}
