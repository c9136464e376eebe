package wazero_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/wazero"
	"github.com/upfront-mem/upfront/tests/step"
)

const (
	page = 64 << 10
	most = 4 * page // of a guest, by default
	room = 4 << 20  // bytes of a place
)

// engines run guests. features has threads.
var (
	features = api.CoreFeaturesV2 | experimental.CoreFeaturesThreads
	engines  = map[string]wazero.RuntimeConfig{
		"compiler":    wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features),
		"interpreter": wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features),
	}
)

// place holds the memories of guests.
type place struct {
	from  arena.Freer
	block []byte        // all of it
	live  func() uint64 // bytes taken and not freed
}

// places make a place of each kind in s. The scope itself is a place, which frees bytes when it
// closes.
var places = map[string]func(t testing.TB, s scope.Scope, size int) place{
	"buddy": func(t testing.TB, s scope.Scope, size int) place {
		block := s.BytesUnzeroed(int(arena.BuddySize(uint64(size), 4<<10)), 1<<20)
		buddy, err := arena.NewBuddy(block, 4<<10)
		require.NoError(t, err)
		shared, err := buddy.Shared()
		require.NoError(t, err)
		return place{shared, block, used(shared, func() uint64 { return buddy.Stats().Used })}
	},
	"heap": func(t testing.TB, s scope.Scope, size int) place {
		block := s.BytesUnzeroed(size, 64)
		heap, err := arena.NewHeap(block, 0)
		require.NoError(t, err)
		shared, err := heap.Shared()
		require.NoError(t, err)
		return place{shared, block, used(shared, func() uint64 { return heap.Stats().Used })}
	},
	"pool": func(t testing.TB, s scope.Scope, size int) place {
		block := s.BytesUnzeroed(size, 64)
		pool, err := arena.NewBlockPool[[most]byte](block)
		require.NoError(t, err)
		return place{&chunks{pool: pool}, block, func() uint64 { return uint64(pool.Live()) * most }}
	},
}

func used(shared arena.Shared, stats func() uint64) func() uint64 {
	return func() (bytes uint64) {
		shared.Locked(func() { bytes = stats() })
		return bytes
	}
}

// chunks is a pool as a place: one size for all.
type chunks struct {
	mu   sync.Mutex
	pool arena.BlockPool[[most]byte]
}

func (c *chunks) Alloc(size, _ uint64) unsafe.Pointer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size > most {
		return nil
	}
	return unsafe.Pointer(c.pool.GetUnzeroed())
}

func (c *chunks) Free(p unsafe.Pointer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pool.Put((*[most]byte)(p))
}

// table has a budget, a runtime, and the host function env.host of its guests.
type table struct {
	testing.TB
	scratch scope.Scratch
	runtime wazero.Runtime
	host    func(context.Context, api.Module)
}

func newTable(t testing.TB, config wazero.RuntimeConfig) *table {
	b := budgettest.Open(t, budget.Plan{Name: "clients", Pages: budget.Pages{Prefault: budget.Off},
		Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 4 * room}})
	table := &table{t, b.Scratch(0, 0), wazero.NewRuntimeWithConfig(t.Context(), config), nil}
	t.Cleanup(func() { _ = table.runtime.Close(context.Background()) })
	_, err := table.runtime.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithFunc(func(ctx context.Context, mod api.Module) { table.host(ctx, mod) }).
		Export("host").Instantiate(t.Context())
	require.NoError(t, err)
	return table
}

func (t *table) compile(g guest) wazero.CompiledModule {
	compiled, err := t.runtime.CompileModule(t.Context(), g.encode())
	require.NoError(t, err)
	return compiled
}

// anonymous instances: there may be many of one module.
var anonymous = wazero.NewModuleConfig().WithName("")

func (p place) fill(value byte) {
	var taken []unsafe.Pointer
	pattern := bytes.Repeat([]byte{value}, most)
	for block := p.from.Alloc(most, 64); block != nil; block = p.from.Alloc(most, 64) {
		copy(unsafe.Slice((*byte)(block), most), pattern)
		taken = append(taken, block)
	}
	for _, block := range taken {
		if err := p.from.Free(block); err != nil {
			panic(err)
		}
	}
}

// bytes returns all bytes of the place, or nil in an asan build, where free ones can't be read.
func (p place) bytes() []byte {
	if arena_c.Asan {
		return nil
	}
	return bytes.Clone(p.block)
}

