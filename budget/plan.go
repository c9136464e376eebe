package budget

import "math"

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// Plan describes a budget: names and sizes, all in bytes. It is checked whole before anything is mapped. Every region,
// slot, frame buffer and scratch begins at a multiple of 64 KiB, on every target; a plan's sizes are rounded up to that
// when it is laid out.
type Plan struct {
	Name    string       // 1 to 31 bytes of a-z, 0-9, _ and -
	Size    uint64       // what all parts together have, tables not counted; 0: their sum. Needed when a region takes the Rest
	Base    uint64       // address of the budget's first byte, a multiple of 64 KiB; 0: wherever there is room
	Regions []RegionPlan // up to 64, bottom first: rewinding one rewinds those after it
	Frame   FramePlan
	Scratch ScratchPlan
	Limits  Limits
	Pages   Pages
	GoHeap  uint64 // the Go runtime's share beside the budget, at least 4 MiB; 0 leaves the collector alone

	OnError func(error) // called with errors that no call can return: those of finalizers whose contents a load replaced; may be nil
}

// RegionPlan is a named part of the budget. Name is as the plan's, unique, and neither "frame" nor "scratch"; Note is for
// people.
//
// The order of regions says what ends with what: a Load, Rewind or Release of one empties those after it in the plan, and
// of its own siblings none. So what lives longest comes first, and slots last:
//
//	plan          ended by a load of
//	systems       systems
//	net           systems, net
//	room, slots   systems, net, and the slot itself
//
// With net after room, the first match that is loaded would empty the inboxes of all: [Plan.Check] warns of that.
//
// Track is for regions from about 4 MiB up of which a tick writes a small part: a snapshot copies no more than that. A page's first
// write in a turn of the ring is a page fault then (a microsecond), and a snapshot makes a system call. It takes Linux 6.7, and no
// race, asan or checked build; else a line of Report.NotGranted says so, and snapshots compare pages.
type RegionPlan struct {
	Name  string
	Size  uint64 // of each slot, if there are Slots; Rest: what the other parts leave of Plan.Size, at least 64 KiB
	Slots int    // 0: the region is one; 1 to 4096: so many equal siblings, each with one owner
	State bool   // package save may hash, compare and write what lies here: a load begins with zeros, and plain data alone is let in
	Track bool   // the system tells package save which pages were written: see below
	Note  string

	Limits Limits // of the region, or of each slot, in place of the plan's; each is the plan's when it is 0
}

// Rest is the size of the one region that takes what the others, frame, scratch arenas and guards leave of Plan.Size ("rest" in
// JSON). A region with slots can't.
const Rest uint64 = math.MaxUint64

// FramePlan gives 1 to 8 buffers that take turns, each of Size bytes; 0 buffers are no frame. What is made in a frame lives until
// the end of the next one with 2 buffers, of the one after that with 3. One buffer takes half of the memory of two, and is
// rewound by each NextFrame: nothing outlives its own frame, so what a worker or the GPU still reads then wants 2.
type FramePlan struct {
	Buffers int
	Size    uint64
}

// ScratchPlan gives each of 1 to 256 workers 1 to 8 scratch arenas, each of Size bytes; 0 workers are
// no scratch arenas. Each is 2 when it is 0: a function whose result lives on its caller's scratch has
// another for what it needs itself ([scope.Scratches.Pick]). Where goroutines lease scratch, Workers is
// how many leases there may be at once.
type ScratchPlan struct {
	Workers int
	Each    int // how many scratch arenas a worker has
	Size    uint64
}

// Limits is how many of each an arena may have open at once, 1 to 65535; 0 means 64 scopes (a load's own is one of them,
// and the frame's), 64 pools, 256 owned values and 32 labels. Each arena (region, slot, buffer of the frame, scratch) pays
// for them: of the budget's tables, 128 bytes a scope and 64 a pool (12 KiB an arena by default); of the Go heap about 160 a
// scope, 60 an owned value and 300 a label (35 KiB an arena by default). A region with many small slots has limits of its
// own ([RegionPlan]): with 4 of each a slot costs 0.8 KiB of tables and 3 KiB of the Go heap.
type Limits struct {
	Scopes int `json:"scopes"`
	Pools  int `json:"pools"`
	Owned  int `json:"owned"`
	Labels int `json:"labels"`
}

// Pages is what the plan demands of the pages that it lies on.
//
// What is resident is arenas and tables, in whole pages. Edges, up to which an arena's size is rounded, guards, and what of
// Plan.Size isn't planned are addresses alone; where Huge is asked for they may be part of a huge page.
//
// Prefault is a trade. With it the whole worst case is resident from Open on, whatever is used of it: a plan of 64 MiB
// costs 64 MiB where a run uses 20, which may be twice what the same program takes of a garbage-collected heap. For that no
// page fault (0.1 to 1 µs each, more under load) falls into play, and a machine without the memory says so at Open and
// not in the middle. Off, pages become resident when they are first touched, and stay so until Close: rewinding gives none
// back. Then Open may succeed and a touch be the end of the process (the OOM killer's). Servers and consoles
// want it, tools don't. [Plan.Cost] says what it costs, and Report.Resident what it did.
type Pages struct {
	Prefault Demand // every page of arenas and tables is present when Open returns; default: wished
	Lock     Demand // and kept present, out of the swap's reach; default: off
	Huge     Demand // huge pages; default: off
	Guards   Demand // 64 KiB without access behind each arena; default: off. They are part of the layout whether granted or not
	Base     Demand // that the budget begins at Plan.Base; default: wished, off without a Base
}

const (
	planEdge       = 64 * KiB
	planSizeMax    = 1 << 38 // 256 GiB: half of what a 39-bit address space has
	planBaseEnd    = 1 << 47 // the widest address space of a program
	planNameMax    = 31
	planRegionsMax = 64
	planSlotsMax   = 4096
	planArenasMax  = 1<<16 - 1 // arenas of all kinds: the map counts them in 16 bits
	planBuffersMin = 1
	planBuffersMax = 8
	planWorkersMax = 256
	planEachUsual  = 2
	planEachMax    = 8
	planLimitMax   = 1<<16 - 1
	planHeapMin    = 4 * MiB
	planHeapMax    = 1 << 46 // together with a budget it fits the int64 of the runtime's memory limit
)

// Demand is what a plan says of something that the system may refuse, in the word of its JSON.
type Demand string

const (
	Default  Demand = ""         // what is written beside it
	Off      Demand = "off"      // isn't asked for
	Wished   Demand = "wished"   // reported where it wasn't granted
	Required Demand = "required" // else Open fails and says what to do
)

// asks says whether the system is asked.
func (d Demand) asks() bool { return d == Wished || d == Required }

// keyed is what has a key in the plan's JSON.
type keyed[V any] struct {
	key   string
	value V
}

func (p *Pages) byKey() []keyed[*Demand] {
	return []keyed[*Demand]{{"prefault", &p.Prefault}, {"lock", &p.Lock}, {"huge", &p.Huge}, {"guards", &p.Guards},
		{"base", &p.Base}}
}

func (l *Limits) byKey() []keyed[*int] {
	return []keyed[*int]{{"scopes", &l.Scopes}, {"pools", &l.Pools}, {"owned", &l.Owned}, {"labels", &l.Labels}}
}
