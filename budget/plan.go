package budget

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// Plan describes a budget: its parts and their sizes in bytes. Open checks the whole plan before it
// maps memory. Only Name is required: a plan may have just a CHeap or a GoHeap, and its budget then
// has tables only. Every region, slot, frame buffer and scratch arena starts at a multiple of 64
// KiB on every target. The padding before the next one isn't part of its size.
type Plan struct {
	Name string // 1 to 31 bytes of a-z, 0-9, _ and -
	// Size is the bytes of all parts together, without tables; 0 is the sum of the parts. A region
	// with the [Rest] needs a Size.
	Size uint64
	// Base is the address of the first byte, a multiple of 64 KiB; 0: anywhere.
	Base    uint64
	Regions []RegionPlan // up to 64, each after the region that it stands on
	Frame   FramePlan
	Scratch ScratchPlan
	Limits  Limits
	Pages   Pages
	// GoHeap is the limit of the Go heap, in bytes apart from the budget. The limit is soft: the
	// collector runs to keep it, but can't free live objects, so a program that keeps more alive
	// exceeds it. Open sets GoHeap, at least 4 MiB, as the runtime's memory limit, and turns GOGC
	// off. In checked and race builds Open adds the memory that only these builds take. 0 leaves
	// the collector as it is. Open fails if GoHeap is less than the arenas' tables take, or if
	// another open budget has a GoHeap. If a lower limit is in force (GOMEMLIMIT), it stays, and
	// Report.GoHeap says so. Close restores both settings.
	//
	// With [Rest], Open computes GoHeap from the limits of the process ([platform.Limits]). From
	// the bytes that each limit leaves, Open subtracts the budget, C's heap, and a reserve of 16
	// MiB for the rest of the process; the smallest result is GoHeap. For RLIMIT_DATA and RLIMIT_AS
	// Open also subtracts the stacks of the threads that the runtime may still make; for other
	// limits, page tables. A cgroup's memory.high counts as a limit, and so does the machine's free
	// memory. Open fails if the result is less than 4 MiB. [Budget.Plan] has the result as of Open,
	// and Report.GoHeap names the limit behind it.
	//
	// On Linux the Rest follows the limits of cgroups from Open to Close ([platform.WatchLimits]).
	// When a limit of the process's group, or of a group above, is changed in place, the budget
	// computes GoHeap again, mostly within milliseconds, and sets the runtime's memory limit. It
	// then subtracts the memory [Outside] as it is measured at that time. Growth of that memory
	// alone never moves the limit. In race builds Outside isn't known, and only the use of the
	// limit counts: the race detector's shadow memory isn't subtracted as it grows. While the
	// process lacks file descriptors, its use can't be read. The budget then follows bounds, and
	// other memory counts as last measured. It computes GoHeap again once the use can be read.
	//
	// If the Go heap has more than its new limit, the budget collects garbage and returns free
	// memory to the system. The limit never falls below the live heap with a margin of a quarter,
	// at least 4 MiB, because the collector would run all the time. A limit that the program has
	// set since by debug.SetMemoryLimit stays. A GoHeap of a number stays too; only warnings and
	// the report follow the limits. Report.GoHeap.Moves names each change. If the process can't see
	// the limits of its cgroup, Report.NotGranted says so.
	//
	// If a limit falls below the bytes that the process holds, nothing is taken from regions and
	// C's heap: OnWarn gets a [Warning]. In version 2 of cgroups the kernel may end a process of
	// the group before the write of such a memory.max returns. So lower memory.high first, which
	// the Go heap follows, and memory.max once the memory has gone back. Version 1 refuses such a
	// limit. A process that moves to another group isn't followed.
	GoHeap uint64
	// GoHeapMax is the most that a GoHeap with the Rest may be, also when limits move; 0 is no
	// bound. Where only the machine's memory is a limit, the rest may be so large that the
	// collector doesn't run for long. Without a GoHeapMax, Report.NotGranted has a line then.
	GoHeapMax uint64
	// CHeap is the memory of C's malloc, apart from the budget. It needs Linux, and an import of
	// package arena/with/malloc.
	CHeap CHeapPlan
	// Quotas are bytes that are counted and not held ([Quota]), up to 64. In JSON they are an
	// object with a size or the keys of [QuotaPlan] for each name.
	Quotas []QuotaPlan
	// Expected is the use over time that the author of the plan expects, for pictures and `upfront
	// check`. It has no effect on the layout.
	Expected []Expected

	// OnError gets the errors that no call can return, such as the errors of finalizers that run
	// because a load replaces old contents. OnError may be nil.
	OnError func(error)
	// OnWarn gets a [Warning], for example to log it, to evict values, or to stop admitting
	// players. It gets one for all crossings that are noticed before it is called. A part that
	// fills between two comparisons is full before OnWarn is called. OnWarn may be nil; reports
	// count crossings all the same.
	//
	// The goroutine that uses the part calls OnWarn, inside the call that noticed the crossing: an
	// Open, Temp or Close of a scope, a Do, a constructor that fails, a Load, Rewind or Release.
	// Owners of slots may call OnWarn at the same time. For C's heap, and for heaps in a region, a
	// goroutine of the library calls OnWarn, mostly within 100 ms of the crossing, while the owners
	// go on. Another goroutine of the library calls OnWarn for limits of the process.
	//
	// OnWarn must not use the part's memory: it can't allocate, open a scope or load there. It may
	// call [Budget.Published]. If OnWarn panics, the call that noticed the crossing panics, and a
	// Load into the part is undone. On the library's goroutine the panic ends the process.
	OnWarn func(Warning)
}

