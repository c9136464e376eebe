package main

import (
	"cmp"
	"fmt"
	"io"
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
	InUse    uint64   `json:"in_use"`
	Now      []user   `json:"now"`
	Comments []string `json:"comments,omitempty"`
	top      int
}

type user struct {
	Made    string `json:"made,omitempty"`  // function and file:line of Go
	Calls   string `json:"calls,omitempty"` // the function of C
	Bytes   uint64 `json:"bytes"`
	Objects uint64 `json:"objects"`
}

// usersOf sums up a profile of C's heap by the innermost line of Go and the function of C that it
// called, or by C's innermost function in a thread of C.
func usersOf(p *profile.Profile, top int) users {
	u := users{Now: []user{}, Comments: p.Comments, top: top}
	sums := map[user]user{}
	for _, s := range p.Sample {
		if s.Value[3] == 0 {
			continue
		}
		key := userOf(s)
		sum := sums[key]
		sums[key] = user{key.Made, key.Calls, sum.Bytes + uint64(s.Value[3]), sum.Objects + uint64(s.Value[2])}
		u.InUse += uint64(s.Value[3])
	}
	for _, one := range sums {
		u.Now = append(u.Now, one)
	}
	slices.SortFunc(u.Now, func(a, b user) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Made, b.Made), cmp.Compare(a.Calls, b.Calls))
	})
	return u
}

func userOf(s *profile.Sample) (u user) {
	for _, l := range s.Location {
		for _, line := range l.Line {
			name := line.Function.Name
			switch {
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

// users writes the text of profile for a C heap.
func (t *tool) users(w io.Writer, u users) error {
	fmt.Fprintf(w, "C heap: about %s in use\n", budget.SizeText(u.InUse))
	for _, text := range u.Comments {
		fmt.Fprintln(w, printable(text))
	}
	if len(u.Now) == 0 {
		return nil
	}
	rows := [][]cell{{right("in use"), right(""), left("made at"), left("calls")}}
	rows = listed(rows, u.Now, u.top, u.InUse, func(one user) (uint64, []cell) {
		return one.Bytes, []cell{echoed(inShort(one.Made)), echoed(one.Calls)}
	})
	fmt.Fprintln(w)
	return t.table(w, rows)
}