// try calls a function of an instance.
func try(mod api.Module, function string, args ...uint64) (uint32, error) {
	results, err := mod.ExportedFunction(function).Call(context.Background(), args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return uint32(results[0]), nil
}

// call is try of a call that can't fail.
func call(t testing.TB, mod api.Module, function string, args ...uint64) int {
	t.Helper()
	result, err := try(mod, function, args...)
	require.NoError(t, err)
	return int(int32(result))
}

// everywhere runs a test in each place, with each engine. A place is in the outer of two scopes,
// the guests in the inner.
func everywhere(t *testing.T, test func(t *table, p place, s scope.Scope)) {
	for engine, config := range engines {
		for kind, newPlace := range places {
			t.Run(engine+"/"+kind, func(t *testing.T) {
				table := newTable(t, config.WithCloseOnContextDone(true))
				require.NoError(t, table.scratch.Do("place", func(s scope.Scope) error {
					p := newPlace(t, s, room)
					before := p.live()
					p.fill(0xaa)
					err := s.Do("guests", func(s scope.Scope) error { test(table, p, s); return nil })
					assert.Equal(t, before, p.live(), "bytes live before and after")
					return err
				}))
			})
		}
	}
}

// TestMemory: an instance sees zeros, at one address, up to its bound.
func TestMemory(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most + 100})
		compiled := t.compile(guest{min: 1})
		before := p.live()
		for range 3 {
			mod, err := guests.Instantiate(t.Context(), compiled, anonymous)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, p.live()-before, uint64(most))
			lies := address(t, mod)
			assert.Zero(t, lies%16)
			requireZeros(t, mod, 0, page)
			require.Equal(t, 1, call(t, mod, "grow", 0))
			call(t, mod, "poke", page-1, 7)
			require.Equal(t, 1, call(t, mod, "grow", 1))
			requireZeros(t, mod, page, page)
			call(t, mod, "poke", 2*page-1, 8)
			require.Equal(t, -1, call(t, mod, "grow", 3))
			require.Equal(t, -1, call(t, mod, "grow", 1<<30))
			require.Equal(t, 2, call(t, mod, "size"))
			require.Equal(t, 2, call(t, mod, "grow", 2))
			require.Equal(t, -1, call(t, mod, "grow", 1))
			requireZeros(t, mod, 2*page, 2*page)
			require.Equal(t, 7, call(t, mod, "peek", page-1))
			require.Equal(t, 8, call(t, mod, "peek", 2*page-1))
			require.Equal(t, lies, address(t, mod), "it moved")
			require.NoError(t, mod.Close(t.Context()))
			require.NoError(t, mod.Close(t.Context()))
			require.Equal(t, before, p.live())
		}
	})
}

func address(t testing.TB, mod api.Module) uintptr {
	first, ok := mod.Memory().Read(0, 1)
	require.True(t, ok)
	return uintptr(unsafe.Pointer(&first[0]))
}

func requireZeros(t testing.TB, mod api.Module, at, size uint32) {
	t.Helper()
	got, ok := mod.Memory().Read(at, size)
	require.True(t, ok)
	require.True(t, bytes.Equal(make([]byte, size), got), "it sees what another left")
}

// TestDeclared: without a Most the module's own declaration counts.
func TestDeclared(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from})
		mod, err := guests.Instantiate(t.Context(), t.compile(guest{min: 0, max: 2}), anonymous)
		require.NoError(t, err)
		require.Zero(t, call(t, mod, "size"))
		require.Equal(t, 2, call(t, mod, "greedy"))
		requireZeros(t, mod, 0, 2*page)
		_, err = guests.Instantiate(t.Context(), t.compile(guest{name: "vast", min: 1}), anonymous)
		require.ErrorIs(t, err, scope.ErrFull)
		require.EqualError(t, err, `with/wazero: module "vast": Memory.From has no 4294967296 bytes for its `+
			`memory: lower Memory.Most, or make From larger: upfront: full`)
		_, err = guests.Instantiate(t.Context(), t.compile(guest{min: 1}), anonymous)
		require.ErrorContains(t, err, "module 3: ")
	})
}

// TestInScope: without a From memory is in the scope, and its full is the scope's.
func TestInScope(t *testing.T) {
	table := newTable(t, engines["compiler"])
	scratch := table.scratch
	for _, own := range []int{1, 2, 5} {
		err := scratch.Do("request", func(s scope.Scope) error {
			before := s.Free()
			guests := with.NewGuests(s, table.runtime, with.Memory{Most: uint64(own) * page})
			compiled := table.compile(guest{name: "frog", min: 1})
			for made := 0; ; made++ {
				mod, err := guests.Instantiate(t.Context(), compiled, anonymous)
				if err != nil {
					require.Equal(t, int((before-1000)/uint64(own*page)), made)
					require.ErrorContains(t, err, fmt.Sprintf(
						`with/wazero: module "frog": %d bytes for its memory: budget "clients": `, own*page))
					require.ErrorContains(t, err, "raise scratch.size in the plan to ")
					require.ErrorContains(t, err, "; or lower Memory.Most")
					return err
				}
				requireZeros(t, mod, 0, page)
				require.Equal(t, own, call(t, mod, "greedy"))
				requireZeros(t, mod, 0, uint32(own*page))
				for at := range uint64(own * page / 512) {
					call(t, mod, "poke", at*512, 1)
				}
			}
		})
		var full *scope.FullError
		require.ErrorAs(t, err, &full)
		require.Equal(t, "scratch.size", full.Key)
		require.Zero(t, scratch.Depth())
	}
}

