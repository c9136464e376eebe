package doom_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// Of maps with one name, the last takes the place of the first, and the lines name all maps that it
// replaces.
func TestLaterMapsReplace(t *testing.T) {
	b := open(t)
	t.Chdir(t.TempDir())
	one, two := doomtest.GoodMap(), doomtest.Second(doomtest.GoodMap())
	for name, lumps := range map[string][]doom.Lump{"a.wad": slices.Concat(one, two), "b.wad": two,
		"c.wad": slices.Concat(one, two)} {
		require.NoError(t, os.WriteFile(name, doom.MakeWAD(lumps), 0o644))
	}
	for _, test := range []struct{ files, maps, lines []string }{
		{[]string{"a.wad"}, []string{"MAP01 a.wad", "MAP02 a.wad"}, nil},
		{[]string{"a.wad", "b.wad"}, []string{"MAP01 a.wad", "MAP02 b.wad"}, []string{"b.wad replaces MAP02 of a.wad"}},
		{[]string{"b.wad", "a.wad"}, []string{"MAP02 a.wad", "MAP01 a.wad"}, []string{"a.wad replaces MAP02 of b.wad"}},
		{[]string{"a.wad", "b.wad", "c.wad"}, []string{"MAP01 c.wad", "MAP02 c.wad"},
			[]string{"c.wad replaces MAP01, MAP02 of a.wad", "c.wad replaces MAP02 of b.wad"}},
	} {
		library, err := budget.Load(t.Context(), b.Region("init"), func(s scope.Scope) (*doom.Library, error) {
			return doom.OpenLibrary(s, test.files, 1)
		})
		require.NoError(t, err)
		maps, err := library.Get().Maps()
		require.NoError(t, err)
		var names []string
		for _, m := range maps {
			names = append(names, m.Name+" "+m.WAD.Name)
		}
		assert.Equal(t, test.maps, names)
		assert.ElementsMatch(t, test.lines, doom.Replaced(maps))
		require.NoError(t, b.Region("init").Rewind(t.Context()))
	}
}

func TestFolderOfTheVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOOMWADDIR", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.wad"), nil, 0o644))
	elsewhere := doom.InstalledWADs()
	assert.NotContains(t, elsewhere[0], dir)
	file := filepath.Join(dir, "freedoom2.wad")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	assert.Equal(t, []string{file}, doom.InstalledWADs())
}