// RegionPlan is a named part of the budget. Name follows the rules of the plan's name, is unique,
// and isn't "frame", "scratch" or "c_heap". Note is for people.
//
// A region stands on the region before it in the plan, or on the one that On names. A Load, Rewind
// or Release of a region empties the regions that stand on it, directly or not, top first, and no
// others. The slots of a region don't stand on each other. So regions form a tree:
//
//	plan                   ended by a load of
//	systems                systems
//	map                    systems, map
//	styles, On "systems"   systems, styles
//	room, slots            systems, styles, and the slot itself
//
// Here map and styles are siblings: each is loaded while the other stays, also at the same time by
// another goroutine. Memory is one line of ranges in the order of the plan; On doesn't move it.
//
// On can't name a region with slots. A region without On after one with slots stands on all of
// them, so a load of any slot empties it; [Plan.Check] warns of that.
//
// Track makes a snapshot of package save copy only the pages that were written. It suits regions of
// about 4 MiB or more, if a tick writes a small part of the region. In return, each snapshot makes
// a system call, and once in each turn of the ring of snapshots the first write to a page is a page
// fault (about 1 µs). Track needs userfaultfd, Linux 6.7 on amd64 or 6.10 on arm64, a build without
// race, asan or checked, and a budget that isn't of [OpenIn]. Elsewhere Report.NotGranted has a
// line, and snapshots compare pages.
type RegionPlan struct {
	Name string
	// Size is the bytes of the region or of each slot. With Rest, the region takes the bytes that
	// other parts leave of Plan.Size, at least 64 KiB.
	Size  uint64
	Slots int // 0: no slots; 1 to 4096: equal siblings, each with one owner
	// On is the name of the region on which this one stands. It names the region before, or one
	// that the region before stands on, directly or not, so that the regions that stand on a region
	// follow it. "" is the region before; Root is none.
	On string
	// State lets package save hash, compare and write the region. Each load then begins with zeros,
	// and the region holds only pointer-free data.
	State bool
	Track bool // the system reports written pages to package save
	// Trim says when free pages are returned to the system without a call of [Region.Trim]; "" is
	// never. A plan with Trim that also requires pages.prefault or pages.lock is invalid, because
	// every page then stays. If the pages stay for another reason, Report.NotGranted has a line.
	Trim TrimWhen
	// Warn is the share of the region, or of each slot, at which the budget makes a [Warning]; 0 is
	// none. Each slot warns for itself. The frame and scratch have no warnings.
	Warn Percent
	// Waiters is the most goroutines that wait for a slot at once ([Slots.AcquireWait]), up to
	// 65535.
	Waiters int
	Note    string

	// Limits are those of the region or of each slot. A 0 in Limits is the plan's limit, or the
	// default of slots if that is 0 as well.
	Limits Limits
}

// Root is the On of a region that stands on no other ("/" in JSON), as the first region does.
const Root = "/"

// Rest is a size: all bytes of Plan.Size that the other parts and guards leave ("rest" in JSON).
// One region, without slots, may have this size. As Plan.GoHeap, Rest is the bytes that the limits
// of the process leave at Open.
const Rest uint64 = math.MaxUint64

// TrimWhen is the moment at which a region's free pages are returned to the system.
type TrimWhen string

// TrimEmpty is the moment when a Rewind, Release or Load empties a loaded region.
const TrimEmpty TrimWhen = "empty"

// Percent is a share of a size, 1 to 99; 0 is none. In JSON it is "80%".
type Percent int

