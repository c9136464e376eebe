package view_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// insideOfPond returns the contents of the loaded pond's region, with calls without folders.
func insideOfPond(t *testing.T) (in budget.Inside) {
	t.Helper()
	b, err := budget.Open(pondPlan)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	level := b.Region("level")
	_, err = budget.Load(context.Background(), level, func(s scope.Scope) (*int, error) {
		return new(int), loadPond(s, func(within ...arena.Inner) (err error) {
			in, err = level.Inside(within...)
			return err
		})
	})
	require.NoError(t, err)
	for i := range in.Scopes {
		in.Scopes[i].Made = nil
	}
	for i := range in.Spans {
		if made := in.Spans[i].Made; len(made) > 0 {
			function, file, _ := strings.Cut(made[0], " ")
			in.Spans[i].Made = []string{filepath.Base(function) + " " + filepath.Base(file)}
		}
	}
	return in
}

// TestInsidePicture: the file has a checked build's Inside of the pond, and every build draws the
// same picture of it.
func TestInsidePicture(t *testing.T) {
	file := filepath.Join("testdata", "inside.json")
	if pond := insideOfPond(t); pond.Known {
		text, err := json.MarshalIndent(pond, "", " ")
		require.NoError(t, err)
		golden(t, "inside.json", string(text)+"\n")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var in budget.Inside
	require.NoError(t, json.Unmarshal(text, &in))
	golden(t, "inside.svg", drawInside(t, in))
	golden(t, "inside.txt", writeInside(t, in))
}

func drawInside(t testing.TB, in budget.Inside) string {
	t.Helper()
	text := drawn(t, func(w io.Writer) error { return view.Inside(w, in) })
	checkPicture(t, text)
	return text
}

func writeInside(t testing.TB, in budget.Inside) string {
	t.Helper()
	text := drawn(t, func(w io.Writer) error { return view.InsideText(w, in) })
	checkText(t, text)
	return text
}

// TestInsideOfMany: the picture of a whole map's objects has a readable size and complete sums.
func TestInsideOfMany(t *testing.T) {
	in := budget.Inside{Budget: "game", Arena: "level", Size: 2 * budget.MiB, Known: true}
	for i, at := 0, uint64(0); at < 3*budget.MiB/2; i++ {
		x := budget.Span{Kind: "plain", Type: fmt.Sprintf("game.Thing%d", i%97), Scope: "map", Size: uint64(16 + i%7*40), Padding: uint64(i % 3),
			Made: []string{fmt.Sprintf("game.load /game/load.go:%d", i%300)}}
		if i%5 == 0 {
			x.Kind, x.Order = "object", i+1
		}
		x.Offset = at + x.Padding
		at = x.Offset + x.Size
		in.Cursor = at
		in.Spans = append(in.Spans, x)
	}
	in.Limit, in.Used = in.Size, in.Cursor
	text := drawInside(t, in)
	assert.Less(t, len(text), 200<<10)
	assert.True(t, strings.Contains(text, " more, all smaller"))
	assert.True(t, strings.Contains(text, "the chain of 2,297 nodes isn"))
	requireSum(t, writeInside(t, in), in.Used)
}

// requireSum requires the list of a text to sum up to the used bytes.
func requireSum(t testing.TB, text string, used uint64) {
	t.Helper()
	var sum uint64
	for line := range strings.Lines(text) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		n, err := strconv.ParseUint(strings.ReplaceAll(number, ",", ""), 10, 64)
		switch {
		case rest == "used":
			require.Equal(t, used, n)
			require.Equal(t, used, sum)
			return
		case err == nil:
			sum += n
		}
	}
	require.Fail(t, "it has no sum", text)
}

func TestInsideOfAny(t *testing.T) {
	requireSum(t, writeInside(t, insideOfPond(t)), insideOfPond(t).Used)
	drawInside(t, insideOfPond(t))
	const most = 256*budget.GiB - 1
	for name, in := range map[string]budget.Inside{
		"zero":    {},
		"empty":   {Arena: "level", Size: 100, Limit: 100},
		"temp":    {Arena: "level", Size: 100, Used: 100, Spans: []budget.Span{{Size: 100, Kind: "reserve"}}},
		"hostile": {Arena: "</svg>\x1b", Size: 1, Used: 1, Cursor: 1, Limit: 1, Spans: []budget.Span{{Size: 1, Kind: "<&\u202e", Made: []string{"\x00 /"}}}},
		"huge":    {Size: most, Used: most, Cursor: most, Limit: most, Spans: []budget.Span{{Size: most}}},
		"scopes":  {Size: 9, Limit: 9, Scopes: []budget.OpenScope{{Name: strings.Repeat("long ", 99), Mark: math.MaxUint64}}},
	} {
		t.Run(name, func(t *testing.T) {
			drawInside(t, in)
			requireSum(t, writeInside(t, in), in.Used)
		})
	}
	var b bytes.Buffer
	require.ErrorContains(t, view.Inside(&b, budget.Inside{Used: 1}), "contradict")
	require.ErrorContains(t, view.Inside(&b, budget.Inside{Size: math.MaxUint64, Limit: math.MaxUint64}), "contradict")
	require.ErrorContains(t, view.InsideText(&b, budget.Inside{Used: 1}), "contradict")
	assert.Zero(t, b.Len())
}

// TestInsideOfManyKinds: a text that doesn't fit its line isn't built whole before it is cut.
func TestInsideOfManyKinds(t *testing.T) {
	const kinds = 5000
	in := budget.Inside{Size: kinds, Used: kinds, Cursor: kinds, Limit: kinds, Spans: []budget.Span{{Size: kinds, Kind: "heap"}}}
	for i := range uint64(kinds) {
		in.Spans[0].Parts = append(in.Spans[0].Parts, stack.Part{Offset: i, Size: 1, Kind: fmt.Sprint("kind", i)})
	}
	assert.Less(t, taken(func() { assert.NoError(t, view.InsideText(io.Discard, in)) }), uint64(4*budget.MiB))
	assert.Contains(t, writeInside(t, in), "heap of 5,000 bytes, kind0 1 in 1, kind1 1 in 1")
}

// TestInsideTextIsWhole: a usual name leaves space for all facts of a pool and of a checked build.
func TestInsideTextIsWhole(t *testing.T) {
	pool := stack.PoolLayout{Stride: 12, Count: 2000, Live: 1000, Peak: 1000, States: strings.Repeat("#.", 1000)}
	in := budget.Inside{Arena: "level", Size: 24_100, Used: 24_100, Cursor: 24_100, Limit: 24_100, Spans: []budget.Span{
		{Size: 100, Kind: "bytes", Scope: "level"}, {Offset: 100, Size: 24_000, Kind: "pool", Type: "main.Frog", Scope: "level", Pool: &pool}}}
	text := writeInside(t, in)
	assert.Contains(t, text, "\npool of main.Frog: 1,000 of 2,000 live, 1,000 at most\n")
	assert.Contains(t, text, "\nchunks of pools: # live, . free, - never used\n")
	assert.Contains(t, text, "  objects (listed in checked builds)            level\n")
	assert.NotContains(t, text, "made at")
}

// FuzzInside: a file from outside is drawn or refused.
func FuzzInside(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "inside.json"))
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var in budget.Inside
		if json.Unmarshal(text, &in) != nil {
			return
		}
		err := view.Inside(io.Discard, in)
		assert.Equal(t, err, view.InsideText(io.Discard, in))
		if err == nil {
			drawInside(t, in)
			writeInside(t, in)
		}
	})
}
