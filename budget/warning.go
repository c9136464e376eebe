package budget

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Warning is the event that a part of the plan was filled up to its share ([RegionPlan.Warn],
// [CHeapPlan.Warn]). It holds no memory of the arena, so it may be kept.
//
// The use of a region counts its temporaries ([scope.Scope.Temp]), and the values of a
// [scope.Builder] once it is done. A region or slot warns when its use reaches the share, and again
// only after its use has fallen below the share by a tenth: with 80 %, below 72 %.
//
// Allocations don't look at the share. The region's use is compared before a scope of the region
// opens or closes, before temporaries open, when a constructor has failed, and when a load ends.
// Between these moments a region only grows, so no crossing is missed, and Used may be more than
// the share. A Report compares too, and leaves the call of OnWarn to the next of these moments. A
// scope that C opens and closes in between counts if the region was never so full since it was
// emptied; Used is then the highest use, and Labels are those of the comparison.
//
// C's heap is compared in NextFrame, also of a plan without a frame, and when a load ends. A use
// that rose and fell in between counts if it is the highest since Open, and may then include up to
// 1 MiB of freed blocks. Its Size is without the reserve, and it has no Labels.
type Warning struct {
	Arena string // as in reports: "level", "room 3", "c_heap"
	Key   string // of the size in the plan: "regions[2].size"
	Used  uint64 // bytes
	Size  uint64 // bytes
	Share Percent
	// Labels are the three largest holders of the arena, the largest first: labels, open scopes
	// without the bytes of their labels, and temporaries. Peak and Allocated aren't set.
	Labels [3]scope.Usage
}

// String returns the warning as one line of text, like that of a [scope.FullError].
func (w Warning) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s holds %d of %d bytes, and warns at %d%%", w.Arena, w.Used, w.Size, w.Share)
	between := "; held by "
	for _, u := range w.Labels {
		if u.Bytes != 0 {
			fmt.Fprintf(&b, "%s%q (%d bytes)", between, u.Name, u.Bytes)
			between = ", "
		}
	}
	fmt.Fprintf(&b, "; its size is %s in the plan", w.Key)
	return b.String()
}

// watchUse lets regions warn that have a share for it.
func (b *Budget) watchUse() {
	for _, r := range b.regions {
		if share := b.plan.Regions[r.level].Warn; share != 0 {
			r.stack.WarnAt(int(share), b.crossed)
		}
	}
}

// crossed warns of a region. The goroutine that uses the region calls it.
func (b *Budget) crossed(st *scope.Stack, c scope.Crossing) {
	b.warn(Warning{Arena: arenaName(st), Key: st.Key, Used: c.Used, Size: c.Size, Share: Percent(c.Share), Labels: c.Top})
}

// warn passes a warning to Plan.OnWarn. Callers hold no lock: OnWarn may take its time, or panic.
func (b *Budget) warn(w Warning) {
	if b.plan.OnWarn != nil {
		b.plan.OnWarn(w)
	}
}
