//go:build linux && cgo && !asan

package main

// #include "../../arena/with/malloc/process.h"
// #include "shared.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

func init() {
	programs["shared"] = sharedSums
	programs["shared-threads"] = sharedThreads
	programs["shared-users"] = sharedUsers
	programs["shared-ends"] = sharedEnds
	programs["shared-states"] = sharedStates
	programs["shared-hashes"] = sharedHashes
}

var roots = scope.Plain[uint64]()

// region is a heap or a buddy in the region level of a budget, for C.
type region struct {
	budget *budget.Budget
	heap   arena.Heap
	shared arena.Shared
	reset  func()
	stats  func() arena.HeapStats
	c      C.shared_functions
}

func openRegion(size uint64, state bool, rings uint64) (*region, error) {
	b, err := budget.Open(budget.Plan{Name: "pond", Pages: budget.Pages{Prefault: budget.Off},
		Regions: []budget.RegionPlan{{Name: "level", Size: size + 64*budget.KiB, State: state},
			{Name: "ring", Size: rings * size}}})
	return &region{budget: b}, err
}

// load loads the level again, with an arena of that kind.
func (r *region) load(kind string, size uint64) error {
	_, err := budget.Load(context.Background(), r.budget.Region("level"), func(s scope.Scope) (*region, error) {
		return r, r.make(kind, s.BytesUnzeroed(int(size), 64))
	})
	return err
}

func (r *region) make(kind string, block []byte) (err error) {
	if kind == "buddy" {
		var b arena.Buddy
		if b, err = arena.NewBuddy(block, 64); err != nil {
			return err
		}
		r.shared, err = b.Shared()
		r.reset, r.stats = b.Reset, b.Stats
	} else {
		if r.heap, err = arena.NewHeap(block, 256); err != nil {
			return err
		}
		h := r.heap
		r.shared, err = h.Shared()
		r.reset, r.stats = h.Reset, h.Stats
	}
	if err != nil {
		return err
	}
	r.shared.MayLive()
	f := r.shared.Functions()
	r.c = C.shared_functions{f.Context, (*[0]byte)(f.Malloc), (*[0]byte)(f.Calloc), (*[0]byte)(f.Realloc),
		(*[0]byte)(f.Free)}
	return nil
}

func (r *region) used() (stats arena.HeapStats) {
	r.shared.Locked(func() { stats = r.stats() })
	return stats
}

// inArenas returns the sums of live blocks in arenas by the profile, and the lost samples.
func inArenas() (live C.upfront_profile_sums, lost C.uint64_t) {
	var counts C.upfront_profile_counts
	C.upfront_malloc_profile(&counts)
	for i := range counts.stacks {
		var s C.upfront_profile_stack
		if C.upfront_malloc_stack(i, &s); s.arena != 0 {
			live.bytes += s.live.bytes
			live.objects += s.live.objects
		}
	}
	return live, counts.lost
}

// sharedSums is profile, for blocks in an arena of a region.
func sharedSums(a args, out io.Writer) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	size := uint64(128 << 20)
	if a[0] == "buddy" {
		size *= 2 // its blocks are rounded up to powers of two
	}
	r, err := openRegion(size, false, 1)
	if err != nil {
		return 0, err
	}
	for seed := range a.number(3) {
		C.upfront_malloc_seed(C.uint64_t(seed + 1))
		if err := r.load(a[0], size); err != nil {
			return 0, err
		}
		before := r.used()
		list := C.shared_hold(r.c, C.uint64_t(a.number(1)), C.uint64_t(a.number(2)), C.uint64_t(seed+1))
		live, lost := inArenas()
		after := r.used()
		fmt.Fprintln(out, "held", after.Used-before.Used, live.bytes, after.Live-before.Live,
			live.objects/C.UPFRONT_PROFILE_OBJECT, lost)
		C.shared_free_all(r.c, list)
		live, _ = inArenas()
		fmt.Fprintln(out, "left", r.used().Used-before.Used, live.bytes, live.objects)
	}
	return 0, r.budget.Close()
}

// sharedThreads: threads of C and goroutines use an arena. Then all blocks are free.
func sharedThreads(a args, out io.Writer) (int, error) {
	r, err := openRegion(8<<20, false, 1)
	if err == nil {
		err = r.load(a[0], 4<<20)
	}
	if err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			n := rand.New(rand.NewPCG(1, uint64(i)))
			var mine [16]unsafe.Pointer
			for range a.number(2) {
				k := n.IntN(len(mine))
				if n.IntN(2) == 0 {
					_ = r.shared.Free(mine[k])
					mine[k] = r.shared.Alloc(n.Uint64N(6000), 64)
				} else if q, _ := r.shared.Realloc(mine[k], n.Uint64N(6000)); q != nil {
					mine[k] = q
				}
			}
			for _, p := range mine {
				_ = r.shared.Free(p)
			}
		})
	}
	all.Go(func() {
		for range 20 {
			_ = malloc.WriteProfile(io.Discard)
		}
	})
	line := C.shared_threads(r.c, C.int(a.number(1)), C.uint64_t(a.number(2)))
	all.Wait()
	live, _ := inArenas()
	fmt.Fprintln(out, "left", r.used().Live, live.bytes, live.objects)
	return int(line), errors.Join(r.shared.Err(), r.budget.Close())
}

