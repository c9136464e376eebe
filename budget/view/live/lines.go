package live

import (
	"cmp"
	"path"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// line is a line of the program, and what it made that lives.
type line struct {
	At    string // "level.load load.go:31"
	Whole string // with its callers, if they are always the same
	Label string
	Bytes uint64
	Count uint64
}

// linesOf are those that made most in some arenas, in checked builds; "" is who isn't known.
func linesOf(arenas []budget.ArenaReport) list[line] {
	type key struct{ at, label string }
	sums := map[key]*line{}
	for _, x := range arenas {
		for _, site := range x.Sites {
			k, whole := key{"", site.Label}, strings.Join(site.Made, "\n")
			if len(site.Made) != 0 {
				k.at = site.Made[0]
			}
			l := sums[k]
			if l == nil {
				l = &line{At: short(k.at), Whole: whole, Label: k.label}
				sums[k] = l
			}
			if l.Whole != whole {
				l.Whole = k.at + "\ncalled from several places"
			}
			l.Bytes += site.Bytes
			l.Count += site.Objects
		}
	}
	var all []line
	for _, l := range sums {
		all = append(all, *l)
	}
	return first(all, holders, func(a, b line) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Whole, b.Whole), strings.Compare(a.Label, b.Label))
	}, func(l line) uint64 { return l.Bytes })
}

// short is a line of a program without the folders: "example.com/pond/level.load /src/level/load.go:31".
func short(made string) string {
	if made == "" {
		return ""
	}
	function, file, _ := strings.Cut(made, " ")
	return path.Base(function) + " " + path.Base(file)
}
