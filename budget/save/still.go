package save

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// still checks, in checked builds, that memory before the state isn't written, by a checksum for
// each cache line. That memory is in no snapshot.
type still struct{ lines []uint32 }

func (l *still) begin(st *State) {
	if arena_c.Checked {
		before := st.before()
		l.lines = make([]uint32, 0, len(before)/arena_c.LineSize)
		for line := range slices.Chunk(before, arena_c.LineSize) {
			l.lines = append(l.lines, sumOf(line))
		}
	}
}

func (l *still) check(st *State) error {
	if !arena_c.Checked {
		return nil
	}
	before := st.before()
	for i, sum := range l.lines {
		at := i * arena_c.LineSize
		if sumOf(before[at:min(at+arena_c.LineSize, len(before))]) != sum {
			return fmt.Errorf("save: BUG: region %s: memory from before Begin was written since, and "+
				"is in no snapshot: 64 bytes at offset %#x%s", st.saved.Name, at,
				arena_c.Made(unsafe.Pointer(&before[at])))
		}
	}
	return nil
}

// before returns the load's bytes before the state.
func (st *State) before() []byte {
	h := st.header()
	from := unsafe.Add(unsafe.Pointer(h), h.Start)
	arena_c.Gather(from, st.mark-h.Start)
	return unsafe.Slice((*byte)(from), st.mark-h.Start)
}
