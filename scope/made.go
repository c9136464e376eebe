package scope

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Sites are who asked for memory of the arena, and what they got: in memtrace builds. Any goroutine may ask.
func (st *Stack) Sites() []arena_c.SiteFigures { return st.row.Sites() }

// madeShown is how many sites MadeIn names.
const madeShown = 8

// MadeIn says for the open scope at a depth who asked for what is in it and in its temporaries, most bytes first, as lines of
// an error that follow its first one: in memtrace builds.
func (st *Stack) MadeIn(depth int) string {
	made := st.row.Slot(uint64(depth)).Made()
	if st.row.FarOf == uint64(depth)+1 {
		made = append(made, st.row.Far().Made()...)
	}
	var out strings.Builder
	for i, f := range made {
		if i == madeShown {
			fmt.Fprintf(&out, "\n\t\t%d more sites", len(made)-i)
			break
		}
		if i == 0 {
			fmt.Fprintf(&out, "\n\tscope %q holds:", st.NameAt(depth))
		}
		call := strings.Trim(arena_c.Text(f.Site), "\t\n")
		fmt.Fprintf(&out, "\n\t\t%d bytes in %d: %s", f.Live.Bytes, f.Live.Objects, call)
	}
	return out.String()
}
