package doom

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Library is what the region init holds: the lump tables of the WADs, which
// stay open until the program ends.
type Library struct{ WADs []WAD }

// Builtin stands instead of a file's name: the levels that the program makes.
const Builtin = "builtin"

// InstalledWADs are the Freedoom files where Debian and others put them, or Builtin.
func InstalledWADs() []string {
	for _, folder := range []string{"/usr/share/games/doom", "/usr/local/share/games/doom"} {
		if found, _ := filepath.Glob(folder + "/freedoom[12].wad"); len(found) > 0 {
			return found
		}
	}
	return []string{Builtin}
}

// OpenLibrary opens the files, or makes Builtin's from a seed, for the life of s. It holds a
// descriptor of each file and 16 bytes of s for each lump.
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

// Maps lists the maps of all files, in their order. That there is none is an error.
func (l *Library) Maps() ([]Map, error) {
	var all []Map
	var names []string
	for i := range l.WADs {
		names = append(names, l.WADs[i].Name)
		all = append(all, l.WADs[i].maps()...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no map (a mark named ExMy or MAPxx)", strings.Join(names, ", "))
	}
	return all, nil
}