// TestSlots: guests of a load run, and grow, after it returned, and end with their slot, in any
// order.
func TestSlots(t *testing.T) {
	table := newTable(t, engines["compiler"])
	compiled := table.compile(guest{min: 1})
	b := budgettest.Open(t, budget.Plan{Name: "clients", Pages: budget.Pages{Prefault: budget.Off},
		Regions: []budget.RegionPlan{{Name: "room", Size: most + page, Slots: 4}}})
	var slots []budget.Region
	var mods []api.Module
	for i := range 4 {
		slot, err := b.Slots("room").Acquire()
		require.NoError(t, err)
		loaded, err := budget.Load(t.Context(), slot, func(s scope.Scope) (*with.Module, error) {
			guests := with.NewGuests(s, table.runtime, with.Memory{Most: most})
			return guests.Instantiate(t.Context(), compiled, anonymous)
		})
		require.NoError(t, err)
		mod := loaded.Get()
		require.Equal(t, most/page, call(t, mod, "greedy"))
		call(t, mod, "poke", most-1, uint64(i))
		slots, mods = append(slots, slot), append(mods, mod)
	}
	for _, i := range []int{2, 0, 3, 1} {
		require.Equal(t, i, call(t, mods[i], "peek", most-1))
		require.NoError(t, slots[i].Release(t.Context()))
		requireLost(t, mods[i])
	}
	slot, err := b.Slots("room").Acquire()
	require.NoError(t, err)
	_, err = budget.Load(t.Context(), slot, func(s scope.Scope) (*with.Module, error) {
		guests := with.NewGuests(s, table.runtime, with.Memory{Most: 2 * most})
		return guests.Instantiate(t.Context(), compiled, anonymous)
	})
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, "regions[0].size", full.Key)
	require.Zero(t, slot.Report().Used)
	require.NoError(t, slot.Release(t.Context()))
}

// TestScopeMisused: a scope that isn't the topmost, or is closed, returns no memory.
func TestScopeMisused(t *testing.T) {
	table := newTable(t, engines["compiler"])
	s := table.scratch.Open("request")
	guests := with.NewGuests(s, table.runtime, with.Memory{Most: most})
	compiled := table.compile(guest{min: 1})
	inner := s.Open("inner")
	_, err := guests.Instantiate(t.Context(), compiled, anonymous)
	var misuse *scope.Misuse
	require.ErrorAs(t, err, &misuse)
	require.ErrorContains(t, err, `while scope "inner", opened in it, is open; close "inner" first`)
	require.NoError(t, inner.Close())
	require.ErrorAs(t, s.Close(), &misuse, "it remembers")
	_, err = guests.Instantiate(t.Context(), compiled, anonymous)
	require.ErrorIs(t, err, scope.ErrClosed)
	require.NoError(t, guests.Close())
}

// TestFull: at a thousand sizes a guest that fits runs, another is an error, and freed room is used
// again.
func TestFull(t *testing.T) {
	steps := step.Pick(50, 50, 500)
	for _, kind := range []string{"buddy", "heap"} {
		table := newTable(t, engines["compiler"])
		compiled := table.compile(guest{name: "frog", min: 1, max: 2})
		random := rand.New(rand.NewPCG(1, 2))
		for step := range steps {
			size := page + step*(room/steps)
			require.NoError(t, table.scratch.Do("place", func(s scope.Scope) error {
				p := places[kind](t, s, size)
				before := p.live()
				err := s.Do("guests", func(s scope.Scope) error {
					guests := with.NewGuests(s, table.runtime, with.Memory{From: p.from, Most: most})
					open := fillWith(t, guests, compiled)
					closed := random.IntN(len(open) + 1)
					random.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
					for _, mod := range open[:closed] {
						require.NoError(t, mod.Close(t.Context()))
					}
					require.Len(t, fillWith(t, guests, compiled), closed)
					return nil
				})
				require.Equal(t, before, p.live())
				return err
			}))
		}
	}
}

// fillWith makes instances until there is no room.
func fillWith(t *testing.T, guests *with.Guests, compiled wazero.CompiledModule) (open []api.Module) {
	for {
		mod, err := guests.Instantiate(t.Context(), compiled, anonymous)
		if err != nil {
			require.ErrorIs(t, err, scope.ErrFull)
			require.ErrorContains(t, err, `module "frog": Memory.From has no 131072 bytes`)
			return open
		}
		require.Equal(t, 2, call(t, mod, "greedy"))
		call(t, mod, "poke", 2*page-1, 1)
		open = append(open, mod)
	}
}

// TestTooLittle: a Most below the module's first pages.
func TestTooLittle(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		for _, limit := range []uint64{1, page - 1, page, 2*page - 1} {
			before := p.live()
			guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: limit})
			_, err := guests.Instantiate(t.Context(), t.compile(guest{name: "frog", min: 2}), anonymous)
			require.ErrorIs(t, err, scope.ErrFull)
			require.EqualError(t, err, fmt.Sprintf(`with/wazero: module "frog" begins with 131072 bytes of `+
				`memory, Memory.Most allows %d: raise it: upfront: full`, limit))
			require.Equal(t, before, p.live())
		}
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: 1})
		mod, err := guests.Instantiate(t.Context(), t.compile(guest{}), anonymous)
		require.NoError(t, err)
		require.Equal(t, -1, call(t, mod, "grow", 1))
		_, err = guests.Instantiate(t.Context(), t.compile(guest{none: true}), anonymous)
		require.NoError(t, err)
	})
}

