// Package flow is level scripts as data: a graph of events, actions and variables, made by people
// who don't program, compiled to one blob without a pointer and run by a switch. What changes while
// it runs lies in a second block, which is copied for each instance.
//
// What a program gives, once:
//
//	type World struct{ ... }
//
//	type OpenDoor struct { // the parameters of an action: constants, or variables of the graph
//		Tag, Speed flow.In[int32]
//		Moved      flow.Out[bool]
//	}
//
//	type Used struct{ Keys int32 } // the values of an event
//
//	var (
//		host = flow.NewHost[World]()
//		used = flow.NewEvent[Used](host, "line.used")
//		_    = flow.NewAction(host, "door.open", func(r *flow.Runner, w *World, p *OpenDoor) {
//			p.Moved.Set(r, w.open(p.Tag.Get(r), p.Speed.Get(r)))
//		})
//	)
//
// As a level loads, and in each tick of its apply phase:
//
//	level, err := host.Load(s, data, scratch) // what never changes
//	level.Instances(1)                        // room for what does
//	door := level.New()
//	runner := host.NewRunner(s, &world, 1000) // steps for each event
//
//	runner.Begin()
//	err = runner.Tick(level)                               // delays and timers
//	err = used.Fire(runner, level, door, 12, Used{Keys: 1}) // of line 12
//	runner.End()
//
// A [Source] is the graph as its author has it; [Compile] makes the blob, and names every fault;
// [Graph.Source] gives it back. [Strip] makes a smaller blob for games, without names.
//
// # Nodes
//
// A link leads from a list of a node to a port of another one. The links of a list run in their
// order, depth first: what the first one leads to is done before the second begins.
//
//	type      inputs            lists       ports                 what it does
//	event     –                 then        –                     begins: its values go to variables
//	branch    if bool           then, else  in                    goes one way or the other
//	gate      closed bool       then        in open close toggle  goes on while it is open
//	once      done bool         then        in reset              goes on the first time
//	counter   limit int         then        in reset              goes on each limit-th time
//	delay     ticks int         then        in cancel             goes on after so many ticks
//	timer     every int         then        start stop            goes on every so many ticks
//	sequence  –                 1, 2, …     in reset              goes to one list after another
//	random    –                 1, 2, …     in                    goes to one of the lists
//	set       value; out to     then        in                    writes a variable
//	add       value; out to     then        in                    adds to an int or a number
//	equal     a, b              then, else  in                    compares two of one type
//	less      a, b              then, else  in                    a < b: ints or numbers
//	action    its own           then        in                    calls the host
//	send      key int, its own  then        in                    fires in the level's graph
//
// A delay that waits begins anew; one of 0 ticks or less goes on at once. A timer of less than 1 tick
// is one of 1. A sequence takes its lists in turns, one each time: to do several things in order, link
// one list to all of them. What a send leads to in the level's graph is done before what follows the
// send. An int wraps. closed and done are constants: what an instance begins with. An input that isn't
// given is zero. Names of parameters are those of the fields: HasKey is has_key.
//
// # Variables
//
// A variable is a bool, an int of 32 bits, a number (a float of 32 bits) or a handle (64 bits). Who
// refers to one has its offset: so variables are shared. What an event or an action puts out has
// one writer; set and add write the others, and any number of nodes may write one of those.
//
// # Running
//
// A runner runs one graph at a time, and only between Begin and End, in the goroutine that called
// Begin: a call at another time is a bug of the program, and panics with what it was. That another
// goroutine calls it is found in a checked build, and in each while an event runs. An event may take so
// many steps; one that takes more ends with an error that names graph, event and node, and the
// level goes on. An action that can't do its part says so by Fail: what follows its node isn't run,
// all else is, and the error names the node.
//
// Nothing here allocates on the Go heap while it runs, or calls C.
//
// Source: Niklas Frykholm, "Visual Scripting the Data-Oriented Way" (Bitsquid).
package flow
