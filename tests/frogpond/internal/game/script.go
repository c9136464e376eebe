package game

import (
	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// script is the graph of a level's specials, in the level's memory.
type script struct {
	graph     *flow.Graph
	runner    *flow.Runner
	instance  flow.Instance // the level's first instance
	variables int
	steps     int  // the most steps of an event
	acted     bool // an action of the current event had an effect
}

// The host's events. Each touch of a line has one for players and one for monsters.
var (
	host   = flow.NewHost[World]()
	began  = flow.NewEvent[struct{}](host, doom.BeginEvent)
	events = [...][2]flow.Event[doom.Touch]{
		doom.Walked: both(doom.WalkedEvent),
		doom.Used:   both(doom.UsedEvent),
		doom.Shot:   both(doom.ShotEvent),
	}
)

func both(name string) [2]flow.Event[doom.Touch] {
	return [2]flow.Event[doom.Touch]{flow.NewEvent[doom.Touch](host, name),
		flow.NewEvent[doom.Touch](host, name+doom.MonsterPart)}
}

// The parameters of the host's actions. An action with a tag is for all sectors with it.
type (
	in     = flow.In[int32]
	flag   = flow.In[bool]
	result = flow.Out[bool] // whether the action had an effect

	doorInputs struct {
		Tag, Speed, Wait in
		Acted            result
	}
	pushInputs struct {
		Sector, Speed, Wait in
		Acted               result
	}
	floorInputs struct {
		Tag, Target, Amount, Speed, Change in
		Crush                              flag
		// The sector in front of this line is the model for a changed floor.
		Line  in
		Acted result
	}
	ceilingInputs struct {
		Tag, Target, Amount, Speed in
		Acted                      result
	}
	crusherInputs struct {
		Tag, Speed in
		Steady     flag
		Acted      result
	}
	tagInputs struct {
		Tag   in
		Acted result
	}
	liftInputs struct {
		Tag, Target, Speed, Wait in
		Acted                    result
	}
	pushLiftInputs struct {
		Sector, Target, Speed, Wait in
		Acted                       result
	}
	stairsInputs struct {
		Tag, Amount, Speed in
		Crush              flag
		Acted              result
	}
	lineInputs struct {
		Line  in
		Acted result
	}
	exitInputs struct {
		Secret flag
		Acted  result
	}
	lightInputs struct {
		Tag, Target, Amount in
		Acted               result
	}
	strobeInputs struct {
		Tag, Wait in
		Acted     result
	}
	scrollInputs struct{ Line, Amount in }
	carryInputs  struct{ Tag, Line in }
	beginInputs  struct{ Sector, Kind, Dark in }
)

// doorAction declares a door's two actions: on the sectors of a tag, and on the sector of a pushed
// line.
func doorAction(name string, action doom.Action) {
	effect := func(speed, wait int32) doom.Effect {
		e := doom.Effect{Action: action, Target: doom.LowestCeiling, Amount: doom.DoorGap, Speed: speed, Wait: wait}
		if action == doom.CloseDoor || action == doom.ReopenDoor {
			e.Target, e.Amount = doom.OwnFloor, 0
		}
		return e
	}
	flow.NewAction(host, "door."+name, func(r *flow.Runner, w *World, p *doorInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, effect(p.Speed.Get(r), p.Wait.Get(r))))
	})
	flow.NewAction(host, "door.push_"+name, func(r *flow.Runner, w *World, p *pushInputs) {
		e := effect(p.Speed.Get(r), p.Wait.Get(r))
		w.did(r, &p.Acted, w.Push(&w.Sectors[p.Sector.Get(r)], &e))
	})
}

