package watch

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/chart"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client/clienttest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

var update = flag.Bool("update", false, "write the recorded pictures")

func builtin(t *testing.T, name string) *chart.Chart {
	charts, err := chart.Open(t.Context(), []string{doom.Builtin}, 1)
	require.NoError(t, err)
	defer func() { assert.NoError(t, charts.Close()) }()
	c, err := charts.Load(t.Context(), name)
	require.NoError(t, err)
	return c
}

// scene returns a view with an object of each kind.
func scene() *wire.View {
	v := &wire.View{Tick: 350, Count: 5, Self: wire.Self{Frogs: 9}}
	copy(v.Things[:], []wire.Thing{
		{Kind: game.SeenPlayer, Number: 3, X: 100, Y: 100, Heading: 4},
		{Kind: game.SeenPlayer, Number: 12, X: 900, Y: 300, Heading: 9},
		{Kind: game.SeenFrog, Number: 0, X: 300, Y: 60},
		{Kind: game.SeenFrog, Number: 7, X: 30000, Y: -30000}, // off the map
		{Kind: game.SeenSector, Number: 1, X: 0, Y: 100},
	})
	return v
}

func TestPicture(t *testing.T) {
	c := builtin(t, "MAP01")
	var all []byte
	for _, p := range []Picture{{ASCII: true}, {}, {Coloured: true}} {
		v := scene()
		all = append(p.Draw(all, 64, 18, c, v, Figures(v)), '\n')
	}
	const file = "testdata/pictures.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, all, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(all))
}

// Each line has the picture's width, and nothing is drawn beyond the edges.
func TestPictureHasItsSize(t *testing.T) {
	for _, c := range []*chart.Chart{nil, builtin(t, "MAP01"), builtin(t, "MAP12")} {
		p := Picture{}
		for _, size := range [][2]int{{80, 24}, {8, 5}, {300, 90}, {20, 60}} {
			text := string(p.Draw(nil, size[0], size[1], c, scene(), strings.Repeat("é", 400)))
			lines := strings.Split(text, "\n")
			require.Len(t, lines, size[1])
			for _, line := range lines {
				assert.Equal(t, size[0], utf8.RuneCountInString(line))
			}
		}
	}
}

// patience is longer than any step of a test.
const patience = 5 * time.Minute

func TestWatch(t *testing.T) {
	_, address := clienttest.Listen(t, 4)
	o := Options{Address: address, Room: -1, Name: "owl", WADs: []string{doom.Builtin}, Seed: 1,
		For: patience, Once: true, ASCII: true}
	var out bytes.Buffer
	require.NoError(t, Run(t.Context(), o, &out))
	assert.Contains(t, out.String(), "room 0, MAP01, tick ")
	assert.Equal(t, 24, strings.Count(out.String(), "\n"))
	o.Once = false // on a pipe, pictures follow each other
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var two pictures
	two.enough = enough
	require.NoError(t, Run(ctx, o, &two))
	assert.Equal(t, 2, strings.Count(two.text.String(), "room 0"))
}

// pictures is an output that calls enough at the second picture.
type pictures struct {
	text   bytes.Buffer
	enough func()
}

func (p *pictures) Write(picture []byte) (int, error) {
	if p.text.Len() > 0 {
		p.enough()
	}
	return p.text.Write(picture)
}

// If a watcher sees no view, Run returns the reason.
func TestWatchFails(t *testing.T) {
	_, full := clienttest.Listen(t, 0)
	o := Options{Address: full, WADs: []string{doom.Builtin}, For: 400 * time.Millisecond}
	err := Run(t.Context(), o, &bytes.Buffer{})
	// a busy machine takes longer
	for ; strings.Contains(fmt.Sprint(err), "no answer"); o.For *= 2 {
		err = Run(t.Context(), o, &bytes.Buffer{})
	}
	assert.ErrorContains(t, err, "server full")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	o.Address, o.For = "127.0.0.1:1", time.Minute
	assert.ErrorContains(t, Run(ctx, o, &bytes.Buffer{}), "no answer")
	o.WADs = []string{"absent.wad"}
	assert.ErrorContains(t, Run(t.Context(), o, &bytes.Buffer{}), "absent.wad")
}
