package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/wazero"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// mods is a compiled module, and the heap for the memories of its instances.
type mods struct {
	*options
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	guests   *with.Guests
	heap     arena.Heap
	shared   arena.Shared
}

// openMods compiles the module and makes the heap in the region mods.
func openMods(ctx context.Context, b *budget.Budget, o *options, wasm []byte) (*mods, error) {
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true)
	m := &mods{options: o, runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	var err error
	if m.compiled, err = m.runtime.CompileModule(ctx, wasm); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", o.file, err), m.close())
	}
	_, err = budget.Load(ctx, b.Region("mods"), func(s scope.Scope) (*mods, error) {
		return m, m.load(s)
	})
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// load makes the heap of all free bytes in s, except for the owner of the guests.
func (m *mods) load(s scope.Scope) (err error) {
	const owner = 128
	if m.heap, err = arena.NewHeap(s.BytesUnzeroed(int(s.Free())-owner, 64), 0); err != nil {
		return err
	}
	if m.shared, err = m.heap.Shared(); err != nil {
		return err
	}
	m.guests = with.NewGuests(s, m.runtime, with.Memory{From: m.shared, Most: m.most})
	return nil
}

// close frees the compiled code. The region mods closes instances that are left, when it is
// emptied.
func (m *mods) close() error { return m.runtime.Close(context.Background()) }

// mod is the instance that chooses for the frogs of a room.
type mod struct {
	limit   time.Duration
	module  api.Module
	tick    api.Function
	memory  api.Memory
	at      uint32 // address of the frogs' places
	choices []game.Choice
	chosen  int
}

const (
	place  = 24 // bytes of a frog in testdata/frog.h
	maxHop = 16 // ticks
)

func (m *mods) instantiate(ctx context.Context, g *game.Game) (*mod, error) {
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	module, err := m.guests.Instantiate(ctx, m.compiled, anonymous)
	if err != nil {
		return nil, err
	}
	x := &mod{limit: m.limit, module: module}
	if err := x.begin(ctx, g); err != nil {
		return nil, errors.Join(x.late(err), module.Close(ctx))
	}
	return x, nil
}

// anonymous allows many instances of one module.
var anonymous = wazero.NewModuleConfig().WithName("")

// late returns err, with the time limit named if it is a timeout.
func (x *mod) late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it takes more than %v for a tick: %w", x.limit, err)
	}
	return err
}

// begin makes the mod allocate places for the frogs of the room.
func (x *mod) begin(ctx context.Context, g *game.Game) error {
	x.choices = make([]game.Choice, g.Level.Frogs.Cap())
	frogs := x.module.ExportedFunction("frogs")
	x.tick = x.module.ExportedFunction("tick")
	x.memory = x.module.ExportedMemory("memory")
	if !takes(frogs, 1, 1) || !takes(x.tick, 2, 0) || x.memory == nil {
		return errors.New("it doesn't export a memory, and frogs and tick as in frog.h")
	}
	at, err := frogs.Call(ctx, uint64(len(x.choices)))
	if err != nil {
		return err
	}
	x.at = uint32(at[0])
	_, err = x.places()
	return err
}

// takes reports whether f has that many parameters and results, all of 32 bits.
func takes(f api.Function, params, results int) bool {
	if f == nil {
		return false
	}
	types := append(f.Definition().ParamTypes(), f.Definition().ResultTypes()...)
	for _, t := range types {
		if t != api.ValueTypeI32 {
			return false
		}
	}
	return len(f.Definition().ParamTypes()) == params && len(types) == params+results
}

func (x *mod) places() ([]byte, error) {
	places, ok := x.memory.Read(x.at, uint32(len(x.choices))*place)
	if !ok || x.at == 0 {
		return nil, fmt.Errorf("it gives %d frogs their places at %d, in %d bytes of memory",
			len(x.choices), x.at, x.memory.Size())
	}
	return places, nil
}

// choose calls the mod to choose for the frogs that wait.
func (x *mod) choose(ctx context.Context, g *game.Game) error {
	places, err := x.places()
	if err != nil {
		return err
	}
	for i := range x.choices {
		tell(g, i, places[i*place:][:place])
	}
	ctx, cancel := context.WithTimeout(ctx, x.limit)
	defer cancel()
	arguments := [2]uint64{uint64(g.Level.Room.Tick), uint64(len(x.choices))}
	if err := x.tick.CallWithStack(ctx, arguments[:]); err != nil {
		return x.late(err)
	}
	for i := range x.choices {
		if x.choices[i], err = hear(g, i, places[i*place:][:place]); err != nil {
			return err
		}
	}
	for i := range x.choices {
		if x.choices[i].Made {
			x.chosen++
		}
	}
	return nil
}

// tell fills the i-th place with the position of the frog and the way to the nearest player.
func tell(g *game.Game, i int, at []byte) {
	clear(at)
	f := g.Level.Frogs.At(i)
	if f == nil {
		return
	}
	dx, dy := toPlayer(g.Level, f.At)
	for k, word := range [...]int32{f.At.X >> doom.UnitBits, f.At.Y >> doom.UnitBits, dx, dy} {
		binary.LittleEndian.PutUint32(at[4*k:], uint32(word))
	}
	if f.Waits() {
		at[16] = 1
	}
	at[17] = f.Heading
}

// toPlayer returns the way to the nearest player, in units, or 0, 0 without players.
func toPlayer(l *game.Level, from doom.Point) (dx, dy int32) {
	least := int64(-1)
	for i := range l.Players.Cap() {
		p := l.Player(i)
		if p == nil {
			continue
		}
		x, y := (int64(p.At.X)-int64(from.X))>>doom.UnitBits, (int64(p.At.Y)-int64(from.Y))>>doom.UnitBits
		if d := x*x + y*y; least < 0 || d < least {
			least, dx, dy = d, int32(x), int32(y)
		}
	}
	return dx, dy
}

// hear reads and checks the choice for the i-th frog.
func hear(g *game.Game, i int, at []byte) (c game.Choice, err error) {
	f := g.Level.Frogs.At(i)
	if f == nil || !f.Waits() {
		return c, nil
	}
	heading, hop, rest, croak := at[17], at[18], at[19], at[20]
	if heading > 15 || hop > maxHop || croak > 1 {
		return c, fmt.Errorf("it chooses a heading of %d, a hop of %d ticks and %d croaks for frog %d",
			heading, hop, croak, i)
	}
	return game.Choice{Made: true, Heading: heading, Hop: hop, Rest: rest, Croak: croak == 1}, nil
}