// hostile guests, the host's action, and the error.
var hostile = []struct {
	name  string
	guest guest
	start string // the start function
	do    func(ctx context.Context, mod api.Module) error
	says  string
}{
	{name: "declares 4 GiB", guest: guest{min: 1 << 16}, says: "begins with 4294967296 bytes of memory"},
	{name: "may grow to 4 GiB", guest: guest{min: 1, max: 1 << 16}, do: grows},
	{name: "grows for ever", guest: guest{min: 1}, do: grows},
	{name: "traps", guest: guest{min: 1}, do: does("trap"), says: "wasm error: unreachable"},
	{name: "loops", guest: guest{min: 1}, do: does("loop"), says: "module closed with context deadline"},
	{name: "reads beyond", guest: guest{min: 1}, do: does("peek", page), says: "out of bounds memory"},
	{name: "starts with a trap", guest: guest{min: 1, start: "trap"}, says: "unreachable"},
	{name: "starts with a loop", guest: guest{min: 1, start: "loop"}, says: "context deadline exceeded"},
	{name: "begins with a trap", guest: guest{min: 1}, start: "trap", says: "unreachable"},
	{name: "begins with a loop", guest: guest{min: 1}, start: "loop", says: "context deadline exceeded"},
	{name: "starts with an exit", guest: guest{min: 1, start: "host"}, says: "exit_code(3)"},
	{name: "begins with an exit", guest: guest{min: 1}, start: "host", says: "exit_code(3)"},
	{name: "exits", guest: guest{min: 1}, do: does("host"), says: "exit_code(3)"},
	{name: "has data beyond", guest: guest{min: 1, data: []byte{1, 2}, at: page - 1},
		says: "out of bounds memory access"},
	{name: "has a name that is taken", guest: guest{name: "taken", min: 1}, says: "already been inst"},
}

func does(function string, args ...uint64) func(context.Context, api.Module) error {
	return func(ctx context.Context, mod api.Module) error {
		_, err := mod.ExportedFunction(function).Call(ctx, args...)
		return err
	}
}

func grows(ctx context.Context, mod api.Module) error {
	pages, err := mod.ExportedFunction("greedy").Call(ctx)
	if err == nil && pages[0] != most/page {
		return fmt.Errorf("it has %d pages", pages[0])
	}
	return err
}

func exits(ctx context.Context, mod api.Module) {
	_ = mod.CloseWithExitCode(ctx, 3)
	panic(sys.NewExitError(3))
}

// TestHostile: every byte comes back at once, and the next guest runs as usual.
func TestHostile(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		t.host = exits
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		good := t.compile(guest{name: "taken", min: 1, data: []byte{1, 2}, at: page - 2})
		still, err := guests.Instantiate(t.Context(), good, wazero.NewModuleConfig())
		require.NoError(t, err)
		call(t, still, "poke", 100, 100)
		before := p.live()
		for _, row := range hostile {
			config := wazero.NewModuleConfig().WithStartFunctions(row.start)
			limit := time.Minute
			if strings.Contains(row.name, "loop") {
				limit = 10 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			mod, err := guests.Instantiate(ctx, t.compile(row.guest), config)
			if err == nil && row.do != nil {
				err = row.do(ctx, mod)
			}
			cancel()
			if row.says == "" {
				require.NoError(t, err, row.name)
			} else {
				require.ErrorContains(t, err, row.says, row.name)
			}
			if mod != nil {
				require.NoError(t, mod.Close(t.Context()))
			}
			require.Equal(t, before, p.live(), row.name)
			p.fill(0xaa)

			mod, err = guests.Instantiate(t.Context(), good, anonymous)
			require.NoError(t, err)
			require.Equal(t, 2, call(t, mod, "peek", page-1))
			requireZeros(t, mod, 0, page-2)
			require.NoError(t, mod.Close(t.Context()))
		}
		require.Equal(t, 100, call(t, still, "peek", 100))
	})
}

// TestExit: a guest that exits with 0 when it starts is made and closed.
func TestExit(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		t.host = func(ctx context.Context, mod api.Module) {
			_ = mod.Close(ctx)
			panic(sys.NewExitError(0))
		}
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		before := p.live()
		config := anonymous.WithStartFunctions("host")
		mod, err := guests.Instantiate(t.Context(), t.compile(guest{min: 1}), config)
		require.NoError(t, err)
		require.True(t, mod.IsClosed())
		require.Equal(t, before, p.live())
		requireLost(t, mod)
	})
}

// TestExitInScope: such a guest in a scope has no memory, before the scope closes and after.
func TestExitInScope(t *testing.T) {
	table := newTable(t, engines["compiler"])
	s := table.scratch.Open("request")
	guests := with.NewGuests(s, table.runtime, with.Memory{Most: most})
	_, err := guests.Instantiate(t.Context(), table.compile(guest{min: 1, start: "trap"}), anonymous)
	require.ErrorContains(t, err, "unreachable")
	table.host = func(ctx context.Context, mod api.Module) { _ = mod.Close(ctx) }
	mod, err := guests.Instantiate(t.Context(), table.compile(guest{min: 1}),
		anonymous.WithStartFunctions("host"))
	require.NoError(t, err)
	requireLost(t, mod)
	require.NoError(t, s.Close())
	requireLost(t, mod)
}

