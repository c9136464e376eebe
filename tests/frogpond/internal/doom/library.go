package doom

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Library is the content of the region init: the open WADs and their lump tables.
type Library struct{ WADs []WAD }

// Builtin is the name, instead of a file's, of the built-in levels.
const Builtin = "builtin"

// InstalledWADs returns the Freedoom files of the first folder that has one, or Builtin. The first
// folder is that of the variable DOOMWADDIR, which other programs for such files also read; the
// usual folders follow.
func InstalledWADs() []string {
	usual := []string{"/usr/share/games/doom", "/usr/local/share/games/doom"}
	for _, folder := range append([]string{os.Getenv("DOOMWADDIR")}, usual...) {
		if folder == "" {
			continue
		}
		if found, _ := filepath.Glob(filepath.Join(folder, "freedoom[12].wad")); len(found) > 0 {
			return found
		}
	}
	return []string{Builtin}
}

// OpenLibrary opens the files, for the life of s; for the name Builtin it makes the levels of a
// seed in s. It holds a descriptor of each file, and 16 bytes of s for each lump.
func OpenLibrary(s scope.Scope, names []string, seed uint64) (*Library, error) {
	l := &Library{}
	for _, name := range names {
		var w WAD
		var err error
		if name == Builtin {
			made := BuiltinWAD(seed)
			file := s.Bytes(len(made))
			copy(file, made)
			w, err = ReadWAD(s, Builtin, bytes.NewReader(file), int64(len(file)))
		} else {
			w, err = openFile(s, name)
		}
		if err != nil {
			return nil, err
		}
		l.WADs = append(l.WADs, w)
	}
	return l, nil
}

// Maps returns the maps of all files, in their order. Of two maps with one name, the later takes
// the place of the earlier, as in the game; [Replaced] reports that. If the files have no map, it
// returns an error.
func (l *Library) Maps() ([]Map, error) {
	var all []Map
	var names []string
	for i := range l.WADs {
		names = append(names, l.WADs[i].Name)
		for _, m := range l.WADs[i].maps() {
			at := slices.IndexFunc(all, func(old Map) bool { return old.Name == m.Name })
			if at < 0 {
				all = append(all, m)
				continue
			}
			m.Replaces = new(all[at])
			all[at] = m
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no map (a mark named ExMy or MAPxx)", strings.Join(names, ", "))
	}
	return all, nil
}
