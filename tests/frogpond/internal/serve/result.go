package serve

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// Result is a server's report at its end. Times are in microseconds and sizes in bytes, unless
// noted. Go allocations, collections and page faults count from listening to the signal.
type Result struct {
	Address string  `json:"address"`
	Seconds float64 `json:"seconds"` // from listening to the signal
	Rooms   int     `json:"rooms"`
	Players int     `json:"players"` // of a room
	Workers int     `json:"workers"`

	Joined   uint64 `json:"joined"`
	Refused  uint64 `json:"refused"` // answers: a refused client asks again
	Returned uint64 `json:"returned"`
	TimedOut uint64 `json:"timed_out"`

	Ticks     uint64  `json:"ticks"`
	TickP50   uint64  `json:"tick_p50_us"`
	TickP99   uint64  `json:"tick_p99_us"`
	TickP999  uint64  `json:"tick_p999_us"`
	TickMax   uint64  `json:"tick_max_us"`
	CPUP50    uint64  `json:"tick_cpu_p50_us"` // CPU time of the thread
	CPUP99    uint64  `json:"tick_cpu_p99_us"`
	CPUMean   float64 `json:"tick_cpu_mean_us"`
	LateTicks uint64  `json:"late_ticks"` // not finished when the next tick was due
	Skipped   uint64  `json:"skipped_ticks"`
	Rollbacks uint64  `json:"rollbacks"`
	Again     uint64  `json:"resimulated_ticks"`
	Cut       uint64  `json:"views_cut"`     // a packet was too small for all changes
	Crowded   uint64  `json:"views_crowded"` // a view was too small for all objects in sight

	// Objects whose stack has a frame outside of the runtime.
	GoAllocs        uint64   `json:"go_allocs"`
	GoAllocsPage    uint64   `json:"go_allocs_page"`    // by pages, probes, Agones' client
	GoAllocsRuntime uint64   `json:"go_allocs_runtime"` // all others
	AllocatedBy     []string `json:"allocated_by,omitempty"`
	Collections     uint32   `json:"collections"`
	Pauses          uint64   `json:"pause_total_us"`
	BudgetFaults    *int     `json:"budget_faults"` // pages of the budget that aren't resident
	ResidentBefore  uint64   `json:"rss_listening"`
	ResidentAfter   uint64   `json:"rss_end"`
	ResidentPeak    *uint64  `json:"rss_peak"`
	BudgetBase      string   `json:"budget_base"` // its address
	BudgetBytes     uint64   `json:"budget_bytes"`
	GoShare         uint64   `json:"go_share_bytes"`

	PacketsIn      uint64            `json:"packets_in"`
	PacketsOut     uint64            `json:"packets_out"`
	BytesPerPlayer float64           `json:"bytes_out_per_player_s"` // during their play
	Dropped        map[string]uint64 `json:"dropped"`
	ReceiveBuffer  int               `json:"receive_buffer_bytes"`

	Faults     uint64   `json:"rooms_unwound"`
	Unloaded   uint64   `json:"maps_unloaded"`
	Lost       uint64   `json:"disk_errors"`
	Unrecorded uint64   `json:"records_cut"`
	Plans      int      `json:"plans"` // served
	Maps       []string `json:"maps"`  // by room, at the end
	TickCount  []uint32 `json:"room_ticks"`
	Hash       []string `json:"hash"` // of each room's state

	Report   budget.Report `json:"-"` // the last report
	Timeline timeline.Data `json:"-"`

	s         *Server
	wall, cpu histogram
	cpuTotal  uint64
	playing   uint64 // ticks of all players
	heap      heapWatch
}

// begin sets the result of a server that listens, once.
func (r *Result) begin() {
	s := r.s
	*r = Result{s: s, Address: s.socket.Addr().String(), Rooms: s.o.Rooms, Players: s.o.Players,
		Workers: min(s.o.Workers, s.o.Rooms), BudgetBase: fmt.Sprintf("%p", s.b.Base().Bytes()),
		BudgetBytes: s.b.Size(), GoShare: s.b.Plan().GoHeap,
		ReceiveBuffer: s.socket.Granted(), Dropped: map[string]uint64{}}
	r.wall.counts, r.cpu.counts = make([]uint32, histogramEnd), make([]uint32, histogramEnd)
}

// listen begins the count for a plan. From then to signal, ticks must not allocate.
func (r *Result) listen() {
	if r.Plans == 0 {
		r.begin()
	}
	r.Plans++
	fmt.Fprintf(r.s.o.Say, "frogpond: %d rooms of %d players on %s; receive buffer: %d bytes "+
		"requested, %d granted\n", r.Rooms, r.Players, r.Address, r.s.o.Buffer, r.ReceiveBuffer)
	r.count()
}

// count begins the count.
func (r *Result) count() {
	quiet()
	r.ResidentBefore = resident()
	r.Seconds -= r.s.now().Seconds()
	r.heap.begin()
}

