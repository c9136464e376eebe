package save_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// pond is a small game, whose steps depend only on its state and their inputs.
type pond struct {
	region budget.Region
	state  *save.State
	ring   *save.Ring
	room   *room
	frogs  scope.HandlePool[frog]
	flies  scope.Pool[fly]
	marks  []mark
}

type room struct {
	Tick, Spawned uint64
	Frogs         arena.Slice[arena.Handle[frog]]
	Marks         arena.Slice[mark]
	Used          uint32
	_             [4]byte
}

type frog struct{ X, Y, Age, Mood int32 }

type fly struct{ At, Left uint64 }

type mark struct{ Where, Who uint32 }

var (
	roomMaker   = scope.Plain[room]()
	frogMaker   = scope.Plain[frog]()
	flyMaker    = scope.Plain[fly]()
	markMaker   = scope.Plain[mark]()
	handleMaker = scope.Plain[arena.Handle[frog]]()
	byteMaker   = scope.Plain[byte]()
)

const frogsMost, fliesMost = 40, 24

var errHostile = errors.New("a room that no loader makes")

func pondPlan() budget.Plan {
	return budget.Plan{Name: "pond", Regions: []budget.RegionPlan{
		{Name: "level", Size: 256 * budget.KiB, State: true}}}
}

func open(t testing.TB, plan budget.Plan) *budget.Budget {
	b, err := budget.Open(plan)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := b.Close(); !errors.Is(err, budget.ErrClosed) {
			require.NoError(t, err)
		}
	})
	return b
}

// newPond loads a pond with a ring of that many places.
func newPond(t testing.TB, b *budget.Budget, name string, places int) *pond {
	return pondIn(t, b.Region(name), places)
}

// pondIn is newPond in a region or slot.
func pondIn(t testing.TB, region budget.Region, places int) *pond {
	p := &pond{region: region}
	_, err := budget.Load(context.Background(), p.region, func(s scope.Scope) (*pond, error) {
		copy(byteMaker.Slice(s, 1000), "what never changes")
		p.state, p.room = save.Begin(p.region, s, roomMaker)
		p.frogs = frogMaker.HandlePool(s, frogsMost)
		p.room.Frogs = arena.SliceOf(p.region.Base(), handleMaker.Slice(s, frogsMost))
		_ = scope.Label(s, "flies", func() error {
			p.flies = flyMaker.Pool(s, fliesMost)
			return nil
		})
		p.room.Marks = arena.SliceOf(p.region.Base(), markMaker.Slice(s, 500))
		made := *p.room
		err := p.state.Rebuild(func() error {
			if now := p.room; now.Frogs != made.Frogs || now.Marks != made.Marks || now.Used > 500 {
				return errHostile // a hostile snapshot may cause it
			}
			p.marks = p.room.Marks.Get(p.region.Base())[:p.room.Used]
			return nil
		})
		p.ring = save.NewRing(s, places, p.state)
		return p, err
	})
	require.NoError(t, err)
	return p
}

// step plays a tick.
func (p *pond) step(input uint64) {
	r := rand.New(rand.NewPCG(input, p.room.Tick))
	handles := p.room.Frogs.Get(p.region.Base())
	for i := range handles {
		f := p.frogs.At(handles[i])
		switch {
		case f == nil && r.IntN(4) == 0:
			if f, handles[i] = p.frogs.Get(); f != nil {
				f.X, f.Age = int32(r.Uint32()), 1
				p.room.Spawned++
			}
		case f == nil:
		case r.IntN(9) == 0:
			p.frogs.Put(handles[i])
		default:
			f.Y += f.X
			f.Age++
		}
	}
	for i := range fliesMost {
		if f := p.flies.At(i); f != nil && r.IntN(5) == 0 {
			p.flies.Put(f)
		} else if f == nil && r.IntN(5) == 0 {
			if f := p.flies.Get(); f != nil {
				f.At = r.Uint64()
			}
		}
	}
	all := p.room.Marks.Get(p.region.Base())
	if p.room.Used == uint32(len(all)) {
		p.room.Used = 0
	}
	p.marks = append(all[:p.room.Used], mark{uint32(input), uint32(p.room.Tick)})
	p.room.Used++
	p.room.Tick++
}

func hash(t testing.TB, r *save.Ring, number uint64) uint64 {
	h, err := r.Hash(number)
	require.NoError(t, err)
	return h
}
