package fight

import (
	"context"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

type (
	// regional is the fight in a region of a budget: the state, and Go values that point to it.
	regional struct {
		*state
		shots  scope.HandlePool[shot]
		sparks scope.Pool[Spark]
		combos [2]container.List[Hit]
		buffs  [2]container.List[Buff]
		trails [2]container.Deque[Point]
		events container.List[Event]
		rounds container.List[Round]
		ring   *save.Ring
		b      *budget.Budget
	}

	state struct {
		Match
		fighters [2]fighter
		props    [mostProps]Prop
	}

	fighter struct {
		Fighter
		inputs  [mostInputs]Input
		targets [2 + mostProps]uint32 // hit by this move, with the frame
		last    arena.Handle[shot]
	}

	shot struct {
		Shot
		path [mostPath]Point
	}
)

var (
	stateMaker = scope.Plain[state]()
	shotMaker  = scope.Plain[shot]()
	sparkMaker = scope.Plain[Spark]()
	hitMaker   = scope.Plain[Hit]()
	buffMaker  = scope.Plain[Buff]()
	pointMaker = scope.Plain[Point]()
	eventMaker = scope.Plain[Event]()
	roundMaker = scope.Plain[Round]()
)

// regionSize has room for the state and for nine snapshots.
const regionSize = 96 * budget.KiB

func openRegion(size uint64) (*regional, error) {
	b, err := budget.Open(budget.Plan{Name: "fight", Limits: budget.Limits{Pools: 2},
		Regions: []budget.RegionPlan{{Name: "match", Size: size, State: true}}})
	if err != nil {
		return nil, err
	}
	g, region := &regional{b: b}, b.Region("match")
	_, err = budget.Load(context.Background(), region, func(s scope.Scope) (*regional, error) {
		var st *save.State
		st, g.state = save.Begin(region, s, stateMaker)
		g.shots, g.sparks = shotMaker.HandlePool(s, mostShots), sparkMaker.Pool(s, mostSparks)
		for i := range g.fighters {
			g.combos[i] = container.NewList(s, hitMaker, mostCombo)
			g.buffs[i] = container.NewList(s, buffMaker, mostBuffs)
			g.trails[i] = container.NewDeque(s, pointMaker, mostTrail)
			g.fighters[i].Start(int32(1500 + 1000*i))
		}
		g.events, g.rounds = container.NewList(s, eventMaker, mostEvents), container.NewList(s, roundMaker, mostRounds)
		g.Clock, g.Seed = roundTime, 45
		for i := range g.props {
			g.props[i] = Prop{X: 800 * int32(i+1), Health: 100}
		}
		g.ring = save.NewRing(s, 8, st)
		return g, nil
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return g, nil
}

func (g *regional) take(frame uint64) error          { return g.ring.Take(frame) }
func (g *regional) restore(frame uint64) error       { return g.ring.Restore(context.Background(), frame) }
func (g *regional) sum(frame uint64) (uint64, error) { return g.ring.Hash(frame) }