// sharedUsers keeps blocks in an arena from Go and from C, and in C's malloc, and writes a profile.
func sharedUsers(a args, _ io.Writer) (int, error) {
	r, err := openRegion(64<<20, false, 1)
	if err == nil {
		err = r.load("heap", 64<<20)
	}
	if err != nil {
		return 0, err
	}
	for range 3000 {
		sharedFromC(r)
	}
	for range 1000 {
		sharedFromGo(r)
		large()
	}
	file, err := os.Create(a[0])
	if err != nil {
		return 0, err
	}
	return 0, errors.Join(malloc.WriteProfile(file), file.Close(), r.budget.Close())
}

func sharedFromC(r *region) unsafe.Pointer { return C.shared_keep(r.c, 5000) } // line KEEP

func sharedFromGo(r *region) unsafe.Pointer { return r.shared.Alloc(3000, 64) } // line ALLOC

// certain is the size of blocks that a profile with a distance of 16 KiB has all: one in 2^46 is
// missed.
const certain = 512 << 10

// sharedEnds: the samples of an arena end with it, however it ends.
func sharedEnds(a args, out io.Writer) (int, error) {
	r, err := openRegion(8<<20, false, 1)
	if err != nil {
		return 0, err
	}
	fill := func(what string, want int) error {
		for range 4 {
			C.shared_keep(r.c, certain-64)
		}
		live, lost := inArenas()
		if n := int(live.objects / C.UPFRONT_PROFILE_OBJECT); n != want || lost != 0 {
			return fmt.Errorf("%s: %d blocks are in the profile, not %d; %d are lost", what, n, want, lost)
		}
		return nil
	}
	empty := func(what string) error {
		if live, _ := inArenas(); live.objects != 0 || live.bytes != 0 {
			return fmt.Errorf("%s: %d bytes are in the profile", what, live.bytes)
		}
		return nil
	}
	for _, kind := range []string{"heap", "buddy"} {
		for range 3 { // a load ends the level before it
			if err = errors.Join(r.load(kind, 4<<20), fill(kind, 4)); err != nil {
				return 0, err
			}
		}
		r.reset()
		if err = empty(kind + ", Reset"); err != nil {
			return 0, err
		}
		if err = errors.Join(r.load(kind, 4<<20), fill(kind, 4),
			r.budget.Region("level").Rewind(context.Background()), empty("Rewind")); err != nil {
			return 0, err
		}
	}
	_, err = budget.Load(context.Background(), r.budget.Region("level"), func(s scope.Scope) (*region, error) {
		err := errors.Join(r.make("heap", s.BytesUnzeroed(3<<20, 64)), fill("level", 4))
		outer := *r
		inner := s.Open("inner")
		err = errors.Join(err, r.make("buddy", inner.BytesUnzeroed(3<<20, 64)), fill("scope", 8), inner.Close())
		*r = outer
		if live, _ := inArenas(); live.objects != 4*C.UPFRONT_PROFILE_OBJECT {
			err = errors.Join(err, fmt.Errorf("%d bytes are in the profile", live.bytes))
		}
		return r, err
	})
	if err = errors.Join(err, r.budget.Close(), empty("Close")); err != nil {
		return 0, err
	}
	// the profile doesn't know when an arena outside a budget ends
	counts := r.c.malloc
	if err = r.make("heap", arena.NewBlock(4<<20, 64)); err == nil {
		r.shared.Alloc(certain, 16)
		err = empty("NewBlock")
	}
	if r.c.malloc == counts {
		return 1, errors.New("a Shared without a profile has functions that count bytes")
	}
	return 0, err
}

// heldBy returns the blocks of the arenas in the profile, by the names of the Go function that made
// them.
func heldBy(names ...string) (counts []int) {
	counts = make([]int, len(names))
	stacks(func(s *C.upfront_profile_stack, functions []string) {
		for i, name := range names {
			if s.arena != 0 && strings.Contains(strings.Join(functions, " "), name) {
				counts[i] += int(s.live.objects / C.UPFRONT_PROFILE_OBJECT)
			}
		}
	})
	return counts
}

//go:noinline
func madeRed(r *region) unsafe.Pointer {
	p := C.shared_keep(r.c, certain-64)
	return p
}

//go:noinline
func madeBlue(r *region) unsafe.Pointer {
	p := r.shared.Alloc(certain-64, 16)
	return p
}

// block is a block of the model, and whether madeRed made it.
type block struct {
	p   unsafe.Pointer
	red bool
}

