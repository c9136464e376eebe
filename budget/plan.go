package budget

import (
	"cmp"
	"math"
	"time"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// Plan describes a budget: its parts and their sizes in bytes. Open checks it whole before anything
// is mapped. Every region, slot, frame buffer and scratch arena starts at a multiple of 64 KiB, on
// every target; Open rounds sizes up to that.
type Plan struct {
	Name string // 1 to 31 bytes of a-z, 0-9, _ and -
	// Size is the bytes of all parts together, without tables; 0: their sum. A plan with a Rest
	// needs a Size.
	Size uint64
	// Base is the address of the first byte, a multiple of 64 KiB; 0: anywhere.
	Base    uint64
	Regions []RegionPlan // up to 64, bottom first: rewinding one rewinds those after it
	Frame   FramePlan
	Scratch ScratchPlan
	Limits  Limits
	Pages   Pages
	// GoHeap is the collector's limit, not a wall: the collector runs when the Go heap gets there,
	// and can't free live objects, so a program that keeps more alive exceeds the limit. Open sets
	// it as the runtime's memory limit, with GOGC off, in bytes apart from the budget, at least
	// 4 MiB. 0 leaves the collector as it is. A lower limit that is in force (GOMEMLIMIT) stays,
	// and Report.GoHeap says so. Close restores both settings.
	//
	// With [Rest], Open works out the number: the smallest of the bytes that the limits of the
	// process ([platform.Limits]) leave after the budget, C's heap, page tables, and 16 MiB in
	// reserve for the rest of the process. RLIMIT_DATA and RLIMIT_AS also count the stacks of the
	// threads that the runtime may still make. Without a limit of the process, the machine's free
	// memory decides. Open fails if fewer than 4 MiB, or than the arenas' tables take, are left.
	// [Budget.Plan] then has the number, and Report.GoHeap the limit that it came from.
	GoHeap uint64
	// CHeap is the memory of C's malloc, apart from the budget. It needs an import of package
	// arena/with/malloc.
	CHeap CHeapPlan
	// Expected is the use over time that the author of the plan expects, for pictures and `upfront
	// check`. It changes neither the layout nor a call.
	Expected []Expected

	// OnError gets the errors that no call can return, such as the errors of finalizers that run
	// because a load replaces their contents. It may be nil.
	OnError func(error)
	// OnWarn gets each [Warning], before the part is full: to log it, to evict, to admit no more.
	// The goroutine that uses the part calls it, in the call that found the crossing: an Open, Temp
	// or Close of a scope, a Do, a constructor that fails, a Load, Rewind or Release. Owners of
	// slots may call it at the same time. For C's heap, and for heaps in a region, a goroutine of
	// the library calls it within 100 ms of the crossing, while the owners go on. OnWarn must not
	// use the part's memory: no allocation in it, no scope, no load. It may call
	// [Budget.Published]. If it panics, the call that found the crossing panics, and a Load into
	// the part is undone; on the library's goroutine a panic ends the process. OnWarn may be nil:
	// reports count warnings all the same.
	OnWarn func(Warning)
}

// RegionPlan is a named part of the budget. Name follows the rules of the plan's name, is unique,
// and isn't "frame" or "scratch"; Note is for people.
//
// The order of regions sets which regions end together. A Load, Rewind or Release of a region
// empties the regions after it in the plan, but not its own siblings. So the region that lives
// longest comes first, and slots come last:
//
//	plan          ended by a load of
//	systems       systems
//	net           systems, net
//	room, slots   systems, net, and the slot itself
//
// With net after room, a load of any slot of room would also empty net; [Plan.Check] warns of that.
//
// Track suits regions from about 4 MiB up if a tick writes a small part: a snapshot then copies
// only the written pages. In return, each snapshot makes a system call, and once in each turn of
// the ring of snapshots the first write to a page is a page fault (about 1 µs). Track needs Linux
// 6.7 on amd64 or 6.10 on arm64, and a build without race, asan or checked. Elsewhere
// Report.NotGranted has a line, and snapshots compare pages.
type RegionPlan struct {
	Name string
	// Size is the bytes of the region or of each slot. With Rest, the region takes the bytes that
	// other parts leave of Plan.Size, at least 64 KiB.
	Size  uint64
	Slots int // 0: no slots; 1 to 4096: equal siblings, each with one owner
	// State lets package save hash, compare and write the region: a load then begins with zeros and
	// takes only plain data.
	State bool
	Track bool // the system reports written pages to package save
	// Trim says when free pages are returned to the system without a call of [Region.Trim]; "":
	// never. It is an error of the plan if pages.prefault or pages.lock is required, because every
	// page then stays. If another reason keeps the pages, Report.NotGranted has a line.
	Trim TrimWhen
	// Warn is the share of the region or of each slot that makes a [Warning]; 0: none. Each slot
	// warns for itself. The frame and scratch have no warnings.
	Warn Percent
	Note string

	// Limits of the region or of each slot; 0 is the plan's limit.
	Limits Limits
}

// Rest is the size of the one region that takes all bytes of Plan.Size that other parts and guards
// leave ("rest" in JSON). A region with slots can't take it. As Plan.GoHeap, Rest is the bytes that
// the limits of the process leave at Open.
const Rest uint64 = math.MaxUint64

// TrimWhen is the moment at which a region's free pages are returned to the system.
type TrimWhen string

// The moments.
const (
	TrimNever TrimWhen = ""      // only in a call of Trim
	TrimEmpty TrimWhen = "empty" // when a Rewind, Release or Load empties a loaded region
)

// Percent is a share of a size, 1 to 99; 0 is none. In JSON it is "80%".
type Percent int

// CHeapPlan is the memory of C's malloc: one heap for the whole process, with addresses of its own,
// which stays until the process ends. In JSON it is a size, or an object with these keys.
type CHeapPlan struct {
	Size uint64 // bytes; 0: none
	// Reserve is the part of Size for clean-up after the rest was full (malloc.CleanUp).
	Reserve uint64
	// Runtime is the part of Size for requests whose refusal would end the process: Go's runtime
	// makes them for a new thread, setenv and C.CString, and ld.so for thread-local data. They get
	// it when the rest of the heap is full. The default is 64 KiB, about 200 threads with glibc.
	Runtime uint64
	// Fronts is the number of lists of freed blocks, each with its own lock, in front of the heap:
	// 1 to 64. The default is 4. It never depends on the number of processors.
	Fronts int
	// Trim is the time after which memory that stayed free is returned to the system; 0: never
	// ("1s" in JSON). It is at least 10 ms.
	Trim time.Duration
	Warn Percent // of Size without Reserve and Runtime, for a [Warning]; 0: none
}

// runtime returns the part for Go's runtime.
func (c CHeapPlan) runtime() uint64 { return cmp.Or(c.Runtime, planRuntimeUsual) }

// room returns the part for all C code.
func (c CHeapPlan) room() uint64 { return c.Size - c.Reserve - c.runtime() }

// FramePlan sets 1 to 8 buffers of Size bytes each that take turns; 0 buffers make no frame. With 2
// buffers an object of a frame lives until the end of the next frame, with 3 until the end of the
// one after. One buffer takes half the memory of two, and each NextFrame rewinds it: an object
// lives in its own frame only. If a worker or the GPU reads a frame after its end, use 2.
type FramePlan struct {
	Buffers int
	Size    uint64
}

// ScratchPlan sets 1 to 256 workers and for each 1 to 8 scratch arenas of Size bytes; 0 workers
// make no scratch. Each defaults to 2: a function with a result on its caller's scratch uses the
// other for its own work ([scope.Scratches.Pick]). Workers is also the number of leases at once.
type ScratchPlan struct {
	Workers int
	Each    int // scratch arenas of a worker
	Size    uint64
}

// Limits sets how many of each an arena may have open at once, 1 to 65535. The defaults, for 0, are
// 64 scopes (a load's and the frame's own scope count), 64 pools, 256 owned values and 32 labels.
//
// Each arena (region, slot, frame buffer, scratch) pays for its limits. In the budget's tables an
// arena takes 0.6 KiB, a scope 128 bytes and a pool 64: 12.6 KiB by default. On the Go heap an
// arena takes about 2 KiB, a scope 230 bytes, an owned value 64 and a label 400: 45 KiB by default.
// Set lower limits for a region with many small slots ([RegionPlan]): with 4 of each, a slot takes
// 1.3 KiB of tables and 4.8 KiB of the Go heap.
type Limits struct {
	Scopes int `json:"scopes"`
	Pools  int `json:"pools"`
	Owned  int `json:"owned"`
	Labels int `json:"labels"`
}

// Pages sets the plan's demands on the pages of its memory.
//
// Arenas and tables are resident, in whole pages. Guards, unplanned space, and the padding to the
// next 64 KiB after an arena are only addresses; with Huge they may share a huge page with an
// arena.
//
// Prefault is a trade. With it the whole worst case is resident from Open on: a plan of 64 MiB
// takes 64 MiB even if a run uses 20, perhaps twice as much as the same program takes of a
// garbage-collected heap. In return a frame has no page faults (0.1 to 1 µs each, more under load),
// and a machine without the memory fails at Open, not later. Without it a page becomes resident at
// its first use and stays so until Close; rewinding frees no pages, but [Budget.Trim] does. Open
// may then succeed, and a later write may end the process: the OOM killer. Servers and consoles
// want Prefault, tools don't. [Plan.Cost] returns the cost in advance; Report.Resident is the cost
// when it was last measured. Prefault and Lock include the memory of C's malloc (Plan.CHeap).
type Pages struct {
	// Prefault makes every page of arenas and tables present before Open returns; default: wished.
	Prefault Demand
	Lock     Demand // pages stay present and are never swapped out; default: off
	Huge     Demand // huge pages; default: off
	// Guards are 64 KiB without access after each arena, part of the layout even if not granted;
	// default: off.
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
	planExpectMax    = 512
	planHeapMax      = 1 << 46 // with a budget it fits the int64 of the runtime's memory limit
)

// Demand is a plan's demand that the system may refuse, spelled as in its JSON.
type Demand string

const (
	Default  Demand = ""         // the field's own default
	Off      Demand = "off"      // not requested
	Wished   Demand = "wished"   // best effort: a refusal is a line of the report
	Required Demand = "required" // requested; a refusal fails Open, with the remedy
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
