package flow_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

type World struct{ doors map[int32]bool }

type OpenDoor struct {
	Tag   flow.In[int32]
	Moved flow.Out[bool]
}

type CloseDoor struct{ Tag flow.In[int32] }

type Say struct{ Line flow.In[int32] }

type Used struct{ HasKey bool }

var (
	host = flow.NewHost[World]()
	used = flow.NewEvent[Used](host, "line.used")
	_    = flow.NewAction(host, "door.open", func(r *flow.Runner, w *World, p *OpenDoor) {
		tag := p.Tag.Get(r)
		p.Moved.Set(r, !w.doors[tag])
		w.doors[tag] = true
		fmt.Println("door", tag, "opens")
	})
	_ = flow.NewAction(host, "door.close", func(r *flow.Runner, w *World, p *CloseDoor) {
		w.doors[p.Tag.Get(r)] = false
		fmt.Println("door", p.Tag.Get(r), "closes")
	})
	_ = flow.NewAction(host, "say", func(r *flow.Runner, _ *World, p *Say) {
		fmt.Println("says line", p.Line.Get(r))
	})
)

var door = flow.Source{
	Name: "door",
	Variables: []flow.Variable{
		{Name: "has key", Type: flow.Bool},
		{Name: "moved", Type: flow.Bool},
	},
	Nodes: []flow.Node{
		{Name: "used", Type: "event", Of: "line.used", Key: 12,
			Out:  []flow.Output{{Name: "has_key", Variable: "has key"}},
			List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "locked"}}}}},
		{Name: "locked", Type: "branch",
			In: []flow.Input{{Name: "if", Variable: "has key"}},
			List: []flow.List{
				{Name: "then", Links: []flow.Link{{Node: "open"}, {Node: "wait"}}},
				{Name: "else", Links: []flow.Link{{Node: "complain"}}},
			}},
		{Name: "open", Type: "action", Of: "door.open",
			In:  []flow.Input{{Name: "tag", Constant: 7}},
			Out: []flow.Output{{Name: "moved", Variable: "moved"}}},
		{Name: "wait", Type: "delay",
			In:   []flow.Input{{Name: "ticks", Constant: 2}},
			List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "close"}}}}},
		{Name: "close", Type: "action", Of: "door.close", In: []flow.Input{{Name: "tag", Constant: 7}}},
		{Name: "complain", Type: "action", Of: "say", In: []flow.Input{{Name: "line", Constant: 3}}},
	},
}

// A graph is compiled by a tool, loaded with a level, and run in its ticks.
func Example() {
	data, _, err := flow.Compile(door, host.Vocabulary())
	if err != nil {
		log.Fatal(err)
	}

	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	world := World{doors: map[int32]bool{}}
	play := func(s scope.Scope) (*struct{}, error) {
		level, err := host.Load(s, data, make([]byte, blob.ScratchSize(data)))
		if err != nil {
			return nil, err
		}
		level.Instances(1)
		instance := level.New()
		runner := host.NewRunner(s, &world, 1000)
		for tick := range 5 {
			runner.Begin()
			if err := runner.Tick(level); err != nil {
				return nil, err
			}
			if tick < 2 {
				if err := used.Fire(runner, level, instance, 12, Used{HasKey: tick == 1}); err != nil {
					return nil, err
				}
			}
			runner.End()
			fmt.Println("tick", tick)
		}
		return new(struct{}), nil
	}
	if _, err := budget.Load(context.Background(), b.Region("level"), play); err != nil {
		log.Fatal(err)
	}
	// Output:
	// says line 3
	// tick 0
	// door 7 opens
	// tick 1
	// tick 2
	// door 7 closes
	// tick 3
	// tick 4
}

// bell is an event of a visitor, which the level's graph hears about.
var bell = flow.Source{Name: "bell", Nodes: []flow.Node{
	{Name: "rung", Type: "event", Of: "line.used",
		List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "report"}}}}},
	{Name: "report", Type: "send", Of: "line.used", In: []flow.Input{{Name: "key", Constant: 12}}},
}}

// A send runs an event in the level's graph.
func ExampleRunner_SendTo() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	load := func(s scope.Scope, source flow.Source) *flow.Graph {
		data, report, err := flow.Compile(source, host.Vocabulary())
		if err != nil {
			log.Fatal(err)
		}
		size := report.Nodes[0]
		fmt.Println(size.Nodes, "node of type", size.Type, "in", size.Static, "bytes,", size.Dynamic, "in an instance")
		g, err := host.Load(s, data, make([]byte, blob.ScratchSize(data)))
		if err != nil {
			log.Fatal(err)
		}
		g.Instances(1)
		fmt.Println(g.Name(), "has", g.Data(), "bytes in an instance")
		return g
	}
	world := World{doors: map[int32]bool{}}
	play := func(s scope.Scope) (*struct{}, error) {
		level, visitor := load(s, door), load(s, bell)
		at, from := level.New(), visitor.New()
		level.Seed(at, 1) // for nodes of type random
		runner := host.NewRunner(s, &world, 1)
		runner.SendTo(level, at)
		runner.Begin()
		err := used.Fire(runner, visitor, from, 0, Used{})
		if steps := (*flow.StepsError)(nil); errors.As(err, &steps) {
			fmt.Println(steps.Graph, steps.Began, steps.Node, steps.Steps)
		}
		runner.End()
		return new(struct{}), nil
	}
	if _, err := budget.Load(context.Background(), b.Region("level"), play); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 node of type event in 40 bytes, 0 in an instance
	// door has 24 bytes in an instance
	// 1 node of type event in 40 bytes, 0 in an instance
	// bell has 8 bytes in an instance
	// bell rung locked 1
}
