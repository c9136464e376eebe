package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view/live"
	"github.com/upfront-mem/upfront/budget/with/agones"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope"
)

const sizesScratch = 64 * budget.KiB

var sizesPlan = budget.Plan{Name: "sizes", Scratch: budget.ScratchPlan{Workers: 2, Size: sizesScratch},
	Regions: []budget.RegionPlan{{Name: "room", Size: 64 * budget.KiB, Slots: 2}},
	Quotas:  []budget.QuotaPlan{{Name: "query", Size: 1000}}}

func sizeText[N integer](n N) string { return fmt.Sprint(n) }

func sizes(t *testing.T, b *budget.Budget) (rows []sized) {
	for _, list := range [][]sized{sizesOfArenas(), sizesOfScopes(b), sizesOfContainers(b), sizesOfFlow(t, b),
		sizesOfPlans(), sizesOfBudgets(t, b), sizesOfStates(t), sizesOfPages(t, b)} {
		rows = append(rows, list...)
	}
	return rows
}

// sizesOfPlans returns the rows of the numbers in a plan. An accepted plan is the same when it is
// read from its own JSON.
func sizesOfPlans() (rows []sized) {
	check := func(p budget.Plan) error {
		if err := p.Check(); err != nil && !errors.Is(err, budget.ErrWarning) {
			return err
		}
		data, err := json.Marshal(p)
		if err != nil {
			return err
		}
		again, err := budget.ParsePlan(data)
		if err != nil {
			return err
		}
		cost, err := p.Cost()
		same, errAgain := again.Cost()
		return errors.Join(err, errAgain, one(cost == same))
	}
	plan := func() *budget.Plan {
		return &budget.Plan{Name: "sizes", GoHeap: budget.Rest,
			Regions: []budget.RegionPlan{{Name: "room", Size: budget.MiB, Slots: 2}},
			Frame:   budget.FramePlan{Buffers: 2, Size: budget.MiB},
			Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: budget.MiB},
			CHeap:   budget.CHeapPlan{Size: 64 * budget.MiB},
			Quotas:  []budget.QuotaPlan{{Name: "query", Size: budget.GiB, Tenants: 4}},

			Expected: []budget.Expected{{Part: "room", Play: 1}}}
	}
	const size = ` (#|\d+[KMGT]iB)\b`
	bytes := func(name, key string, field func(p *budget.Plan) *uint64, limits []uint64, takes func(n uint64) bool) {
		says := key + `.*` + size + `|regions: the parts need` + size + `|"rest"`
		rows = append(rows, chosen("budget: "+name, limits, takes, says,
			func(n uint64) error { p := plan(); *field(p) = n; return check(*p) }))
	}
	within := func(from, to uint64) ([]uint64, func(n uint64) bool) {
		return []uint64{from, to}, func(n uint64) bool { return from <= n && n <= to }
	}
	orZero := func(from, to uint64) ([]uint64, func(n uint64) bool) {
		return []uint64{from, to}, func(n uint64) bool { return n == 0 || from <= n && n <= to }
	}
	count := func(name, key string, field func(p *budget.Plan) *int, from, to int) {
		rows = append(rows, numbers("budget: "+name, from, to, key+`: #\D`, func(n int) error {
			p := plan()
			*field(p) = n
			return check(*p)
		}))
	}
	share := func(name, key string, field func(p *budget.Plan) *budget.Percent) {
		rows = append(rows, numbers("budget: "+name, 0, 99, key+`: #% is out of range`, func(n budget.Percent) error {
			p := plan()
			*field(p) = n
			return check(*p)
		}))
	}
	add := func(limits []uint64, takes func(n uint64) bool) func(name, key string, field func(p *budget.Plan) *uint64) {
		return func(name, key string, field func(p *budget.Plan) *uint64) { bytes(name, key, field, limits, takes) }
	}
	most := func(field func(p *budget.Plan) *uint64) uint64 {
		return largest(func(n uint64) error { p := plan(); *field(p) = n; return p.Check() })
	}
	part := func(name, key string, field func(p *budget.Plan) *uint64) {
		add(within(1, most(field)))(name, key, field)
	}
	part("RegionPlan.Size", `regions\[0\].size`, func(p *budget.Plan) *uint64 { return &p.Regions[0].Size })
	part("FramePlan.Size", `frame.size`, func(p *budget.Plan) *uint64 { return &p.Frame.Size })
	part("ScratchPlan.Size", `scratch.size`, func(p *budget.Plan) *uint64 { return &p.Scratch.Size })
	whole := func(p *budget.Plan) *uint64 { return &p.Size }
	add(orZero(5*budget.MiB, most(whole)))("Plan.Size", "size", whole)
	base := func(p *budget.Plan) *uint64 { return &p.Base }
	rows = append(rows, chosen("budget: Plan.Base", []uint64{64 * budget.KiB, 1<<47 - 1<<30, 1 << 47},
		func(n uint64) bool { return n%(64*budget.KiB) == 0 && n < 1<<47 }, "base: 0x[0-9a-f]+",
		func(n uint64) error { p := plan(); *base(p) = n; return check(*p) }))
	add([]uint64{4 * budget.MiB, 1 << 46}, func(n uint64) bool {
		return n == 0 || n == budget.Rest || 4*budget.MiB <= n && n <= 1<<46
	})("Plan.GoHeap", "go_heap", func(p *budget.Plan) *uint64 { return &p.GoHeap })
	add(orZero(4*budget.MiB, 1<<46))("Plan.GoHeapMax", "go_heap_max",
		func(p *budget.Plan) *uint64 { return &p.GoHeapMax })
	add(orZero(128*budget.KiB, 255*budget.GiB))("CHeapPlan.Size", "c_heap",
		func(p *budget.Plan) *uint64 { return &p.CHeap.Size })
	add(within(0, 32*budget.MiB))("CHeapPlan.Reserve", "c_heap.reserve",
		func(p *budget.Plan) *uint64 { return &p.CHeap.Reserve })
	add(orZero(4*budget.KiB, 32*budget.MiB))("CHeapPlan.Runtime", "c_heap.runtime",
		func(p *budget.Plan) *uint64 { return &p.CHeap.Runtime })
	add([]uint64{16 * budget.KiB, 255 * budget.GiB}, func(n uint64) bool {
		return n == 0 || n == budget.NoProfile || 16*budget.KiB <= n && n <= 255*budget.GiB
	})("CHeapPlan.Profile", "c_heap.profile", func(p *budget.Plan) *uint64 { return &p.CHeap.Profile })
	rows = append(rows, chosen("budget: CHeapPlan.Trim", []time.Duration{10 * time.Millisecond},
		func(d time.Duration) bool { return d == 0 || d >= 10*time.Millisecond }, "c_heap.trim: # is out of range",
		func(d time.Duration) error { p := plan(); p.CHeap.Trim = d; return check(*p) }))
	add(within(1, 1<<46))("QuotaPlan.Size", "quotas.query.size",
		func(p *budget.Plan) *uint64 { return &p.Quotas[0].Size })
	add(within(0, budget.GiB))("QuotaPlan.Tenant", "quotas.query.tenant",
		func(p *budget.Plan) *uint64 { return &p.Quotas[0].Tenant })
	add([]uint64{1 << 30}, func(n uint64) bool { return n&(n-1) == 0 && n <= 1<<30 })("QuotaPlan.Piece",
		"quotas.query.piece", func(p *budget.Plan) *uint64 { return &p.Quotas[0].Piece })
	for _, e := range []struct {
		name  string
		field func(e *budget.Expected) *uint64
	}{{"Boot", func(e *budget.Expected) *uint64 { return &e.Boot }},
		{"Load", func(e *budget.Expected) *uint64 { return &e.Load }},
		{"Play", func(e *budget.Expected) *uint64 { return &e.Play }}} {
		takes := func(n uint64) bool { return n != 0 || e.name != "Play" }
		rows = append(rows, chosen("budget: Expected."+e.name, nil, takes, "expected.0.: no size",
			func(n uint64) error { p := plan(); *e.field(&p.Expected[0]) = n; return check(*p) }))
	}
	share("Expected.Tolerance", `expected\[0\].tolerance`, func(p *budget.Plan) *budget.Percent {
		return &p.Expected[0].Tolerance
	})
	share("CHeapPlan.Warn", "c_heap.warn", func(p *budget.Plan) *budget.Percent { return &p.CHeap.Warn })
	share("QuotaPlan.Warn", "quotas.query.warn", func(p *budget.Plan) *budget.Percent { return &p.Quotas[0].Warn })
	share("RegionPlan.Warn", `regions\[0\].warn`, func(p *budget.Plan) *budget.Percent { return &p.Regions[0].Warn })
	count("CHeapPlan.Fronts", "c_heap.fronts", func(p *budget.Plan) *int { return &p.CHeap.Fronts }, 0, 64)
	count("RegionPlan.Slots", `regions\[0\].slots`, func(p *budget.Plan) *int { return &p.Regions[0].Slots }, 0, 4096)
	count("RegionPlan.Waiters", `regions\[0\].waiters`, func(p *budget.Plan) *int { return &p.Regions[0].Waiters }, 0,
		65535)
	count("QuotaPlan.Tenants", "quotas.query.tenants", func(p *budget.Plan) *int { return &p.Quotas[0].Tenants }, 0,
		65535)
	rows = append(rows, chosen("budget: QuotaPlan.Waiters", []int{5, 2 * 65535},
		func(n int) bool { return n == 0 || n > 4 && n <= 2*65535 }, "quotas.query.waiters: # is out of range",
		func(n int) error { p := plan(); p.Quotas[0].Waiters = n; return check(*p) }))
	rows = append(rows, numbers("budget: FramePlan.Buffers", 1, 8, "frame.buffers: #", func(n int) error {
		p := plan()
		p.Frame.Buffers = n
		return check(*p)
	}))
	count("ScratchPlan.Workers", "scratch.workers", func(p *budget.Plan) *int { return &p.Scratch.Workers }, 1, 256)
	count("ScratchPlan.Each", "scratch.each", func(p *budget.Plan) *int { return &p.Scratch.Each }, 0, 8)
	for _, l := range []struct {
		name, key string
		field     func(l *budget.Limits) *int
	}{{"Scopes", "scopes", func(l *budget.Limits) *int { return &l.Scopes }},
		{"Pools", "pools", func(l *budget.Limits) *int { return &l.Pools }},
		{"Owned", "owned", func(l *budget.Limits) *int { return &l.Owned }},
		{"Labels", "labels", func(l *budget.Limits) *int { return &l.Labels }}} {
		ofPlan := func(p *budget.Plan) *int { return l.field(&p.Limits) }
		ofRegion := func(p *budget.Plan) *int { return l.field(&p.Regions[0].Limits) }
		count("Limits."+l.name, `"sizes": limits.`+l.key, ofPlan, 0, 65535)
		count("Limits."+l.name, `regions.0.\.limits.`+l.key, ofRegion, 0, 65535)
	}
	return rows
}