// TestTrapsWhenItsTimeIsOver: wazero keeps the memory of a guest whose call fails just after its
// context ended.
func TestTrapsWhenItsTimeIsOver(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		before := p.live()
		for range 3 {
			mod, err := guests.Instantiate(t.Context(), t.compile(guest{min: 1}), anonymous)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			t.host = func(context.Context, api.Module) {
				for cancel(); !mod.IsClosed(); {
					runtime.Gosched()
				}
				panic("it traps")
			}
			_, err = mod.ExportedFunction("host").Call(ctx)
			require.ErrorContains(t, err, "it traps")
			require.NoError(t, mod.Close(t.Context()))
			require.Equal(t, before, p.live())
			requireLost(t, mod)
		}
		_, err := guests.Instantiate(t.Context(), t.compile(guest{min: 1}), anonymous)
		require.NoError(t, err)
	})
}

// requireLost fails if a function of the instance can read or write.
func requireLost(t testing.TB, mod api.Module) {
	t.Helper()
	for _, f := range functions[1:] {
		if strings.Contains(strings.ToLower(f.name), "loop") || strings.HasSuffix(f.name, "Host") ||
			f.name == "pokeByTable" {
			continue
		}
		args := []uint64{1, 0x77}[:len(mod.ExportedFunction(f.name).Definition().ParamTypes())]
		_, err := try(mod, f.name, args...)
		require.Error(t, err, f.name)
		if f.name == "answer" || f.name == "size" || f.name == "grow" {
			var exit *sys.ExitError
			require.ErrorAs(t, err, &exit, f.name)
		}
		if f.name == "peek" || f.name == "poke" {
			require.ErrorContains(t, err, "out of bounds memory access", f.name)
		}
	}
	require.False(t, mod.Memory().WriteByte(0, 1))
	_, ok := mod.Memory().Read(0, 1)
	require.False(t, ok)
	_, ok = mod.Memory().Grow(1)
	require.False(t, ok)
	_, ok = mod.Memory().Grow(100)
	require.False(t, ok)
	require.Zero(t, mod.Memory().Size())
}

// TestUsedAfterItsScope: a closed instance, a module that imports its memory, and a module with a
// function of it don't touch the old memory.
func TestUsedAfterItsScope(t *testing.T) {
	grown := map[string]guest{
		"begun":  {name: "frog", min: 1},
		"fixed":  {name: "frog", min: 2, max: 2},
		"shared": {name: "frog", min: 1, max: 4, shared: true},
		"full":   {name: "frog", min: 1, max: 3, shared: true},
	}
	for name, g := range grown {
		everywhere(t, func(t *table, p place, s scope.Scope) {
			g := g
			others := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
			host, err := others.Instantiate(t.Context(), t.compile(guest{name: "table", min: 1}),
				wazero.NewModuleConfig())
			require.NoError(t, err)

			inner := s.Open("inner")
			guests := with.NewGuests(inner, t.runtime, with.Memory{From: p.from, Most: most})
			g.table = "table"
			mod, err := guests.Instantiate(t.Context(), t.compile(g), wazero.NewModuleConfig())
			require.NoError(t, err)
			if name == "full" {
				call(t, mod, "greedy")
			}
			g.memory, g.table, g.name = "frog", "", "importer"
			importer, err := others.Instantiate(t.Context(), t.compile(g), anonymous)
			require.NoError(t, err)
			call(t, host, "pokeByTable", 5, 66)
			require.Equal(t, 66, call(t, importer, "peek", 5))
			require.NoError(t, inner.Close())

			p.fill(0x55)
			before := p.bytes()
			requireLost(t, mod)
			for _, write := range []struct {
				mod      api.Module
				function string
			}{{importer, "poke"}, {host, "pokeByTable"}} {
				_, err = try(write.mod, write.function, 5, 77)
				require.ErrorContains(t, err, "out of bounds memory access", name)
			}
			require.True(t, bytes.Equal(before, p.bytes()), "%s: it touched what isn't its own", name)
			require.Zero(t, call(t, host, "peek", 5))
		})
	}
}

// TestClosedInACall: a guest whose host closes it, or its scope, during a call keeps its memory
// until the call returns.
func TestClosedInACall(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		var inner scope.Scope
		closes := []func(mod *with.Module){
			func(mod *with.Module) { require.NoError(t, mod.Close(t.Context())) },
			func(mod *with.Module) { require.NoError(t, mod.Module.Close(t.Context())) },
			func(*with.Module) { require.NoError(t, inner.Close()) },
		}
		before := p.live()
		for i, fn := range closes {
			for function, args := range map[string][]uint64{"peekAfterHost": {1}, "pokeAfterHost": {1, 2}} {
				inner = s.Open("inner")
				guests := with.NewGuests(inner, t.runtime, with.Memory{From: p.from, Most: most})
				mod, err := guests.Instantiate(t.Context(), t.compile(guest{min: 1}), anonymous)
				require.NoError(t, err)
				had := p.live()
				t.host = func(context.Context, api.Module) {
					fn(mod)
					require.Equal(t, had, p.live())
					_, grown := mod.Memory().Grow(1)
					require.False(t, grown)
				}
				_, err = try(mod, function, args...)
				var exit *sys.ExitError
				require.ErrorAs(t, err, &exit)
				require.Equal(t, before, p.live())
				requireLost(t, mod)
				if i < 2 {
					require.NoError(t, inner.Close())
				}
			}
		}
	})
}

