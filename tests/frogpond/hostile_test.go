package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// A malformed file ends the program with one line. A malformed map is not run.
func TestHostileWADs(t *testing.T) {
	left := map[string]string{"more lumps than the file": "", "no map": "",
		"vertex out of range": "MAP01: not run: "}
	for _, test := range doomtest.Hostile {
		loads, ok := left[test.Name]
		if !ok {
			continue
		}
		delete(left, test.Name)
		t.Run(test.Name, func(t *testing.T) {
			doomtest.Write(t, "bad.wad", test.File())
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"-json", "-ticks", "3", "-wad", "bad.wad"}, &stdout, &stderr)
			assert.Equal(t, 1, code)
			assert.Equal(t, loads == "", stdout.String() == "")
			assert.Equal(t, "frogpond: "+loads+test.Line+"\n", stderr.String())
		})
	}
	assert.Empty(t, left)
}

// The control for TestHostileWADs: the good maps, from which the hostile files are made, play.
func TestGoodMapPlays(t *testing.T) {
	for name, lumps := range map[string][]doom.Lump{
		"without BLOCKMAP":    doomtest.GoodMap(),
		"with BLOCKMAP":       doomtest.Set(doomtest.GoodMap(), "BLOCKMAP", doomtest.GoodBlockmap()),
		"with empty BLOCKMAP": doomtest.Set(doomtest.GoodMap(), "BLOCKMAP", nil),
		"without things":      doomtest.Set(doomtest.GoodMap(), "THINGS", nil),
	} {
		t.Run(name, func(t *testing.T) {
			doomtest.Write(t, "good.wad", doom.MakeWAD(lumps))
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), []string{"-ticks", "50", "-wad", "good.wad"}, &stdout, &stderr)
			assert.Equal(t, 0, code)
			assert.Empty(t, stderr.String())
		})
	}
}
