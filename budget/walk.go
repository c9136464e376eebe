package budget

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// Range is one named piece of the budget.
type Range struct {
	Arena  string // "level", "frame 0"; empty for what belongs to none
	What   string // "tables", "used", "free", "temp", "slack: edge", "slack: unplanned", "slack: guard"
	Offset uint64
	Size   uint64
}

var rangeNames = [...]string{arena_c.RangeTables: "tables", arena_c.RangeUsed: "used", arena_c.RangeFree: "free",
	arena_c.RangeTemp: "temp", arena_c.RangeEdge: "slack: edge", arena_c.RangeUnplanned: "slack: unplanned",
	arena_c.RangeGuard: "slack: guard"}

// Walk names every byte of the budget: ranges in order of address that cover it without gap or overlap,
// from the tables themselves. An error says which arena's control words contradict themselves. In checked
// builds it looks at what lies around everything that lives and where something died, too, and the error
// says what somebody wrote there: past the end, before the first, to what was closed. Put it between two
// steps of a tick to narrow down when something wrote over them.
//
// Workers must not allocate meanwhile. Cost: O(arenas * limits.scopes), and in checked builds a look at
// 32 bytes for each that was ever in use.
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
		return nil, fmt.Errorf("budget %q: the control words of %s contradict themselves: something wrote where it had no right to",
			b.plan.Name, name)
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