// TestClosedInACallInScope: the scope that closes takes the memory at once.
func TestClosedInACallInScope(t *testing.T) {
	for _, config := range engines {
		table := newTable(t, config)
		for function, args := range map[string][]uint64{"peekAfterHost": {1}, "pokeAfterHost": {1, 2}} {
			s := table.scratch.Open("request")
			guests := with.NewGuests(s, table.runtime, with.Memory{Most: most})
			mod, err := guests.Instantiate(t.Context(), table.compile(guest{min: 1}), anonymous)
			require.NoError(t, err)
			table.host = func(context.Context, api.Module) { require.NoError(t, s.Close()) }
			_, err = try(mod, function, args...)
			require.ErrorContains(t, err, "out of bounds memory access")
			requireLost(t, mod)
		}
	}
}

// TestClosedByAnother: a running call keeps the memory until it returns.
func TestClosedByAnother(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		before := p.live()
		mod, err := guests.Instantiate(t.Context(), t.compile(guest{min: 1}), anonymous)
		require.NoError(t, err)
		had := p.live()
		entered, closed, done := make(chan bool), make(chan bool), make(chan error)
		t.host = func(context.Context, api.Module) { entered <- true; <-closed }
		go func() {
			_, err := try(mod, "pokeAfterHost", 1, 2)
			done <- err
		}()
		<-entered
		require.NoError(t, mod.Close(t.Context()))
		require.Equal(t, had, p.live())
		close(closed)
		var exit *sys.ExitError
		require.ErrorAs(t, <-done, &exit)
		require.Equal(t, before, p.live())
		requireLost(t, mod)

		mod, err = guests.Instantiate(t.Context(), t.compile(guest{min: 1}), anonymous)
		require.NoError(t, err)
		go func() {
			_, err := try(mod, "hostAndLoop")
			done <- err
		}()
		<-entered
		require.NoError(t, mod.Close(t.Context()))
		require.ErrorAs(t, <-done, &exit, "a guest that loops ends too")
		require.Equal(t, before, p.live())
	})
}

// TestRuntimeFirst: a runtime that closes before the scope closes its guests, which frees their
// memory.
func TestRuntimeFirst(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		before := p.live()
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		compiled := t.compile(guest{min: 1})
		for range 3 {
			_, err := guests.Instantiate(t.Context(), compiled, anonymous)
			require.NoError(t, err)
		}
		require.NoError(t, t.runtime.Close(t.Context()))
		require.Equal(t, before, p.live())
		_, err := guests.Instantiate(t.Context(), compiled, anonymous)
		require.ErrorContains(t, err, "runtime closed")
		require.Equal(t, before, p.live())
	})
}

// TestContextThatIsPassedOn: an instance made with a start function's context gets no memory of
// ours; with another context it may.
func TestContextThatIsPassedOn(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		before := p.live()
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		inner, outer := t.compile(guest{min: 1}), t.compile(guest{name: "frog", min: 1, start: "host"})
		t.host = func(ctx context.Context, _ api.Module) {
			_, err := t.runtime.InstantiateModule(ctx, inner, anonymous)
			require.NoError(t, err)
		}
		_, err := guests.Instantiate(t.Context(), outer, anonymous)
		require.ErrorContains(t, err, `BUG: a start function of module "frog" instantiates another module`)
		require.Equal(t, before, p.live())
		t.host = func(ctx context.Context, _ api.Module) {
			_, err := guests.Instantiate(ctx, inner, anonymous)
			require.NoError(t, err)
		}
		_, err = guests.Instantiate(t.Context(), outer, anonymous)
		require.NoError(t, err)
	})
}

// TestWhatDiffers shows the differences from wazero alone that the page lists.
func TestWhatDiffers(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "pond")
	everywhere(t, func(t *table, p place, s scope.Scope) {
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		var got context.Context
		var caller api.Module
		t.host = func(ctx context.Context, mod api.Module) { got, caller = ctx, mod }
		frog := t.compile(guest{name: "frog", min: 1, start: "host"})
		mod, err := guests.Instantiate(ctx, frog, wazero.NewModuleConfig())
		require.NoError(t, err)
		require.True(t, got != ctx, "in a start function it has the allocator")
		require.Equal(t, "pond", got.Value(key{}))
		_, err = mod.ExportedFunction("host").Call(ctx)
		require.NoError(t, err)
		require.True(t, got == ctx)
		require.True(t, caller == mod.Module && caller != api.Module(mod))
		require.True(t, t.runtime.Module("frog") == mod.Module)

		plain, err := t.runtime.InstantiateModule(ctx, t.compile(guest{min: 1, max: 4}), anonymous)
		require.NoError(t, err)
		for memory, stays := range map[api.Memory]bool{mod.Memory(): true, plain.Memory(): false} {
			before, ok := memory.Read(0, 8)
			require.True(t, ok)
			_, ok = memory.Grow(1)
			require.True(t, ok && memory.WriteByte(0, 7))
			require.Equal(t, stays, before[0] == 7)
		}
		require.NoError(t, plain.Close(ctx))
	})
}