func (r *Result) signal() {
	r.heap.end(r)
	r.Seconds += r.s.now().Seconds()
	r.ResidentAfter = resident()
	if missing, ok := r.s.b.Missing(); ok {
		if r.BudgetFaults != nil {
			missing = max(missing, *r.BudgetFaults)
		}
		r.BudgetFaults = &missing
	}
}

func (r *Result) add() {
	s := r.s
	for _, w := range s.workers {
		r.wall.merge(&w.wall)
		r.cpu.merge(&w.cpu)
		r.cpuTotal += w.cpuTotal
		r.Ticks += w.ticks
		r.LateTicks += w.lateTicks
		r.Skipped += w.skipped
		r.Rollbacks += w.rollbacks
		r.Again += w.again
		r.Cut += w.cut
		r.Crowded += w.crowded
		r.PacketsOut += w.sent
		r.BytesPerPlayer += float64(w.bytes)
		r.playing += w.played
		r.TimedOut += w.timedOut
		r.drop(wire.Late, w.late)
		r.drop(wire.Ahead, w.early)
		r.drop(wire.BadEpoch, w.foreign)
	}
	for reason := range s.receiver.dropped {
		r.drop(wire.Reason(reason), s.receiver.dropped[reason].Load())
	}
	r.Joined += s.receiver.joined.Load()
	r.Refused += s.receiver.refused.Load()
	r.Returned += s.receiver.returned.Load()
	r.PacketsIn += s.receiver.came
	r.Lost += s.keeper.lost.Load()
	r.Maps, r.TickCount, r.Hash = nil, nil, nil
	for _, room := range s.rooms {
		name, tick, hash := "", uint32(0), ""
		if p := room.play; p != nil {
			name, tick, hash = p.level.Name, p.tick, fmt.Sprintf("%016x", uint64(p.game.Hash()))
		}
		r.Maps, r.TickCount, r.Hash = append(r.Maps, name), append(r.TickCount, tick), append(r.Hash, hash)
	}
}

func (r *Result) drop(reason wire.Reason, n uint64) {
	if reason != 0 {
		r.Dropped[reason.String()] += n
	}
}

func (r *Result) finish(b *budget.Budget) {
	r.Report, r.Timeline = b.Report(), r.s.timeline.Read()
	r.TickP50, r.TickP99, r.TickP999 = r.wall.at(500), r.wall.at(990), r.wall.at(999)
	r.TickMax = uint64(r.wall.longest.Microseconds())
	r.CPUP50, r.CPUP99 = r.cpu.at(500), r.cpu.at(990)
	if r.Ticks > 0 {
		r.CPUMean = float64(r.cpuTotal) / 1000 / float64(r.Ticks)
	}
	if r.playing > 0 {
		r.BytesPerPlayer *= ticksPerSecond / float64(r.playing)
	}
	r.Dropped["kernel"] = r.s.dropped
	r.Dropped["unsent"] = r.s.socket.Unsent()
	r.Faults, r.Unloaded = r.s.faults.Load(), r.s.unloaded.Load()
	r.Unrecorded = r.s.unrecorded.Load()
	if peak, ok := platform.ResidentPeak(); ok {
		r.ResidentPeak = &peak
	}
}

// Tell writes the result as text.
func (r *Result) Tell(w io.Writer) {
	fmt.Fprintf(w, "%d rooms of %d players for %.1f s by %d workers: %d joined, %d refused, %d timed out\n",
		r.Rooms, r.Players, r.Seconds, r.Workers, r.Joined, r.Refused, r.TimedOut)
	fmt.Fprintf(w, "%d ticks: p50 %d, p99 %d, p99.9 %d, at most %d us; %d late, %d skipped; %d played again "+
		"for late inputs\n", r.Ticks, r.TickP50, r.TickP99, r.TickP999, r.TickMax, r.LateTicks, r.Skipped, r.Again)
	fmt.Fprintf(w, "%d packets in, %d out, %.0f bytes a second to each player\n", r.PacketsIn, r.PacketsOut,
		r.BytesPerPlayer)
	for _, reason := range slices.Sorted(maps.Keys(r.Dropped)) {
		if n := r.Dropped[reason]; n > 0 {
			fmt.Fprintf(w, "  dropped %d: %s\n", n, reason)
		}
	}
	fmt.Fprintf(w, "%d Go allocations, %d by the runtime for itself; %d collections; budget %s\n", r.GoAllocs,
		r.GoAllocsRuntime, r.Collections, budget.SizeText(r.BudgetBytes))
	for _, by := range r.AllocatedBy {
		fmt.Fprintln(w, " ", by)
	}
	if r.GoAllocsPage > 0 {
		fmt.Fprintf(w, "%d Go allocations by pages, probes and Agones' client\n", r.GoAllocsPage)
	}
	if r.Faults+r.Unloaded+r.Lost+r.Unrecorded > 0 {
		fmt.Fprintf(w, "%d rooms unwound, %d maps not loaded, %d writes refused, %d records cut short\n", r.Faults,
			r.Unloaded, r.Lost, r.Unrecorded)
	}
}

// resident returns the resident memory of the process in bytes; 0 if it is unknown.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseUint(fields[1], 10, 64)
		return pages * uint64(os.Getpagesize())
	}
	return 0
}
