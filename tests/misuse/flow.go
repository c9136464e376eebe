package main

import (
	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

// Misuse of a graph of events and actions.

type splash struct{ At flow.In[int32] }

// world is the context of actions.
type world struct{ action func() }

var (
	pondHost = flow.NewHost[world]()
	landed   = flow.NewEvent[struct{}](pondHost, "landed")
	_        = flow.NewAction(pondHost, "splash", func(_ *flow.Runner, w *world,
		_ *splash) {
		w.action()
	})
	script = flow.Source{Name: "pond", Nodes: []flow.Node{
		{Name: "landed", Type: "event", Of: "landed",
			List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "splash"}}}}},
		{Name: "splash", Type: "action", Of: "splash"},
	}}
)

// scripted is a level with a graph, one instance of it, and a runner, during its phase.
type scripted struct {
	*flow.Runner
	graph    *flow.Graph
	instance flow.Instance
	world    *world
	scope    scope.Scope
}

func openScript() scripted {
	s := open().Scratch(0, 0).Open("level")
	data, _, err := flow.Compile(script, pondHost.Vocabulary())
	check(err)
	graph := made(pondHost.Load(s, data, make([]byte, blob.ScratchSize(data))))
	graph.Instances(2)
	x := scripted{graph: graph, instance: graph.New(), world: &world{func() {}}, scope: s}
	x.Runner = pondHost.NewRunner(s, x.world, 100)
	x.Begin()
	return x
}

func (x scripted) fire() { check(landed.Fire(x.Runner, x.graph, x.instance, 0, struct{}{})) }
func (x scripted) tick() { check(x.Tick(x.graph)) }

// inside calls do in the first event's action.
func inside(do func(x scripted)) func(wrong bool) {
	return func(wrong bool) {
		x := openScript()
		if wrong {
			x.world.action = func() { do(x) }
		}
		x.fire()
	}
}

// after calls do when the phase, the instance or the scope has ended.
func after(end, do func(x scripted)) func(wrong bool) {
	return func(wrong bool) {
		x := openScript()
		if !wrong {
			do(x)
			return
		}
		end(x)
		do(x)
	}
}

// elsewhere calls do in another goroutine, and waits for it.
func elsewhere(do func(x scripted)) func(wrong bool) {
	return func(wrong bool) {
		x := openScript()
		x.world.action = func() { say("splash") }
		if !wrong {
			do(x)
			return
		}
		ended := make(chan bool)
		go func() {
			do(x)
			close(ended)
		}()
		<-ended
	}
}

func ofPhase(x scripted)    { x.End() }
func ofInstance(x scripted) { x.graph.Free(x.instance) }
func ofScope(x scripted)    { check(x.scope.Close()) }

var scripts = []line{
	{"fire an event or tick outside of the phase, from an action, or while another goroutine does",
		[]program{
			{name: "Fire outside of the phase", run: after(ofPhase, scripted.fire),
				says: "outside of its phase"},
			{name: "Tick outside of the phase", run: after(ofPhase, scripted.tick),
				says: "outside of its phase"},
			{name: "Fire in an action", run: inside(scripted.fire), says: "while an event runs"},
			{name: "Tick in an action", run: inside(scripted.tick), says: "while an event runs"},
			{name: "Fire by another goroutine", says: "while an event runs", run: inside(func(x scripted) {
				x.world.action = func() {}
				ended := make(chan bool)
				go func() {
					x.fire()
					close(ended)
				}()
				<-ended
			})},
		}, []answer{
			{every, "the runner's word", "flow: BUG: ", panics},
		}, ""},
	{"fire an event or tick in another goroutine than Begin's", []program{
		{name: "Fire in another goroutine than Begin's", goesOn: "splash", run: elsewhere(scripted.fire)},
		{name: "Tick in another goroutine than Begin's", goesOn: "done", run: elsewhere(scripted.tick)},
	}, []answer{
		{"checked", "the goroutine's number", "flow: BUG: … in another goroutine than Begin", panics},
	}, ""},
	{"fire an event or tick when the scope of the graph or the runner has closed", []program{
		{name: "Fire in a stale graph", run: after(ofScope, scripted.fire)},
		{name: "Tick of a stale graph", run: after(ofScope, scripted.tick)},
		{name: "New in a stale graph", run: after(ofScope, func(x scripted) { x.graph.New() })},
	}, []answer{
		{every, "its finalizer", "flow: BUG: … whose scope has closed", panics},
	}, ""},
	{"close the scope of a graph, or use another runner in the graph, in an action of it", []program{
		{name: "Close in an action", run: inside(ofScope), says: "closed the scope"},
		{name: "another runner in an action", says: "another runner", run: inside(func(x scripted) {
			x.Runner = pondHost.NewRunner(x.scope, x.world, 100)
			x.Begin()
			x.fire()
		})},
	}, []answer{
		{every, "the graph", "flow: BUG: an", panics},
	}, ""},
	{"free an instance of a graph twice, or while its event runs", []program{
		{name: "Free of an instance twice", run: after(ofInstance, ofInstance), says: "freed already"},
		{name: "Free of an instance in its action", run: inside(ofInstance), says: "while it runs"},
	}, []answer{
		{every, "generation", "flow: BUG: Free of an instance", panics},
	}, ""},
	{"fire an event in an instance that was freed", []program{
		{name: "Fire in an instance that was freed", run: after(ofInstance, scripted.fire)},
	}, []answer{
		{every, "generation", "isn't live", told},
	}, ""},
}
