package record

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// missing returns the error for an arena that isn't in the plan: a FullError if the plan has too
// few buffers, workers, scratch arenas or slots.
func missing(plan budget.Plan, arena string) error {
	full := &scope.FullError{Budget: plan.Name, Asked: 1}
	full.Arena, _, _ = strings.Cut(arena, " ")
	var number, which int
	lacks := func(what, key string, have, index int) error {
		full.What, full.Key, full.Size, full.Need = what, key, uint64(have), uint64(index)+1
		return full
	}
	if n, _ := fmt.Sscanf(arena, "frame %d", &number); n == 1 && number >= plan.Frame.Buffers {
		return lacks("buffers", "frame.buffers", plan.Frame.Buffers, number)
	}
	if n, _ := fmt.Sscanf(arena, "scratch %d.%d", &number, &which); n == 2 && number >= plan.Scratch.Workers {
		return lacks("workers", "scratch.workers", plan.Scratch.Workers, number)
	} else if n == 2 && which >= plan.Scratch.Each {
		return lacks("scratch arenas for each worker", "scratch.each", plan.Scratch.Each, which)
	}
	for i, r := range plan.Regions {
		if n, _ := fmt.Sscanf(arena, "region "+r.Name+" %d", &number); n == 1 && r.Slots > 0 && number >= r.Slots {
			return lacks("slots of this region", fmt.Sprintf("regions[%d].slots", i), r.Slots, number)
		}
	}
	kind, name, _ := strings.Cut(arena, " ")
	return fmt.Errorf("the plan has no %s %q; give a plan with the regions of the recording", kind, name)
}
