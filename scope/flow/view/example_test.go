package view_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/scope/flow/source"
	"github.com/upfront-mem/upfront/scope/flow/view"
)

// The description of a picture counts the marks.
func ExampleDiff() {
	wait := flow.Node{Name: "wait", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 150}},
		List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "close"}}}}}
	shut := flow.Node{Name: "close", Type: "action", Of: "door.close"}
	faster := wait
	faster.In = []flow.Input{{Name: "ticks", Constant: 100}}
	var picture strings.Builder
	err := view.Diff(&picture, flow.Source{Name: "door", Nodes: []flow.Node{wait, shut}},
		flow.Source{Name: "door", Nodes: []flow.Node{faster, shut}})
	if err != nil {
		log.Fatal(err)
	}
	_, text, _ := strings.Cut(picture.String(), "<desc>")
	text, _, _ = strings.Cut(text, "</desc>")
	fmt.Println(text)
	// Output: Events: 0, nodes of logic: 1, actions: 1. Boxes and wires untouched: 1, 1; added: 0, 0; gone: 0, 0; changed: 1, 0.
}

// A trace shows the run of an event, node by node.
func ExampleTrace() {
	host := flow.NewHost[struct{}]()
	used := flow.NewEvent[struct{ Keys int32 }](host, "line.used")
	type open struct {
		Tag   flow.In[int32]
		Moved flow.Out[bool]
	}
	flow.NewAction(host, "door.open", func(r *flow.Runner, _ *struct{}, p *open) { p.Moved.Set(r, true) })
	data, _, err := source.Compile("door.json", []byte(`{
		"version": 1, "name": "door",
		"variables": {"held": {"type": "int"}, "moved": {"type": "bool"}},
		"nodes": {
			"used": {"event": "line.used", "key": 12, "out": {"keys": "held"}, "then": "locked"},
			"locked": {"type": "equal", "in": {"a": "held", "b": 1}, "then": ["open", "wait"]},
			"open": {"action": "door.open", "in": {"tag": 7}, "out": {"moved": "moved"}},
			"wait": {"type": "delay", "in": {"ticks": 1}, "then": {"wait": "cancel"}}
		}
	}`), host.Vocabulary())
	if err != nil {
		log.Fatal(err)
	}
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}}
	b, err := budget.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		level, err := host.Load(s, data, make([]byte, blob.ScratchSize(data)))
		if err != nil {
			return nil, err
		}
		level.Instances(1)
		door, runner, trace := level.New(), host.NewRunner(s, new(struct{}), 1000), view.NewTrace(os.Stdout)
		runner.Trace(trace.Step)
		runner.Begin()
		defer runner.End()
		if err := used.Fire(runner, level, door, 12, struct{ Keys int32 }{1}); err != nil {
			return nil, err
		}
		if err := trace.Done(); err != nil {
			return nil, err
		}
		if err := runner.Tick(level); err != nil {
			return nil, err
		}
		return nil, trace.Done()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// in graph "door"
	//    1  used: line.used 12; keys → held = 1
	//    2  locked: equal; a held = 1, b 1
	//    3  open: door.open; tag 7
	//           moved = true, was false
	//    4  wait: delay; ticks 1
	// in graph "door"
	//    1  wait: delay, whose time has come; ticks 1
	//    2  wait → cancel: delay; ticks 1
}