func init() {
	doorAction("open", doom.OpenDoor)
	doorAction("close", doom.CloseDoor)
	doorAction("raise", doom.RaiseDoor)
	doorAction("reopen", doom.ReopenDoor)
	flow.NewAction(host, "floor.move", func(r *flow.Runner, w *World, p *floorInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), p.Line.Get(r), doom.Effect{Action: doom.MoveFloor,
			Target: doom.Target(p.Target.Get(r)), Amount: p.Amount.Get(r), Speed: p.Speed.Get(r),
			Change: doom.Change(p.Change.Get(r)), Crush: p.Crush.Get(r)}))
	})
	flow.NewAction(host, "ceiling.move", func(r *flow.Runner, w *World, p *ceilingInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.MoveCeiling,
			Target: doom.Target(p.Target.Get(r)), Amount: p.Amount.Get(r), Speed: p.Speed.Get(r)}))
	})
	flow.NewAction(host, "crusher.start", func(r *flow.Runner, w *World, p *crusherInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.Crusher, Target: doom.OwnFloor,
			Amount: 8, Speed: p.Speed.Get(r), Steady: p.Steady.Get(r), Crush: true}))
	})
	flow.NewAction(host, "crusher.stop", func(r *flow.Runner, w *World, p *tagInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.StopCrusher}))
	})
	flow.NewAction(host, "lift.call", func(r *flow.Runner, w *World, p *liftInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.Lift,
			Target: doom.Target(p.Target.Get(r)), Speed: p.Speed.Get(r), Wait: p.Wait.Get(r)}))
	})
	flow.NewAction(host, "lift.push_call", func(r *flow.Runner, w *World, p *pushLiftInputs) {
		e := doom.Effect{Action: doom.Lift, Target: doom.Target(p.Target.Get(r)), Speed: p.Speed.Get(r),
			Wait: p.Wait.Get(r)}
		w.did(r, &p.Acted, w.Lift(&w.Sectors[p.Sector.Get(r)], &e))
	})
	flow.NewAction(host, "lift.push_start", func(r *flow.Runner, w *World, p *pushInputs) {
		e := doom.Effect{Action: doom.Perpetual, Speed: p.Speed.Get(r), Wait: p.Wait.Get(r)}
		w.did(r, &p.Acted, w.Perpetual(&w.Sectors[p.Sector.Get(r)], &e))
	})
	flow.NewAction(host, "lift.start", func(r *flow.Runner, w *World, p *doorInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.Perpetual,
			Speed: p.Speed.Get(r), Wait: p.Wait.Get(r)}))
	})
	flow.NewAction(host, "lift.stop", func(r *flow.Runner, w *World, p *tagInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.StopLift}))
	})
	flow.NewAction(host, "stairs.build", func(r *flow.Runner, w *World, p *stairsInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.Stairs,
			Amount: p.Amount.Get(r), Speed: p.Speed.Get(r), Crush: p.Crush.Get(r)}))
	})
	flow.NewAction(host, "donut.sink", func(r *flow.Runner, w *World, p *doorInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.Donut, Speed: p.Speed.Get(r)}))
	})
	flow.NewAction(host, "body.teleport", func(r *flow.Runner, w *World, p *tagInputs) {
		w.did(r, &p.Acted, w.Teleport(uint16(p.Tag.Get(r))))
	})
	flow.NewAction(host, "body.teleport_line", func(r *flow.Runner, w *World, p *lineInputs) {
		w.did(r, &p.Acted, w.LineTeleport(&w.Lines[p.Line.Get(r)]))
	})
	flow.NewAction(host, "level.exit", func(r *flow.Runner, w *World, p *exitInputs) {
		w.did(r, &p.Acted, w.Exit())
	})
	flow.NewAction(host, "light.set", func(r *flow.Runner, w *World, p *lightInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.SetLight,
			Target: doom.Target(p.Target.Get(r)), Amount: p.Amount.Get(r)}))
	})
	flow.NewAction(host, "light.strobe", func(r *flow.Runner, w *World, p *strobeInputs) {
		w.did(r, &p.Acted, w.all(p.Tag.Get(r), 0, doom.Effect{Action: doom.StrobeLight, Wait: p.Wait.Get(r)}))
	})
	flow.NewAction(host, "light.begin", func(r *flow.Runner, w *World, p *beginInputs) {
		w.light(&w.Sectors[p.Sector.Get(r)], doom.LightKind(p.Kind.Get(r)), p.Dark.Get(r))
	})
	flow.NewAction(host, "wall.scroll", func(r *flow.Runner, w *World, p *scrollInputs) {
		w.Scroll(uint32(p.Line.Get(r)), p.Amount.Get(r))
	})
	flow.NewAction(host, "floor.carry", func(r *flow.Runner, w *World, p *carryInputs) {
		w.Carry(uint16(p.Tag.Get(r)), &w.Lines[p.Line.Get(r)])
	})
}

func (w *World) did(r *flow.Runner, out *result, acted bool) {
	out.Set(r, acted)
	w.script.acted = w.script.acted || acted
}

func (w *World) loadScript(s scope.Scope) error {
	source := w.Graph()
	data, _, err := flow.Compile(source, host.Vocabulary())
	if err != nil {
		return err
	}
	c := &w.script
	// the begin event may reach nearly all nodes
	c.variables, c.steps = len(source.Variables), len(source.Nodes)+1
	c.graph, err = host.Load(s, data, make([]byte, blob.ScratchSize(data)))
	return err
}

// openScript makes the graph's runner in s. The runner keeps no data from tick to tick: the
// instance has it.
func (w *World) openScript(s scope.Scope) {
	w.script.runner = host.NewRunner(s, w, w.script.steps)
}

// Vocabulary returns the events and actions of the graphs of levels.
func Vocabulary() flow.Vocabulary { return host.Vocabulary() }

// Script returns the level's graph, decoded from its blob.
func (w *World) Script() flow.Source { return w.script.graph.Source() }
