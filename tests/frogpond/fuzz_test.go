package main

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// FuzzWAD gives any bytes to the reader. They load and play, or give one clear
// error, or don't fit; nothing panics, and the region is empty afterwards.
func FuzzWAD(f *testing.F) {
	f.Add(wadFile(goodMap()))
	f.Add(wadFile(set(goodMap(), "BLOCKMAP", goodBlockmap())))
	for _, test := range hostile {
		if file := test.file(); len(file) < 1<<12 {
			f.Add(file)
		}
	}
	s := openServer(f, builtin)
	f.Fuzz(func(t *testing.T, file []byte) {
		library, err := budget.Load(t.Context(), s.budget.Region("init"), func(s scope.Scope) (*Library, error) {
			wad, err := readWAD(s, "fuzz.wad", bytes.NewReader(file), int64(len(file)))
			return &Library{WADs: []WAD{wad}}, err
		})
		if !expected(t, err) {
			return
		}
		maps := library.Get().WADs[0].maps()
		if len(maps) == 0 {
			return
		}
		require.NoError(t, s.loadSystems(t.Context(), &options{log: os.DevNull, ticks: 3}))
		game, err := s.start(t, maps[0], 2)
		if !expected(t, err) {
			require.Zero(t, s.budget.Region("level").Report().Used)
			return
		}
		for range 3 {
			if !expected(t, game.step()) {
				return
			}
		}
		game.hash()
	})
}

// expected says whether there was no error; any other must be of a known kind.
func expected(t *testing.T, err error) bool {
	var bad *BadWAD
	if err != nil && !errors.As(err, &bad) && !errors.Is(err, budget.ErrFull) {
		t.Fatalf("neither bad WAD nor full: %v", err)
	}
	return err == nil
}