// TestGoexit: a start function that ends its goroutine leaves a module in wazero, until the runtime
// closes.
func TestGoexit(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		before := p.live()
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		t.host = func(context.Context, api.Module) { runtime.Goexit() }
		compiled := t.compile(guest{name: "frog", min: 1})
		var left sync.WaitGroup
		left.Go(func() {
			_, _ = guests.Instantiate(t.Context(), compiled, wazero.NewModuleConfig().WithStartFunctions("host"))
		})
		left.Wait()
		require.Greater(t, p.live(), before)
		require.Zero(t, call(t, t.runtime.Module("frog"), "peek", 1))
		require.NoError(t, t.runtime.Close(t.Context()))
		require.Equal(t, before, p.live())
	})
}

// TestManyComeAndGo: the scope notes at most twice as many instances as are open.
func TestManyComeAndGo(t *testing.T) {
	table := newTable(t, engines["compiler"])
	require.NoError(t, table.scratch.Do("place", func(s scope.Scope) error {
		p := places["heap"](t, s, room)
		before := p.live()
		err := s.Do("guests", func(s scope.Scope) error {
			guests := with.NewGuests(s, table.runtime, with.Memory{From: p.from, Most: page})
			compiled := []wazero.CompiledModule{
				table.compile(guest{min: 1}), table.compile(guest{none: true}), table.compile(guest{})}
			var open [40]api.Module
			for i := range 5000 {
				mod, err := guests.Instantiate(t.Context(), compiled[i%3], anonymous)
				require.NoError(t, err)
				place := i % 40 * 7 % 40
				if open[place] != nil {
					require.NoError(t, open[place].Close(t.Context()))
				}
				open[place] = mod
				require.LessOrEqual(t, guests.Noted(), 2*40+40)
			}
			return nil
		})
		require.Equal(t, before, p.live())
		return err
	}))
}

// TestGoroutines: goroutines make, use and close instances in one place; they leave some to the
// scope.
func TestGoroutines(t *testing.T) {
	rounds := step.Pick(50, 50, 500)
	const workers = 8
	b := budgettest.Open(t, budget.Plan{Name: "clients", Pages: budget.Pages{Prefault: budget.Off},
		Regions: []budget.RegionPlan{{Name: "guests", Size: 2 * room}},
		Scratch: budget.ScratchPlan{Workers: workers, Each: 1, Size: page}})
	table := newTable(t, engines["compiler"])
	var p place
	var all *with.Guests
	_, err := budget.Load(t.Context(), b.Region("guests"), func(s scope.Scope) (*place, error) {
		p = places["buddy"](t, s, room)
		all = with.NewGuests(s, table.runtime, with.Memory{From: p.from, Most: most})
		return &p, nil
	})
	require.NoError(t, err)
	before := p.live()
	compiled := table.compile(guest{min: 1})
	var group sync.WaitGroup
	var passed [workers]chan api.Module // for another to close
	for i := range passed {
		passed[i] = make(chan api.Module, 2)
	}
	for worker := range workers {
		group.Go(func() {
			defer close(passed[worker])
			random := rand.New(rand.NewPCG(uint64(worker), 2))
			for range rounds {
				err := b.Scratch(worker, 0).Do("request", func(s scope.Scope) error {
					guests, own := all, random.IntN(2) == 0
					if own {
						guests = with.NewGuests(s, table.runtime, with.Memory{From: p.from, Most: most})
					}
					mod, err := guests.Instantiate(context.Background(), compiled, anonymous)
					if errors.Is(err, scope.ErrFull) {
						return nil
					}
					if err == nil {
						err = work(mod, byte(worker))
					}
					if err == nil && !own {
						passed[worker] <- mod
					}
					return err
				})
				assert.NoError(t, err)
			}
		})
		group.Go(func() {
			for mod := range passed[worker] {
				assert.NoError(t, mod.Close(context.Background()))
			}
		})
	}
	group.Wait()
	require.Equal(t, before, p.live())
	for range 5 {
		_, err := all.Instantiate(t.Context(), compiled, anonymous)
		require.NoError(t, err, "also after the load: memory is another's")
	}
	require.NoError(t, b.Region("guests").Rewind(t.Context()))
}

// work fills a memory with a worker's number, and checks that it stays.
func work(mod api.Module, value byte) error {
	pages, err := try(mod, "greedy")
	if err != nil || pages != most/page {
		return fmt.Errorf("%d pages, %w", pages, err)
	}
	mine := bytes.Repeat([]byte{value}, most)
	got, _ := mod.Memory().Read(0, most)
	if !bytes.Equal(got, make([]byte, most)) {
		return errors.New("it isn't zeroed")
	}
	mod.Memory().Write(0, mine)
	for at := uint64(0); at < most; at += most / 16 {
		if got, err := try(mod, "peek", at); err != nil || byte(got) != value {
			return fmt.Errorf("%d at %d: %w", got, at, err)
		}
	}
	if !bytes.Equal(got, mine) {
		return errors.New("another wrote to it")
	}
	return nil
}