// sharedStates plays with an arena in a state, with snapshots and their restores. After each step
// the profile has exactly the live blocks, by the functions that made them. After a restore of a
// snapshot from a future that is gone, the profile of the arena is empty, and the play ends.
func sharedStates(a args, out io.Writer) (int, error) {
	const size, blocks, slots = 8 << 20, 12, 4
	n := rand.New(rand.NewPCG(a.number(2), 7))
	r, err := openRegion(size, a[1] == "state", 7)
	if err != nil {
		return 0, err
	}
	restores, futures := 0, 0
	for range a.number(3) {
		ring, err := r.loadState(a[0], size, slots)
		if err != nil {
			return 0, err
		}
		var live []block
		taken, at := map[uint64][]block{}, uint64(0)
		future := map[uint64]bool{}
		for range 200 {
			whole := true
			switch k := n.IntN(10); {
			case k < 4 && len(live) < blocks:
				b := block{red: n.IntN(2) == 0}
				if b.red {
					b.p = madeRed(r)
				} else {
					b.p = madeBlue(r)
				}
				live = append(live, b)
			case k < 7 && len(live) != 0:
				i := n.IntN(len(live))
				if live[i].red {
					C.shared_free_all(r.c, zeroed(live[i].p))
				} else if err := r.shared.Free(live[i].p); err != nil {
					return 0, err
				}
				live = append(append([]block{}, live[:i]...), live[i+1:]...)
			case k < 9:
				at++
				if err := ring.Take(at); err != nil {
					return 0, err
				}
				taken[at] = append([]block{}, live...)
			case ring.Has(at):
				to := at - n.Uint64N(slots)
				if !ring.Has(to) {
					continue
				}
				if err := ring.Restore(context.Background(), to); err != nil {
					return 0, err
				}
				live, whole = append([]block{}, taken[to]...), !future[to]
				for k := to + 1; k <= at; k++ {
					future[k] = true
				}
				restores++
			}
			want := []int{0, 0}
			for _, b := range live {
				if b.red {
					want[0]++
				} else {
					want[1]++
				}
			}
			if !whole {
				futures++
				want = []int{0, 0}
			}
			if got := heldBy(".madeRed", ".madeBlue"); fmt.Sprint(got) != fmt.Sprint(want) {
				return 1, fmt.Errorf("%v blocks are in the profile, not %v; restores: %d, whole: %v", got, want,
					restores, whole)
			}
			if !whole {
				break
			}
		}
	}
	fmt.Fprintln(out, "restores", restores, futures)
	_, lost := inArenas()
	fmt.Fprintln(out, "lost", lost)
	return 0, errors.Join(r.shared.Err(), r.budget.Close())
}

func zeroed(p unsafe.Pointer) unsafe.Pointer {
	*(*uintptr)(p) = 0
	return p
}

// loadState loads the level again, with an arena in a state, and its ring.
func (r *region) loadState(kind string, size uint64, slots int) (ring *save.Ring, err error) {
	if err := r.budget.Region("ring").Rewind(context.Background()); err != nil {
		return nil, err
	}
	var state *save.State
	_, err = budget.Load(context.Background(), r.budget.Region("level"), func(s scope.Scope) (*region, error) {
		state, _ = save.Begin(r.budget.Region("level"), s, roots)
		err := r.make(kind, s.BytesUnzeroed(int(size), 64))
		if kind == "packed" && err == nil {
			state.Library(r.heap, size)
		}
		return r, err
	})
	if err != nil {
		return nil, err
	}
	_, err = budget.Load(context.Background(), r.budget.Region("ring"), func(s scope.Scope) (*region, error) {
		ring = save.NewRing(s, slots, state)
		return r, nil
	})
	return ring, err
}

// sharedHashes plays from a restored snapshot, each time with another sequence in C's malloc, and
// prints the hash and the use at the end.
func sharedHashes(a args, out io.Writer) (int, error) {
	const size = 4 << 20
	r, err := openRegion(size, a[1] == "state", 7)
	if err != nil {
		return 0, err
	}
	ring, err := r.loadState(a[0], size, 2)
	if err != nil {
		return 0, err
	}
	C.shared_hold(r.c, 1<<20, 3000, 1)
	if err := ring.Take(1); err != nil {
		return 0, err
	}
	for i := range 5 {
		C.shared_hold(r.c, 1<<20, 3000, 2)
		if err := ring.Take(2); err != nil {
			return 0, err
		}
		hash, err := ring.Hash(2)
		if err != nil {
			return 0, err
		}
		stats := r.used()
		fmt.Fprintf(out, "play %x %d %d\n", hash, stats.Used, stats.Live)
		C.upfront_malloc_seed(C.uint64_t(i + 100))
		if err := ring.Restore(context.Background(), 1); err != nil {
			return 0, err
		}
	}
	return 0, r.budget.Close()
}