// sizesOfBudgets returns the rows of packages budget, timeline, live and agones.
func sizesOfBudgets(t *testing.T, b *budget.Budget) []sized {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	lease := made(b.Lease(context.Background()))
	t.Cleanup(func() { require.NoError(t, lease.Release()) })
	open := func(workers int, size uint64) error {
		b, err := budget.OpenScratch(workers, size)
		if err != nil {
			return err
		}
		return b.Close()
	}
	quota := b.Quota("query")
	reserved := func(n uint64, use func(r *budget.Reservation)) error {
		r, err := quota.Reserve(context.Background(), n)
		if err != nil {
			return err
		}
		defer r.Release()
		use(&r)
		return nil
	}
	sidecar := agones.New("localhost:1")
	asks := func(err error) error { // the call isn't made, because its context ended
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	feed := func(o live.FeedOptions) error { live.NewFeed(func() []byte { return nil }, o).Close(); return nil }
	listen := func(o live.ServerOptions) error { // the address is none
		if _, err := live.Listen("frog", nil, o); !errors.As(err, new(*net.OpError)) {
			return err
		}
		return nil
	}
	link := func(n int) error {
		l, err := sidecar.Link(b, "room", agones.Options{Capacity: n, Ticks: func() uint64 { return 0 }})
		if err == nil {
			l.Close()
		}
		return err
	}
	return []sized{
		numbers("budget: Budget.Scratch worker", 0, 0, "worker #", func(n int) error { b.Scratch(n, 0); return nil }),
		numbers("budget: Budget.Scratch which", 0, 1, "scratch #", func(n int) error { b.Scratch(0, n); return nil }),
		numbers("budget: Budget.Scratches worker", 0, 0, "worker #", func(n int) error { b.Scratches(n); return nil }),
		numbers("budget: Lease.Scratch which", 0, 1, "scratch #", func(n int) error { lease.Scratch(n); return nil }),
		all("budget: Expected.Band size", func(n uint64) error {
			least, most := budget.Expected{Tolerance: 10}.Band(n)
			return one(least <= n && n <= most)
		}),
		chosen("budget: OpenScratch workers", []int{256}, func(n int) bool { return n > 0 && n < 257 },
			"scratch.workers: #|0 bytes|0, but", func(n int) error { return open(n, 1) }),
		chosen("budget: OpenScratch size", nil, func(n uint64) bool { return n != 0 && n < 1<<37 }, `(#|\d+[KMG]iB)\b`,
			func(n uint64) error {
				if n > budget.MiB && n < 1<<37 {
					return nil // memory of the machine; the rows of plans try such sizes
				}
				return open(1, n)
			}),
		chosen("budget: Plan.Headroom percent", nil, func(n int) bool { return n >= 0 }, "Headroom of # percent",
			func(n int) error {
				larger := sizesPlan.Headroom(n)
				return one(larger.Regions[0].Size >= sizesPlan.Regions[0].Size)
			}),
		numbers("budget: Quota.Reserve n", 0, 1000, `asked for #\b`, func(n uint64) error {
			return reserved(n, func(*budget.Reservation) {})
		}),
		numbers("budget: Reservation.Grow n", 0, 900, `asked for #\b`, func(n uint64) (err error) {
			return errors.Join(reserved(100, func(r *budget.Reservation) { err = r.Grow(n) }), err)
		}),
		numbers("budget: Reservation.Shrink n", 0, 100, "Shrink of # bytes", func(n uint64) error {
			return reserved(100, func(r *budget.Reservation) { r.Shrink(n) })
		}),
		all("budget: SizeText size", func(n uint64) error {
			text := budget.SizeText(n)
			if n < 100*budget.KiB || n > math.MaxUint64-budget.KiB { // not to be parsed
				return one(strings.HasSuffix(text, "KiB"))
			}
			size, err := budget.ParseSize(text)
			return errors.Join(err, one(size >= n && size-n < budget.KiB))
		}),
		numbers("budget: Slots.AcquireAt slot", 0, 1, `AcquireAt\(#\).*count from 0|slot #\b.*(slots to [1-9]|at most)`, func(n int) error {
			region, err := b.Slots("room").AcquireAt(n)
			if err == nil {
				err = region.Release(context.Background())
			}
			return err
		}),
		all("budget/timeline: Expect tolerance", func(n budget.Percent) error {
			timeline.Expect(n, timeline.Data{})
			return nil
		}),
		numbers("budget/timeline: Start samples", 0, 1<<20, "Start with # samples", func(n int) error {
			b := made(budget.Open(budget.Plan{Name: "empty"}))
			defer b.Close()
			timeline.Start(b, n).Sample()
			return nil
		}),
		numbers("budget/view/live: FeedOptions.Viewers", 0, 1<<16, "for # viewers", func(n int) error {
			return feed(live.FeedOptions{Viewers: n})
		}),
		numbers("budget/view/live: Options.Viewers", 0, 1<<16, "for # viewers", func(n int) error {
			live.New(b, live.Options{Viewers: n}).Close()
			return nil
		}),
		numbers("budget/view/live: FeedOptions.Every", 0, math.MaxInt64, "each #", func(d time.Duration) error {
			return feed(live.FeedOptions{Every: d})
		}),
		numbers("budget/view/live: Options.Every", 0, math.MaxInt64, "each #", func(d time.Duration) error {
			live.New(b, live.Options{Every: d}).Close()
			return nil
		}),
		numbers("budget/view/live: ServerOptions.Connections", 0, math.MaxInt, "Connections of # ", func(n int) error {
			return listen(live.ServerOptions{Connections: n})
		}),
		numbers("budget/view/live: ServerOptions.PerAddress", 0, math.MaxInt, "PerAddress of #:", func(n int) error {
			return listen(live.ServerOptions{PerAddress: n})
		}),
		numbers("budget/with/agones: Client.Reserve d", 0, math.MaxInt64, `Reserve\(#\)`, func(d time.Duration) error {
			return asks(sidecar.Reserve(ctx, d))
		}),
		chosen("budget/with/agones: Client.AddCount n", nil, func(n int64) bool { return n != 0 }, "AddCount.* #",
			func(n int64) error { _, err := sidecar.AddCount(ctx, "rooms", n); return asks(err) }),
		all("budget/with/agones: Client.SetCapacity n", func(n int64) error {
			_, err := sidecar.SetCapacity(ctx, "rooms", n)
			return asks(err)
		}),
		all("budget/with/agones: Client.SetCount n", func(n int64) error {
			_, err := sidecar.SetCount(ctx, "rooms", n)
			return asks(err)
		}),
		numbers("budget/with/agones: Options.Capacity", 0, 2, "Options.Capacity is #", link),
	}
}

// sizesOfStates returns the rows of package save.
func sizesOfStates(t *testing.T) []sized {
	b := budgettest.Open(t, budget.Plan{Name: "states", Regions: []budget.RegionPlan{
		{Name: "room", Size: 64 * budget.KiB, State: true}}})
	loads := func(use func(s scope.Scope, st *save.State)) error {
		_, err := budget.Load(context.Background(), b.Region("room"), func(s scope.Scope) (*uint64, error) {
			state, x := save.Begin(b.Region("room"), s, sizedPonds)
			use(s, state)
			return x, nil
		})
		return err
	}
	ringOf := func(count int) (ring *save.Ring, err error) {
		err = loads(func(s scope.Scope, st *save.State) { ring = save.NewRing(s, count, st) })
		return ring, err
	}
	const there = 7
	withRing := func(use func(r *save.Ring, n uint64) error) func(n uint64) error {
		return func(n uint64) error {
			ring, err := ringOf(2)
			return errors.Join(err, ring.Take(there), use(ring, n))
		}
	}
	held := func(name string, use func(r *save.Ring, n uint64) error) sized {
		return numbers("budget/save: "+name, there, there, `\b#\b`, withRing(use))
	}
	heap := func(declare func(st *save.State, h arena.Heap, n uint64)) func(n uint64) error {
		return func(n uint64) error {
			var ring *save.Ring
			err := loads(func(s scope.Scope, st *save.State) {
				h := made(arena.NewHeap(s.BytesUnzeroed(8192, 64), 0))
				h.MayLive()
				require.NotNil(t, h.Alloc(100, 16))
				declare(st, h, n)
				ring = save.NewRing(s, 1, st)
			})
			return errors.Join(err, ring.Take(there))
		}
	}
	file := filepath.Join(t.TempDir(), "checkpoints")
	plan := save.CheckpointPlan{Slots: 2, Size: 16 * budget.KiB, Own: 16}
	checkpoints := func(use func(c *save.Checkpoints) error) error {
		c, err := save.OpenCheckpoints(file, plan)
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		require.NoError(t, err)
		return errors.Join(use(c), c.Close())
	}
	rows := []sized{
		fitting("budget/save: NewRing count", 1, asked+"|a ring of # snapshots", func(n int) error {
			_, err := ringOf(n)
			return err
		}),
		all("budget/save: Ring.Take number", func(n uint64) error {
			ring, err := ringOf(2)
			return errors.Join(err, ring.Take(n), one(ring.Has(n)))
		}),
		held("Ring.AppendFile number", func(r *save.Ring, n uint64) error {
			_, err := r.AppendFile(nil, n)
			return err
		}),
		held("Ring.Delta base", func(r *save.Ring, n uint64) error { _, err := r.Delta(nil, n, there); return err }),
		held("Ring.Delta number", func(r *save.Ring, n uint64) error { _, err := r.Delta(nil, there, n); return err }),
		held("Ring.Diff a", func(r *save.Ring, n uint64) error { _, _, err := r.Diff(n, there); return err }),
		held("Ring.Diff b", func(r *save.Ring, n uint64) error { _, _, err := r.Diff(there, n); return err }),
		held("Ring.Hash number", func(r *save.Ring, n uint64) error { _, err := r.Hash(n); return err }),
		held("Ring.PageHashes number", func(r *save.Ring, n uint64) error {
			_, err := r.PageHashes(nil, n)
			return err
		}),
		held("Ring.Restore number", func(r *save.Ring, n uint64) error { return r.Restore(context.Background(), n) }),
		held("Ring.Write number", func(r *save.Ring, n uint64) error { return r.Write(io.Discard, n) }),
		numbers("budget/save: Ring.Has number", there, there, "^none$", withRing(func(r *save.Ring, n uint64) error {
			return one(r.Has(n))
		})),
		numbers("budget/save: Ring.Used number", there, there, "^none$", withRing(func(r *save.Ring, n uint64) error {
			return one(r.Used(n) > 0)
		})),
		chosen("budget/save: State.Heap most", nil, func(n uint64) bool { return n > 2 }, "full",
			heap(func(st *save.State, h arena.Heap, n uint64) { st.Heap(h, n) })),
		chosen("budget/save: State.Library most", nil, func(n uint64) bool { return n > 2 }, "full",
			heap(func(st *save.State, h arena.Heap, n uint64) { st.Library(h, n) })),
		all("budget/save: State.Of sum", func(n uint64) error {
			return loads(func(s scope.Scope, st *save.State) { st.Of("map", n); save.NewRing(s, 1, st) })
		}),
		numbers("budget/save: State.Version n", 1, math.MaxUint32, `Version\(#\)`, func(n uint32) error {
			return loads(func(s scope.Scope, st *save.State) { st.Version(n); save.NewRing(s, 1, st) })
		}),
	}
	if err := checkpoints(func(*save.Checkpoints) error { return nil }); errors.Is(err, errors.ErrUnsupported) {
		return rows
	}
	planned := func(change func(p *save.CheckpointPlan)) error { // there is no such folder
		p := plan
		change(&p)
		if _, err := save.OpenCheckpoints(filepath.Join(file, "none"), p); !isNotDir(err) {
			return err
		}
		return nil
	}
	slots := func(n int) error { return planned(func(p *save.CheckpointPlan) { p.Slots = n }) }
	size := func(n uint64) error { return planned(func(p *save.CheckpointPlan) { p.Size = n }) }
	own := func(n uint64) error { return planned(func(p *save.CheckpointPlan) { p.Own = n }) }
	most := largest(func(n uint64) error { return slots(int(min(n, math.MaxInt))) })
	return append(rows,
		numbers("budget/save: CheckpointPlan.Slots", 1, int(most), "Slots:#", slots),
		numbers("budget/save: CheckpointPlan.Size", 1, largest(size), "Size:# ", size),
		numbers("budget/save: CheckpointPlan.Own", 0, largest(own), "Own:#}", own),
		numbers("budget/save: Checkpoints.Attach slot", 0, 1, "checkpoint # of .*(raise Slots to [1-9]|count from 0)",
			func(n int) error {
				return checkpoints(func(c *save.Checkpoints) error {
					ring, err := ringOf(2)
					if err == nil {
						_, err = c.Attach(n, ring)
					}
					return err
				})
			}),
		chosen("budget/save: Checkpoints.Own slot", []int{2}, func(int) bool { return false },
			"checkpoint # of .*(raise Slots to [1-9]|count from 0|empty)", func(n int) error {
				return checkpoints(func(c *save.Checkpoints) error { _, err := c.Own(n); return err })
			}),
		numbers("budget/save: Checkpoint.Write number", there, math.MaxUint64, `\b#\b`, func(n uint64) error {
			return checkpoints(func(c *save.Checkpoints) error {
				ring, err := ringOf(2)
				if err != nil {
					return err
				}
				file, err := c.Attach(0, ring)
				return errors.Join(err, ring.Take(there), file.Write(n, nil))
			})
		}))
}

func isNotDir(err error) bool {
	path, is := errors.AsType[*fs.PathError](err)
	return is && path != nil || errors.Is(err, fs.ErrNotExist)
}

// sizesOfPages returns the rows of packages platform and jsonfile.
func sizesOfPages(t *testing.T, b *budget.Budget) []sized {
	page := uint64(os.Getpagesize())
	known := func(err error) error { // on some systems and in race builds
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		return err
	}
	reserve := func(base uintptr, size uint64, head uint64) error {
		r, err := platform.Reserve(base, size, platform.Head{Size: head})
		if err != nil {
			return known(err)
		}
		return r.Release()
	}
	r, err := platform.Reserve(0, 4*64*budget.KiB, platform.Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	t.Cleanup(func() { require.NoError(t, r.Release()) })
	part := func(change func(offset, size uint64) error) (of, ofSize func(n uint64) error) {
		return func(n uint64) error { return known(change(n, page)) },
			func(n uint64) error { return known(change(page, n)) }
	}
	discardAt, discard := part(r.Discard)
	protectAt, protect := part(func(offset, size uint64) error {
		if err := r.Protect(offset, size); err != nil {
			return err
		}
		return r.Unprotect(offset, size)
	})
	unprotectAt, unprotect := part(r.Unprotect)
	pages := func(name string, most uint64, call func(n uint64) error) sized {
		return chosen("platform: "+name, []uint64{page, most}, func(n uint64) bool { return n%page == 0 && n <= most },
			`\b#\b`, call)
	}
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("frogs"), 0o600))
	small := func(n uint64) bool { return n != 0 && n%page == 0 && n < 1<<30 }
	return []sized{
		chosen("platform: Reserve size", []uint64{page}, small, `reserve #\b`, func(n uint64) error {
			if platform.GoBacked && n >= 1<<30 && n < 1<<40 { // memory of the Go heap
				return fmt.Errorf("reserve %d", n)
			}
			return lenient(n, reserve(0, n, 0))
		}),
		chosen("platform: Reserve base", nil, func(n uintptr) bool { return n == 0 }, "at 0x", func(n uintptr) error {
			if err := reserve(n, 64*budget.KiB, 0); err != nil || n == 0 {
				return err
			}
			return errors.New("it was free: at 0x")
		}),
		numbers("platform: Head.Size", 0, 0, "head #", func(n uint64) error {
			if n%page == 0 && n <= 64*budget.KiB {
				return reserve(0, 64*budget.KiB, 0)
			}
			return reserve(0, 64*budget.KiB, n)
		}),
		chosen("platform: ReserveSparse size", []uint64{page}, small, "reserve # ", func(n uint64) error {
			s, err := platform.ReserveSparse(n)
			if err != nil {
				return lenient(n, known(err))
			}
			return lenient(n, s.Release())
		}),
		all("platform: Keeps size", func(n uint64) error { platform.Keeps(0, n, platform.Head{}); return nil }),
		all("platform: Keeps base", func(n uintptr) error { platform.Keeps(n, page, platform.Head{}); return nil }),
		pages("Reservation.Discard offset", r.Size()-page, discardAt),
		pages("Reservation.Discard size", r.Size()-page, discard),
		pages("Reservation.Protect offset", r.Size()-page, protectAt),
		pages("Reservation.Protect size", r.Size()-page, protect),
		pages("Reservation.Unprotect offset", r.Size()-page, unprotectAt),
		pages("Reservation.Unprotect size", r.Size()-page, unprotect),
		all("platform: PageRun.Offset", func(n uint64) error {
			missing, _ := r.Missing(platform.PageRun{Offset: n, Size: page})
			return one(missing <= 1)
		}),
		all("platform: PageRun.Size", func(n uint64) error {
			missing, _ := r.Missing(platform.PageRun{Offset: page, Size: n})
			return one(uint64(missing) <= r.Size()/page)
		}),
		chosen("platform: Track size", []uint64{page}, func(n uint64) bool { return n == page }, "track # ",
			func(n uint64) error {
				k, err := platform.Track(r.Base(), n)
				if err != nil {
					return unless(n == page, err)
				}
				return k.Close()
			}),
		numbers("platform: OpenShared size", 4, math.MaxInt, "shared file of # bytes", func(n uint64) error {
			_, _, err := platform.OpenShared(filepath.Join(text, "none"), n, []byte("pond"), nil)
			if isNotDir(err) {
				return nil
			}
			return known(err)
		}),
		numbers("platform: InjectFault n", 1, math.MaxInt, "fault # of", func(n int) error {
			platform.InjectFault("map", n)()
			return nil
		}),
		numbers("platform/jsonfile: ReadFile most", 5, math.MaxInt, "too large", func(n int) error {
			data, err := jsonfile.ReadFile(text, n, "too large")
			return errors.Join(err, one(err != nil || string(data) == "frogs"))
		}),
		chosen("platform/jsonfile: File.Fault at", nil, func(int) bool { return false }, "text:[12]: frog: faulty",
			func(n int) error {
				f, _ := jsonfile.Parse("text:", []byte("{\n}"))
				f.Fault(n, "frog", "faulty")
				return f.Err()
			}),
	}
}

// unless returns err, or nil for an error that the system may give instead of success: it lacks the
// feature.
func unless(is bool, err error) error {
	if is && errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// lenient returns an error for a size that may or may not be free.
func lenient(n uint64, err error) error {
	if n < 1<<30 || err != nil {
		return err
	}
	return fmt.Errorf("it was free: reserve %d bytes", n)
}
