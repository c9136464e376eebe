// Package guests is a server whose requests run in WebAssembly guests that stay warm: each guest
// answers many requests. A guest's memory grows with its largest body and never shrinks.
//
// In a budget, each guest has a slot of a region, and its memory grows no further than the slot. A
// guest that has grown is replaced after its request: a load of the slot closes the guest, returns
// its pages to the system, and makes a new guest.
//
// The same server also runs with wazero's own memories, which are on the Go heap. One variant has
// no limit, and keeps its guests. The careful variant has the same limit as the slot, and replaces
// guests that have grown.
package guests

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/wazero"
)

const (
	count   = 8              // guests
	workers = 4              // requests at a time
	most    = 8 * budget.MiB // a guest's memory
	warm    = 1 * budget.MiB // a guest with more memory has grown
	page    = 64 * budget.KiB
)

// plan has a slot for each guest. A page is present from its first use until its slot is emptied.
var plan = budget.Plan{
	Name:  "server",
	Pages: budget.Pages{Prefault: budget.Off},
	Regions: []budget.RegionPlan{{Name: "guest", Slots: count, Size: most + 4*budget.KiB,
		Trim: budget.TrimEmpty, Limits: budget.Limits{Owned: 4}}},
}

// wasm is the module of testdata/guest.c.
//
//go:embed testdata/guest.wasm
var wasm []byte

// anonymous permits many instances of one module.
var anonymous = wazero.NewModuleConfig().WithName("")

// server has the idle guests, and counts their work.
type server struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	slots    *budget.Slots // nil: wazero's own memories
	careful  bool          // guests have a limit, and a guest that has grown is replaced
	idle     chan *guest

	replaced, refused atomic.Uint64
	sum               atomic.Uint32 // of all answers
}

// guest is an instance of the module, and its slot in the budget.
type guest struct {
	slot   budget.Region // zero on the Go heap
	module api.Module
	room   api.Function
	hash   api.Function
}

// open compiles the module and makes the guests.
func open(ctx context.Context, slots *budget.Slots, careful bool) (s *server, err error) {
	config := wazero.NewRuntimeConfig()
	if careful && slots == nil {
		config = config.WithMemoryLimitPages(most / page)
	}
	s = &server{runtime: wazero.NewRuntimeWithConfig(ctx, config), slots: slots, careful: careful,
		idle: make(chan *guest, count)}
	if s.compiled, err = s.runtime.CompileModule(ctx, wasm); err != nil {
		return s, err
	}
	for range count {
		g := &guest{}
		if slots != nil {
			if g.slot, err = slots.Acquire(); err != nil {
				return s, err
			}
		}
		s.idle <- g
		if err := s.replace(ctx, g); err != nil {
			return s, err
		}
	}
	return s, nil
}

// close ends the guests and frees their code. No request may run.
func (s *server) close(ctx context.Context) (err error) {
	for close(s.idle); s.slots != nil && len(s.idle) > 0; {
		err = errors.Join(err, (<-s.idle).slot.Release(ctx))
	}
	return errors.Join(err, s.runtime.Close(ctx))
}

// replace makes a guest in place of the old one, if there is one. The load of a slot closes the old
// guest first.
func (s *server) replace(ctx context.Context, g *guest) error {
	if s.slots == nil {
		return s.replaceOnHeap(ctx, g)
	}
	_, err := budget.Load(ctx, g.slot, func(slot scope.Scope) (*guest, error) {
		guests := with.NewGuests(slot, s.runtime, with.Memory{Most: most})
		module, err := guests.Instantiate(ctx, s.compiled, anonymous)
		if err == nil {
			g.use(module)
		}
		return g, err
	})
	return err
}

func (s *server) replaceOnHeap(ctx context.Context, g *guest) error {
	if g.module != nil {
		_ = g.module.Close(ctx) // no error: the module has no files
	}
	module, err := s.runtime.InstantiateModule(ctx, s.compiled, anonymous)
	if err == nil {
		g.use(module)
	}
	return err
}

func (g *guest) use(m api.Module) {
	g.module, g.room, g.hash = m, m.ExportedFunction("room"), m.ExportedFunction("hash")
}

// errLarge is the answer to a body that the guest has no room for.
var errLarge = errors.New("413: the body is too large")

// answer reads a body into the guest's memory, and returns its hash.
func (g *guest) answer(ctx context.Context, r request) (uint32, error) {
	at, err := g.room.Call(ctx, uint64(r.size))
	if err != nil {
		return 0, err
	}
	if at[0] == 0 { // memory.grow returned -1
		return 0, errLarge
	}
	body, _ := g.module.Memory().Read(uint32(at[0]), r.size)
	if _, err := io.ReadFull(r.body, body); err != nil {
		return 0, err
	}
	hash, err := g.hash.Call(ctx, at[0], uint64(r.size))
	if err != nil {
		return 0, err
	}
	return uint32(hash[0]), nil
}

// answer passes a request to the guest that was idle for longest.
func (s *server) answer(ctx context.Context, r request) (hash uint32, err error) {
	g := <-s.idle
	defer func() { s.idle <- g }()
	hash, err = g.answer(ctx, r)
	if s.careful && g.module.Memory().Size() > warm {
		s.replaced.Add(1)
		if failed := s.replace(ctx, g); failed != nil {
			return 0, failed
		}
	}
	return hash, err
}

// serve answers the first n requests.
func (s *server) serve(ctx context.Context, n int) error {
	var group sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				hash, err := s.answer(ctx, number(i))
				if err == errLarge {
					s.refused.Add(1)
				} else {
					errs[w] = err
					s.sum.Add(hash)
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
