package wazero_test

import (
	"context"
	"crypto/rand"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/wazero"
	"github.com/upfront-mem/upfront/tests/clients/paired"
	"github.com/upfront-mem/upfront/tests/step"
)

// initialization is a shape of wazero's own benchmark of that name: an instance is made and closed,
// without a start function. Garbage is a target; 0: none.
type initialization struct {
	name         string
	engine       string
	pages, grows uint32
	many         bool
	rounds       int
	garbage      float64
}

var initializations = []initialization{
	{name: "instance of 64 KiB", engine: "compiler", pages: 1, rounds: 1000, garbage: 0.25},
	{name: "instance of 4 MiB", engine: "compiler", pages: 64, rounds: 150},
	{name: "instance grown to 1 MiB", engine: "compiler", pages: 1, grows: 15, rounds: 150},
	{name: "instance of 64 KiB, many at a time", engine: "compiler", pages: 1, many: true, rounds: 1000},
	{name: "instance of 64 KiB, interpreted", engine: "interpreter", pages: 1, rounds: 1000},
}

// The figures of instrumented builds are meaningless.
const instrumented = arena_c.Checked || arena_c.Race || arena_c.Asan

// slower divides the work where no figure goes to a page.
func slower() int {
	if instrumented {
		return 50
	}
	return step.Pick(10, 10, 1)
}

// TestFigures compares with wazero's default, which takes memory from Go's heap.
func TestFigures(t *testing.T) {
	for _, shape := range initializations {
		compareInstances(t, shape)
	}
	compareMemories(t)
}

func compareInstances(t *testing.T, shape initialization) {
	table := newTable(t, engines[shape.engine])
	compiled := table.compile(guest{min: shape.pages, data: make([]byte, 1000)})
	config := wazero.NewModuleConfig().WithSysNanotime().WithSysWalltime().
		WithRandSource(rand.Reader).WithStartFunctions().WithName("")
	instances := func(instantiate func() (api.Module, error)) func(int) {
		one := func(n int) {
			for range n {
				mod, err := instantiate()
				if err != nil {
					panic(err)
				}
				for range shape.grows {
					mod.Memory().Grow(1)
				}
				_ = mod.Close(t.Context())
			}
		}
		if shape.many {
			return onAll(one)
		}
		return one
	}
	require.NoError(t, table.scratch.Do("guests", func(s scope.Scope) error {
		p := places["buddy"](t, s, 2*room)
		guests := with.NewGuests(s, table.runtime, with.Memory{From: p.from, Most: room})
		if shape.many {
			guests = with.NewGuests(s, table.runtime, with.Memory{From: p.from, Most: page})
		}
		before := p.live()
		figure := paired.Compare(t, shape.name, shape.rounds/slower(),
			instances(func() (api.Module, error) {
				return guests.Instantiate(t.Context(), compiled, config)
			}),
			instances(func() (api.Module, error) {
				return table.runtime.InstantiateModule(t.Context(), compiled, config)
			}))
		paired.Live(t, p.live()-before)
		if shape.garbage != 0 && !instrumented {
			assert.LessOrEqual(t, figure.GarbageRatio, 1.1*shape.garbage, shape.name)
		}
		return nil
	}))
}

// onAll spreads n operations over all processors.
func onAll(one func(int)) func(int) {
	return func(n int) {
		var group sync.WaitGroup
		workers := runtime.GOMAXPROCS(0)
		for range workers {
			group.Go(func() { one(n / workers) })
		}
		group.Wait()
	}
}

// compareMemories has the shapes of wazero's benchmark Memory: reads and writes by the host.
func compareMemories(t *testing.T) {
	table := newTable(t, engines["compiler"])
	compiled := table.compile(guest{min: 1})
	require.NoError(t, table.scratch.Do("guests", func(s scope.Scope) error {
		guests := with.NewGuests(s, table.runtime, with.Memory{Most: page})
		mod, err := guests.Instantiate(t.Context(), compiled, anonymous)
		require.NoError(t, err)
		plain, err := table.runtime.InstantiateModule(context.Background(), compiled, anonymous)
		require.NoError(t, err)
		accesses := func(m api.Memory) func(int) {
			return func(n int) {
				for range n * 250 {
					v, read := m.ReadByte(10)
					w, all := m.ReadUint32Le(20)
					if !read || !all || !m.WriteByte(10, v+1) || !m.WriteUint32Le(20, w+1) {
						panic("out of bounds")
					}
				}
			}
		}
		paired.Compare(t, "1000 reads and writes by the host", 10_000/slower(), accesses(mod.Memory()),
			accesses(plain.Memory()))
		return plain.Close(t.Context())
	}))
}
