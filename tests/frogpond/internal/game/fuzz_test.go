package game

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// FuzzWAD reads any bytes as a WAD file. The file loads and plays, or has one clear error, or
// doesn't fit. No step panics, and the region is empty afterwards.
func FuzzWAD(f *testing.F) {
	f.Add(doom.MakeWAD(doomtest.GoodMap()))
	f.Add(doom.MakeWAD(doomtest.Set(doomtest.GoodMap(), "BLOCKMAP", doomtest.GoodBlockmap())))
	for _, test := range doomtest.Hostile {
		if file := test.File(); len(file) < 1<<12 {
			f.Add(file)
		}
	}
	s := openServer(f, doom.Builtin)
	f.Fuzz(func(t *testing.T, file []byte) {
		library, err := budget.Load(t.Context(), s.Budget.Region("init"), func(s scope.Scope) (*doom.Library, error) {
			wad, err := doom.ReadWAD(s, "fuzz.wad", bytes.NewReader(file), int64(len(file)))
			return &doom.Library{WADs: []doom.WAD{wad}}, err
		})
		if !expected(t, err) {
			return
		}
		maps, err := library.Get().Maps()
		if err != nil {
			return
		}
		require.NoError(t, s.LoadSystems(t.Context(), Options{Log: os.DevNull, Ticks: 3}))
		game, err := s.start(t, maps[0], 2)
		if !expected(t, err) {
			require.Zero(t, s.Budget.Region("level").Report().Used)
			return
		}
		for range 3 {
			if !expected(t, game.Step()) {
				return
			}
		}
		game.Hash()
	})
}

// expected reports whether err is nil. An error that is neither of a bad WAD nor ErrFull ends the
// test.
func expected(t *testing.T, err error) bool {
	var bad *doom.BadWAD
	if err != nil && !errors.As(err, &bad) && !errors.Is(err, budget.ErrFull) {
		t.Fatalf("neither bad WAD nor full: %v", err)
	}
	return err == nil
}