// CHeapPlan is the memory of C's malloc: one heap for the whole process. The heap has addresses of
// its own and stays until the process ends. In JSON a CHeapPlan is a size, or an object with these
// keys.
type CHeapPlan struct {
	Size uint64 // bytes; 0: none
	// Reserve is the part of Size for clean-up (malloc.CleanUp) after the rest of the heap was
	// full. It is at most half of Size.
	Reserve uint64
	// Runtime is the part of Size for requests whose refusal would end the process. Go's runtime
	// makes such requests for a new thread, setenv and C.CString; ld.so makes them for thread-local
	// data. They use this part when the rest of the heap is full. The default is 64 KiB, enough for
	// about 200 threads with glibc.
	Runtime uint64
	// Fronts is the number of lists of freed blocks in front of the heap, each with its own lock: 1
	// to 64. The default is 4 on any number of processors.
	Fronts int
	// Trim is the time after which memory that stayed free is returned to the system ("1s" in
	// JSON). It is at least 10 ms; with 0 only a call of Trim returns memory.
	Trim time.Duration
	Warn Percent // of Size without Reserve, Runtime and samples, for a [Warning]; 0: none
	// Profile is the average distance of the samples of malloc.WriteProfile, in bytes of
	// allocations, of C's malloc and of each arena.Shared. It is 16 KiB or more. The default,
	// 512 KiB, costs no measurable time in malloc. The samples take a part of Size: 640 bytes x 4 x
	// Size / Profile, 0.5 % by default. NoProfile ("off" in JSON) takes none.
	Profile uint64
}

// NoProfile is a [CHeapPlan.Profile] without samples ("off" in JSON).
const NoProfile uint64 = math.MaxUint64

// process returns the plan without the demands of pages.
func (c CHeapPlan) process() arena_c.ProcessPlan {
	p := arena_c.ProcessPlan{Size: c.Size, Reserve: c.Reserve, Runtime: c.Runtime, Fronts: c.Fronts, Trim: c.Trim}
	if c.Profile != NoProfile {
		p.Profile = cmp.Or(c.Profile, planProfileUsual)
	}
	return p
}

// runtime returns the part for Go's runtime.
func (c CHeapPlan) runtime() uint64 { return cmp.Or(c.Runtime, planRuntimeUsual) }

// room returns the part for all C code.
func (c CHeapPlan) room() uint64 { return c.Size - c.Reserve - c.runtime() - c.process().Samples() }

// QuotaPlan is a limit of bytes that are counted and not held ([Quota]). Name follows the rules of
// a region's name, and is the name of no other part. In JSON a QuotaPlan is a size, or an object
// with these keys:
//
//	"quotas": {"upload": "32MiB",
//	 "query": {"size": "256MiB", "tenants": 64, "tenant": "64MiB", "waiters": 500,
//	  "piece": "64KiB", "warn": "90%", "enforce": false}}
type QuotaPlan struct {
	Name string
	Size uint64 // the most bytes of all reservations together
	// In is the part of the plan that has the memory: "go_heap", "c_heap" or a region. Its size
	// includes the quota then. "" is memory of the process that no other part has: the quota adds
	// to [Plan.Cost], and a GoHeap of the [Rest] leaves it free. "device" is memory that isn't the
	// process's, such as a GPU's.
	In      string
	Tenants int    // the most tenants at once, up to 65535; 0: the quota has one level
	Tenant  uint64 // the limit of each tenant; 0 is Size
	// Waiters is the most reservations that wait at once, more than Tenants. The default is 128,
	// and one for each tenant. A waiter takes 300 bytes of the Go heap.
	Waiters int
	// Piece is the unit in which a reservation takes bytes, a power of two that divides Size and
	// Tenant. Within a piece [Reservation.Grow] and Shrink take no lock. 0 counts each byte.
	Piece uint64
	// Observe makes the quota grant each reservation at once, and count those that it would have
	// refused or delayed ("enforce": false in JSON).
	Observe bool
	Warn    Percent // of Size, for a [Warning]; 0: none
}

func (q QuotaPlan) waiters() int { return cmp.Or(q.Waiters, quotaWaiters+q.Tenants) }

// tenant returns the limit of a tenant.
func (q QuotaPlan) tenant() uint64 { return cmp.Or(q.Tenant, q.Size) }

// FramePlan sets the buffers of the frame: 1 to 8 of Size bytes each, which take turns. With 0
// buffers the budget has no frame. With 1 buffer an object in the frame's scope lives until the end
// of its own frame, with 2 until the end of the next frame, with 3 until the end of the frame after
// that. If a worker or the GPU reads a frame after its end, use 2.
type FramePlan struct {
	Buffers int
	Size    uint64
}

// ScratchPlan sets 1 to 256 workers, and for each worker 1 to 8 scratch arenas of Size bytes. With
// 0 workers the budget has no scratch. Each defaults to 2: a function whose result is in its
// caller's arena uses the other arena for its own work ([scope.Scratches.Pick]). Workers is also
// the most leases at once; a worker taken by number isn't lent.
type ScratchPlan struct {
	Workers int
	Each    int // scratch arenas of a worker
	Size    uint64
}

