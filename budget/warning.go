package budget

import "github.com/upfront-mem/upfront/scope"

// Warning is the event that a part of the plan was filled up to its share ([RegionPlan.Warn],
// [CHeapPlan.Warn]). It holds no memory of the arena.
type Warning struct {
	Arena  string         // as in reports: "level", "room 3", "c_heap"
	Key    string         // of the size in the plan: "regions[2].size"
	Used   uint64         // bytes
	Size   uint64         // bytes
	Share  Percent        // of the plan
	Labels [3]scope.Usage // the largest holders of the arena, the largest first
}
