package main

import (
	"bytes"

	"github.com/upfront-mem/upfront/scope"
)

// Library is what the region init holds: the lump tables of the WADs, which
// stay open until the program ends.
type Library struct{ WADs []WAD }

func openLibrary(s scope.Scope, names []string, seed uint64) (*Library, error) {
	l := &Library{}
	for _, name := range names {
		var w WAD
		var err error
		if name == builtin {
			made := makeWAD(seed)
			file := s.Bytes(len(made))
			copy(file, made)
			w, err = readWAD(s, builtin, bytes.NewReader(file), int64(len(file)))
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
