package budget

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// Range is a named range of the budget.
type Range struct {
	Arena string // "level", "frame 0"; "" for a range outside the arenas
	// One of "tables", "used", "free", "temp", "slack: edge", "slack: unplanned", "slack: guard".
	What   string
	Offset uint64
	Size   uint64
}

var rangeNames = [...]string{arena_c.RangeTables: "tables", arena_c.RangeUsed: "used", arena_c.RangeFree: "free",
	arena_c.RangeTemp: "temp", arena_c.RangeEdge: "slack: edge", arena_c.RangeUnplanned: "slack: unplanned",
	arena_c.RangeGuard: "slack: guard"}

// Walk reads the tables and returns ranges in address order. The ranges cover every byte of the
// budget without gap or overlap. Walk fails if an arena's control words contradict each other. In a
// checked build Walk also checks the bytes around every live object and the bytes of freed memory.
// Its error then reports the first stray write: past the end of an object, before the start, or
// into freed memory. To find the step of a tick that makes a stray write, call Walk between the
// steps.
//
// Workers must not allocate during a Walk. Cost: O(arenas * limits.scopes), and in checked builds a
// read of 32 bytes for each byte that was ever in use.
func (b *Budget) Walk() ([]Range, error) {
	if b.closed.Load() {
		return nil, fmt.Errorf("budget %q: Walk: %w", b.plan.Name, ErrClosed)
	}
	arenas := uint64(len(b.stacks))
	raw := make([]arena_c.Range, 6*arenas+3)
	count, code := arenas, arena_c.Corrupt
	if *b.table == b.shape {
		count, code = b.table.Walk(b.Size(), raw)
	}
	if code == arena_c.Corrupt {
		name := "the map"
		if count < arenas {
			name = arenaName(b.stacks[count])
		}
		return nil, fmt.Errorf("budget %q: the control words of %s contradict each other: a stray write has "+
			"overwritten them", b.plan.Name, name)
	}
	ranges := make([]Range, count)
	for i, r := range raw[:count] {
		ranges[i] = Range{What: rangeNames[r.What], Offset: r.Offset, Size: r.Size}
		if r.Row < arenas {
			ranges[i].Arena = arenaName(b.stacks[r.Row])
		}
	}
	if damage := b.table.Damage(); damage != "" {
		return nil, errors.New(damage)
	}
	return ranges, nil
}
