package lua_test

import (
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

// World is the state on which a level's graphs act: here only its script.
type World struct{ Script *lua.State }

// Open has the parameters of the action "door.open".
type Open struct {
	Tag   flow.In[int32]
	Moved flow.Out[bool]
}

var (
	host = flow.NewHost[World]()
	used = flow.NewEvent[struct{}](host, "line.used")
	_    = lua.Action[World, Open](host, "door.open", "open_door",
		func(w *World) *lua.State { return w.Script })
)

// A graph's node calls a function of a script; if it fails, the error names the node.
func ExampleAction() {
	graph := flow.Source{
		Name:      "door",
		Variables: []flow.Variable{{Name: "moved", Type: flow.Bool}},
		Nodes: []flow.Node{
			{Name: "used", Type: "event", Of: "line.used",
				List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "open"}}}}},
			{Name: "open", Type: "action", Of: "door.open",
				In:  []flow.Input{{Name: "tag", Constant: 7}},
				Out: []flow.Output{{Name: "moved", Variable: "moved"}}},
		},
	}
	data, _, err := flow.Compile(graph, host.Vocabulary())
	if err != nil {
		log.Fatal(err)
	}
	b, err := budget.Open(budget.Plan{Name: "pond",
		Scratch: budget.ScratchPlan{Workers: 1, Size: 256 * budget.KiB}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	err = b.Scratch(0, 0).Do("level", func(s scope.Scope) error {
		script, err := lua.New(s, lua.Plan{Name: "doors", Size: 64 * budget.KiB, Steps: 10_000})
		if err != nil {
			return err
		}
		err = script.Run("doors.lua", "function open_door(tag) return tag == 7 end")
		if err != nil {
			return err
		}
		level, err := host.Load(s, data, make([]byte, blob.ScratchSize(data)))
		if err != nil {
			return err
		}
		level.Instances(1)
		door := level.New()
		runner := host.NewRunner(s, &World{script}, 1000)
		runner.Begin()
		fmt.Println(used.Fire(runner, level, door, 0, struct{}{}), level.Value(door, 0))
		err = script.Run("doors.lua", "function open_door() while true do end end")
		if err != nil {
			return err
		}
		fmt.Println(used.Fire(runner, level, door, 0, struct{}{}))
		fmt.Println(level.Value(door, 0))
		runner.End()
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// <nil> true
	// flow: graph "door": "used": the action of node "open" failed: lua: state "doors": too many steps: doors.lua:1: raise Steps in its lua.Plan, which is 10000
	// true
}