// Limits sets how many scopes, pools, owned values and labels an arena may have open at once: 1 to
// 65535 of each. A 0 is the default: 64 scopes, including the scope of a load or of the frame, 64
// pools, 256 owned values and 32 labels. A slot has 16 scopes, 16 pools, 32 owned values and 8
// labels by default. A limit of the plan replaces both defaults.
//
// Limits take memory for each arena (region, slot, frame buffer, scratch arena). In the budget's
// tables an arena takes 0.6 KiB, plus 128 bytes for each scope and 64 for each pool: 12.6 KiB by
// default, and 3.6 KiB for a slot. On the Go heap an arena takes about 2 KiB, plus 230 bytes for
// each scope, 64 for each owned value and 400 for each label: 45 KiB by default, and 11 KiB for a
// slot. Set lower limits for a region with many small slots ([RegionPlan]): with 4 of each, a slot
// takes 1.3 KiB of tables and 4.8 KiB of the Go heap.
type Limits struct {
	Scopes int `json:"scopes"`
	Pools  int `json:"pools"`
	Owned  int `json:"owned"`
	Labels int `json:"labels"`
}

// Pages sets the plan's demands on the pages of its memory.
//
// Arenas and tables may become resident, in whole pages. Guards, unplanned space, and the padding
// to the next 64 KiB after an arena take only addresses. With Huge they may share a huge page with
// an arena, and so be resident.
//
// Prefault is a trade. With Prefault the whole plan is resident from Open on: a plan of 64 MiB
// takes 64 MiB even if a run uses 20, perhaps twice as much as the same program with a
// garbage-collected heap. In return a frame has no page faults in the budget (0.1 to 1 µs each,
// more under load) until a Trim. On a machine with too little memory Open fails if Prefault is
// required.
//
// Without Prefault a page becomes resident at its first use, and isn't returned before Close or a
// trim. A rewind returns no pages to the system, unless the plan has trim; [Budget.Trim] does. On a
// machine with too little memory Open may then succeed, and the OOM killer may end the process at a
// later write. Servers and consoles want Prefault, tools don't. [Plan.Cost] returns the cost in
// advance; Report.Resident is the resident bytes when last measured. Prefault and Lock include the
// memory of C's malloc (Plan.CHeap).
type Pages struct {
	// Prefault makes every page of arenas and tables present before Open returns; default: wished.
	Prefault Demand
	Lock     Demand // pages stay present and are never swapped out; default: off
	Huge     Demand // huge pages; default: off, also where the system gives them to all
	// Guards put 64 KiB without access after the tables and after each arena; default: off. The
	// layout has this space even if the system refuses the guards.
	Guards Demand
	// Base begins the budget at Plan.Base; default: wished, or off without a Base.
	Base Demand
}

const (
	planEdge       = 64 * KiB
	planSizeMax    = 1 << 38 // 256 GiB: half of a 39-bit address space
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
	planCHeapMin   = 64 * KiB
	planCHeapMax   = planSizeMax - GiB // a heap's offsets are less than planSizeMax
	planRuntimeMin = 4 * KiB

	planRuntimeUsual = 64 * KiB
	planFrontsMax    = 64
	planTrimMin      = 10 * time.Millisecond
	planProfileUsual = 512 * KiB
	planProfileMin   = 16 * KiB
	planExpectMax    = 512
	planQuotasMax    = 64
	planHeapMax      = 1 << 46 // with a budget it fits the int64 of the runtime's memory limit
)

// Demand is a plan's demand that the system may refuse, spelled as in its JSON.
type Demand string

const (
	Default  Demand = ""         // the field's own default
	Off      Demand = "off"      // not requested
	Wished   Demand = "wished"   // best effort: a refusal is a line of the report
	Required Demand = "required" // a refusal fails Open
)

// asks reports whether the budget asks the system.
func (d Demand) asks() bool { return d == Wished || d == Required }

// keyed is a value with a key in the plan's JSON.
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

// below returns the index of the region that regions[i] stands on, or -1.
func (p Plan) below(i int) int {
	if on := p.Regions[i].On; on != "" { // no region has the name Root
		return slices.IndexFunc(p.Regions[:i], func(r RegionPlan) bool { return r.Name == on })
	}
	return i - 1
}

// onText returns the name of the region that regions[i] stands on, or Root.
func (p Plan) onText(i int) string {
	if on := p.below(i); on >= 0 {
		return p.Regions[on].Name
	}
	return Root
}

// standsOn reports whether regions[i] is regions[on], or stands on it, directly or not. All stand
// on -1.
func (p Plan) standsOn(i, on int) bool {
	for ; i > on; i = p.below(i) {
	}
	return i == on
}

// end returns the index after the last region that stands on regions[i].
func (p Plan) end(i int) int {
	end := i + 1
	for end < len(p.Regions) && p.standsOn(end, i) {
		end++
	}
	return end
}
