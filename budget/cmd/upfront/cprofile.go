package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/upfront-mem/upfront/budget"
)

// profileOfC returns the profile of a C heap (malloc.WriteProfile), or nil if the data are none.
func profileOfC(data []byte) *profile.Profile {
	p, err := profile.ParseData(data)
	if err != nil || len(p.SampleType) != len(typesOfC) {
		return nil
	}
	for i, name := range typesOfC {
		if p.SampleType[i].Type != name {
			return nil
		}
	}
	return p
}

var typesOfC = []string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}

// users is the output of profile for a C heap: lines of Go, those with the most bytes first.
type users struct {
	InUse    uint64   `json:"in_use"`           // of C's malloc
	Arenas   []user   `json:"arenas,omitempty"` // sums of the arenas with a Shared
	Now      []user   `json:"now"`
	Comments []string `json:"comments,omitempty"`
	top      int
}

type user struct {
	Made    string `json:"made,omitempty"`  // function and file:line of Go
	Calls   string `json:"calls,omitempty"` // the function of C
	Arena   string `json:"arena,omitempty"` // with a Shared; none: C's malloc
	Bytes   uint64 `json:"bytes"`
	Objects uint64 `json:"objects"`
}

// usersOf sums up a profile of C's heap by the innermost line of Go and the function of C that it
// called, or by C's innermost function in a thread of C.
func usersOf(p *profile.Profile, top int) users {
	u := users{Now: []user{}, Comments: p.Comments, top: top}
	sums, arenas := map[user]user{}, map[user]user{}
	add := func(to map[user]user, key user, s *profile.Sample) {
		sum := key
		sum.Bytes, sum.Objects = to[key].Bytes+uint64(s.Value[3]), to[key].Objects+uint64(s.Value[2])
		to[key] = sum
	}
	for _, s := range p.Sample {
		if s.Value[3] == 0 {
			continue
		}
		key := userOf(s)
		add(sums, key, s)
		if key.Arena == "" {
			u.InUse += uint64(s.Value[3])
		} else {
			add(arenas, user{Arena: key.Arena}, s)
		}
	}
	u.Now, u.Arenas = largest(sums, u.Now), largest(arenas, nil)
	return u
}

func largest(sums map[user]user, list []user) []user {
	return slices.SortedFunc(maps.Values(sums), func(a, b user) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Made, b.Made), cmp.Compare(a.Calls, b.Calls),
			cmp.Compare(a.Arena, b.Arena))
	})
}

const ofArena = "github.com/upfront-mem/upfront/arena."

func userOf(s *profile.Sample) (u user) {
	if names := s.Label["arena"]; len(names) != 0 {
		u.Arena = names[0]
	}
	for _, l := range s.Location {
		for _, line := range l.Line {
			name := line.Function.Name
			switch {
			case strings.HasPrefix(name, ofArena): // a call of a Shared's method
				u.Calls = name[strings.LastIndexByte(ofArena, '/')+1:]
			// a function without a dot is C, in the comment before import "C"
			case strings.HasSuffix(line.Function.Filename, ".go") && strings.Contains(name, "."):
				u.Made = fmt.Sprintf("%s %s:%d", name, line.Function.Filename, line.Line)
				return u
			case u.Calls == "" || strings.HasPrefix(name, "C."):
				u.Calls = name
			}
		}
	}
	return u
}

// placeOf names an arena without its budget.
func placeOf(arena string) string {
	if _, name, found := strings.Cut(arena, "\": "); found {
		return name
	}
	return cmp.Or(arena, "C heap")
}

// users writes the text of profile for a C heap.
func (t *tool) users(w io.Writer, u users) error {
	fmt.Fprintf(w, "C heap: about %s in use\n", budget.SizeText(u.InUse))
	total := u.InUse
	for _, one := range u.Arenas {
		fmt.Fprintf(w, "%s: about %s in use\n", printable(one.Arena), budget.SizeText(one.Bytes))
		total += one.Bytes
	}
	for _, text := range u.Comments {
		fmt.Fprintln(w, printable(text))
	}
	if len(u.Now) == 0 {
		return nil
	}
	rows := [][]cell{{right("in use"), right(""), left("made at"), left("calls")}}
	if len(u.Arenas) != 0 {
		rows[0] = append(rows[0], left("in"))
	}
	rows = listed(rows, u.Now, u.top, total, func(one user) (uint64, []cell) {
		row := []cell{echoed(inShort(one.Made)), echoed(one.Calls)}
		if len(u.Arenas) != 0 {
			row = append(row, echoed(placeOf(one.Arena)))
		}
		return one.Bytes, row
	})
	fmt.Fprintln(w)
	return t.table(w, rows)
}