// TestClosedMeanwhile: an instance that is made while the guests close leaves nothing.
func TestClosedMeanwhile(t *testing.T) {
	everywhere(t, func(t *table, p place, s scope.Scope) {
		before := p.live()
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		t.host = func(context.Context, api.Module) { require.NoError(t, guests.Close()) }
		_, err := guests.Instantiate(t.Context(), t.compile(guest{min: 1}), anonymous.WithStartFunctions("host"))
		require.ErrorIs(t, err, scope.ErrClosed)
		require.Equal(t, before, p.live())
	})
}

// refuses is a place that refuses to free.
type refuses struct{ arena.Freer }

func (refuses) Free(unsafe.Pointer) error { return errRefused }

var errRefused = errors.New("it isn't mine")

// TestRefused: the place's error comes from the guests' Close.
func TestRefused(t *testing.T) {
	table := newTable(t, engines["compiler"])
	require.NoError(t, table.scratch.Do("place", func(s scope.Scope) error {
		p := places["heap"](t, s, room)
		p.from.(arena.Shared).MayLive() // the place never gets it back
		guests := with.NewGuests(s, table.runtime, with.Memory{From: refuses{p.from}, Most: most})
		mod, err := guests.Instantiate(t.Context(), table.compile(guest{name: "frog", min: 1}), anonymous)
		require.NoError(t, err)
		require.NoError(t, mod.Close(t.Context()))
		err = guests.Close()
		require.ErrorIs(t, err, errRefused)
		require.EqualError(t, err, `with/wazero: the memory of module "frog": it isn't mine`)
		return nil
	}))
}

// TestEachRequestRefused: at each request the error is a full error, and no memory stays in use.
func TestEachRequestRefused(t *testing.T) {
	table := newTable(t, engines["compiler"])
	compiled := table.compile(guest{min: 1})
	plan := budget.Plan{Name: "clients", Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 16 * page}}
	for _, inScope := range []bool{true, false} {
		budgettest.FailEach(t, plan, func(b *budget.Budget) error {
			return b.Scratch(0, 0).Do("request", func(s scope.Scope) error {
				memory := with.Memory{Most: 2 * page}
				if !inScope {
					heap, err := arena.NewHeap(s.BytesUnzeroed(8*page, 64), 0)
					require.NoError(t, err)
					memory.From = heap
				}
				guests := with.NewGuests(s, table.runtime, memory)
				for range 3 {
					mod, err := guests.Instantiate(t.Context(), compiled, anonymous)
					if err != nil {
						return err
					}
					require.Equal(t, 2, call(t, mod, "greedy"))
				}
				return nil
			})
		})
	}
}

// modelled is an instance and the expected bytes of its memory.
type modelled struct {
	api.Module
	bytes []byte
}

// TestAsAModel: in any order of events each memory has its guest's bytes, and zeros.
func TestAsAModel(t *testing.T) {
	steps := step.Pick(300, 300, 3000)
	everywhere(t, func(t *table, p place, s scope.Scope) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		compiled := []wazero.CompiledModule{t.compile(guest{min: 1}), t.compile(guest{}),
			t.compile(guest{min: 2, max: 3})}
		before := p.live()
		guests := with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
		var open []*modelled
		for step := range steps {
			what := fmt.Sprintf("seed %#x, step %d", seed, step)
			if len(open) == 0 || random.IntN(6) == 0 {
				mod, err := guests.Instantiate(t.Context(), compiled[random.IntN(3)], anonymous)
				if err == nil {
					open = append(open, &modelled{mod, make([]byte, mod.Memory().Size())})
				} else {
					require.ErrorIs(t, err, scope.ErrFull, what)
				}
				continue
			}
			i := random.IntN(len(open))
			m := open[i]
			switch random.IntN(8) {
			case 0:
				m.check(t, what)
				require.NoError(t, m.Close(t.Context()))
				open = append(open[:i], open[i+1:]...)
			case 1, 2:
				had := len(m.bytes) / page
				if grows := random.IntN(3); call(t, m, "grow", uint64(grows)) == had {
					m.bytes = append(m.bytes, make([]byte, grows*page)...)
				}
			default:
				at := random.IntN(most)
				_, err := try(m, "poke", uint64(at), uint64(at%255+1))
				require.Equal(t, at < len(m.bytes), err == nil, what)
				if err == nil {
					m.bytes[at] = byte(at%255 + 1)
				}
			}
			if step%1000 == 999 {
				require.NoError(t, guests.Close())
				require.Equal(t, before, p.live(), what)
				guests = with.NewGuests(s, t.runtime, with.Memory{From: p.from, Most: most})
				open = nil
			}
		}
		for _, m := range open {
			m.check(t, fmt.Sprintf("seed %#x, at the end", seed))
		}
	})
}

func (m *modelled) check(t testing.TB, what string) {
	require.EqualValues(t, len(m.bytes), m.Memory().Size(), what)
	got, ok := m.Memory().Read(0, uint32(len(m.bytes)))
	require.True(t, ok, what)
	require.True(t, bytes.Equal(m.bytes, got), what)
}

func TestPage(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	shown, _, found = strings.Cut(shown, "```\n")
	require.True(t, found)
	require.Contains(t, string(source), shown)
}
