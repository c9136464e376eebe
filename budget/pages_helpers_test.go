package budget_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
)

// paged is a plan that no other test has, with room for a huge page. Its tables are those of the other plans of this
// shape only: a range of an earlier budget that fits comes from one of them.
func paged(shape int) budget.Plan {
	return budget.Plan{
		Name:    "paged",
		Regions: []budget.RegionPlan{{Name: "init", Size: 64 * budget.KiB}, {Name: "level", Size: 5 * budget.MiB}},
		Limits:  budget.Limits{Scopes: 2000 + 600*(shape%100), Pools: 7 + 60_000*(shape/100), Owned: 16},
		Pages:   budget.Pages{Prefault: budget.Off},
	}
}

// shapes and bases are used up: the process keeps the addresses of each, and a test may run more than once.
var shapes, bases int

func freshShape() int { shapes++; return shapes }

// freshBase is an address where nothing was, 0 where budgets can't choose theirs.
func freshBase() uint64 {
	if platform.SafeBase() == 0 {
		return 0
	}
	bases++
	return uint64(platform.SafeBase()) + uint64(bases)<<28
}

// demanding is the plan with one demand, by the key of the JSON.
func demanding(plan budget.Plan, key string, demand budget.Demand) budget.Plan {
	*map[string]*budget.Demand{"prefault": &plan.Pages.Prefault, "lock": &plan.Pages.Lock, "huge": &plan.Pages.Huge,
		"guards": &plan.Pages.Guards, "base": &plan.Pages.Base}[key] = demand
	if key == "base" {
		if plan.Base == 0 {
			plan.Base = freshBase()
		}
		if plan.Base == 0 {
			plan.Base = 1 << 30
		}
	}
	return plan
}

// ungranted says why this system can't grant a demand; empty where it can.
func ungranted(t *testing.T, key string) string {
	r, err := platform.Reserve(8*budget.MiB, 64*budget.KiB, platform.Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	defer func() { require.NoError(t, r.Release()) }()
	switch key {
	case "lock":
		err = r.Lock()
	case "huge":
		if err = r.HugePages(); err == nil && !isHuge(t, uint64(uintptr(r.Base()))) {
			return "an emulator that does not pass the wish on"
		}
	case "guards":
		if platform.GoBacked {
			return "the pages of a race build are Go's"
		}
	case "base":
		if platform.SafeBase() == 0 {
			return "no base is safe"
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// mapping is the entry of /proc/self/maps, or of smaps, that has the address.
func mapping(t *testing.T, file string, address uint64) string {
	text, err := os.ReadFile("/proc/self/" + file)
	require.NoError(t, err)
	found := ""
	for line := range strings.Lines(string(text)) {
		var first, end uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &first, &end); n == 2 {
			if found != "" {
				break
			}
			if first > address || address >= end {
				continue
			}
			found = line
		} else if found != "" {
			found += line
		}
	}
	return found
}

func locked(t *testing.T) (kib uint64) {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "\nVmLck:")
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib
}

// isHuge says whether the system has the wish for huge pages at an address.
func isHuge(t *testing.T, address uint64) bool {
	_, flags, _ := strings.Cut(mapping(t, "smaps", address), "VmFlags:")
	return strings.Contains(flags, " hg ")
}

// effective says whether the budget has what the key stands for.
func effective(t *testing.T, b *budget.Budget, key string) bool {
	base := uint64(addressOf(&b.Base().Bytes()[0]))
	switch key {
	case "prefault":
		missing, ok := b.Missing()
		return b.Report().Prefaulted && (!ok || missing == 0)
	case "lock":
		return locked(t) >= b.Size()/budget.KiB
	case "huge":
		return isHuge(t, base)
	case "guards":
		guards, kept := guardsOf(t, b), 0
		for _, g := range guards {
			if strings.Contains(mapping(t, "maps", base+g.Offset), " ---p ") {
				kept++
			}
		}
		return len(guards) > 0 && kept == len(guards)
	}
	return base == b.Plan().Base
}

var pageKeys = []struct {
	key, request string
	n            int // which of these requests the demand makes first
}{{"prefault", "populate", 1}, {"lock", "lock", 1}, {"huge", "advise", 1}, {"guards", "protect", 3}, {"base", "map", 1}}
