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
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/scope"
)

// insideOfPond returns the contents of the loaded pond's region, with calls without folders.
func insideOfPond(t *testing.T) (in inside.Contents) {
	t.Helper()
	b, err := budget.Open(pondPlan)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	level := b.Region("level")
	_, err = budget.Load(context.Background(), level, func(s scope.Scope) (*int, error) {
		return new(int), loadPond(s, func(within ...arena.Inner) (err error) {
			in, err = inside.OfRegion(level, within...)
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
	var in inside.Contents
	require.NoError(t, json.Unmarshal(text, &in))
	golden(t, "inside.svg", drawInside(t, in))
}

func drawInside(t testing.TB, in inside.Contents) string {
	t.Helper()
	text := drawn(t, func(w io.Writer) error { return view.Inside(w, in) })
	checkPicture(t, text)
	return text
}

// TestInsideOfMany: the picture of a whole map's objects has a readable size and complete sums.
func TestInsideOfMany(t *testing.T) {
	in := inside.Contents{Budget: "game", Arena: "level", Size: 2 * budget.MiB, Known: true}
	for i, at := 0, uint64(0); at < 3*budget.MiB/2; i++ {
		x := inside.Span{Kind: "plain", Type: fmt.Sprintf("game.Thing%d", i%97), Scope: "map",
			Size: uint64(16 + i%7*40), Padding: uint64(i % 3),
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
	requireSum(t, text, in.Used)
}

// requireSum requires the list in a picture's description to sum up to the used bytes.
func requireSum(t testing.TB, picture string, used uint64) {
	t.Helper()
	_, list, _ := strings.Cut(picture, " to its last: ")
	list, _, found := strings.Cut(list, "</desc>")
	require.True(t, found, picture)
	var sum uint64
	for line := range strings.SplitSeq(list, "; ") {
		if line != "" {
			n, err := strconv.ParseUint(strings.ReplaceAll(line[strings.LastIndex(line, " ")+1:], ",", ""), 10, 64)
			require.NoError(t, err)
			sum += n
		}
	}
	require.Equal(t, used, sum)
}

func TestInsideOfAny(t *testing.T) {
	requireSum(t, drawInside(t, insideOfPond(t)), insideOfPond(t).Used)
	const most = 256*budget.GiB - 1
	for name, in := range map[string]inside.Contents{
		"zero":  {},
		"empty": {Arena: "level", Size: 100, Limit: 100},
		"temp":  {Arena: "level", Size: 100, Used: 100, Spans: []inside.Span{{Size: 100, Kind: "reserve"}}},
		"hostile": {Arena: "</svg>\x1b", Size: 1, Used: 1, Cursor: 1, Limit: 1,
			Spans: []inside.Span{{Size: 1, Kind: "<&\u202e", Made: []string{"\x00 /"}}}},
		"huge": {Size: most, Used: most, Cursor: most, Limit: most, Spans: []inside.Span{{Size: most}}},
		"scopes": {Size: 9, Limit: 9,
			Scopes: []inside.Scope{{Name: strings.Repeat("long ", 99), Mark: math.MaxUint64}}},
	} {
		t.Run(name, func(t *testing.T) {
			requireSum(t, drawInside(t, in), in.Used)
		})
	}
	var b bytes.Buffer
	require.ErrorContains(t, view.Inside(&b, inside.Contents{Used: 1}), "contradict")
	require.ErrorContains(t, view.Inside(&b, inside.Contents{Size: math.MaxUint64, Limit: math.MaxUint64}),
		"contradict")
	assert.Zero(t, b.Len())
}

// FuzzInside: a file from outside is drawn or refused.
func FuzzInside(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "inside.json"))
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var in inside.Contents
		if json.Unmarshal(text, &in) != nil {
			return
		}
		if view.Inside(io.Discard, in) == nil {
			drawInside(t, in)
		}
	})
}
