// Package flow runs level scripts. A script is data: a graph of events, actions and variables. A
// graph is compiled to one blob without pointers. Each instance of the graph has a second block for
// the data that changes while the graph runs.
//
//	var (
//		host = flow.NewHost[World]()
//		used = flow.NewEvent[Used](host, "line.used") // type Used struct{ Keys int32 }
//		_    = flow.NewAction(host, "door.open", func(r *flow.Runner, w *World, p *OpenDoor) {
//			p.Moved.Set(r, w.open(p.Tag.Get(r))) // Moved flow.Out[bool], Tag flow.In[int32]
//		})
//	)
//
//	level, err := host.Load(s, data, scratch)               // data from Compile
//	level.Instances(1)
//	door, runner := level.New(), host.NewRunner(s, &world, 1000)
//	runner.Begin()                                          // each tick
//	err = runner.Tick(level)                                // delays and timers
//	err = used.Fire(runner, level, door, 12, Used{Keys: 1}) // key 12: line 12
//	runner.End()
//
// A [Host] declares the actions and events of graphs. A [Source] is a graph as its author writes
// it. [Compile] makes a blob of a source, or reports the errors in the source. [Graph.Source]
// returns a source of the graph again. [Strip] makes a smaller blob, with no name but the graph's.
// A [Graph] is a loaded blob, and a [Runner] runs its instances.
//
// # Nodes
//
// A node has lists of links. Each link leads to a port of a node. The links of a list run in order,
// depth first: the nodes behind the first link run before the second link runs. A node that "goes
// on" runs the links of its list "then".
//
//	type      inputs            lists       ports                 effect
//	event     –                 then        –                     starts; writes its values
//	branch    if bool           then, else  in                    goes one way or the other
//	gate      closed bool       then        in open close toggle  goes on while open
//	once      done bool         then        in reset              goes on the first time
//	counter   limit int         then        in reset              goes on each limit-th time
//	delay     ticks int         then        in cancel             goes on n ticks later
//	timer     every int         then        start stop            goes on every n ticks
//	sequence  –                 1, 2, …     in reset              goes to its lists in turn
//	random    –                 1, 2, …     in                    goes to one of the lists
//	set       value; out to     then        in                    writes a variable
//	add       value; out to     then        in                    adds to an int or a number
//	equal     a, b              then, else  in                    compares two of one type
//	less      a, b              then, else  in                    a < b: ints or numbers
//	action    its own           then        in                    calls the host
//	send      key int, its own  then        in                    fires in the level's graph
//
// The rules of single types:
//
//   - A delay that is entered again starts again. A delay of 0 ticks or less goes on at once.
//   - A timer of less than 1 tick counts as 1 tick.
//   - A sequence goes to one list each time it is entered by in. To run several actions in order,
//     link them all from one list.
//   - A send runs the event in the level's graph ([Runner.SendTo]) before the links of the send
//     run.
//   - An int wraps around.
//   - The inputs closed and done are constants: the initial state of the node in each instance.
//   - A missing input is zero.
//   - The names of parameters are made of the fields of the Go struct: HasKey is has_key.
//
// # Variables
//
// A variable is a bool, an int of 32 bits, a number (a float of 32 bits) or a handle (64 bits). If
// an output of an event or an action writes a variable, no other output may write that variable.
// Any number of set and add nodes may write any other variable.
//
// # Running
//
// A runner runs one graph at a time, only between Begin and End, in the goroutine that called
// Begin. A Fire or Tick outside of Begin and End panics. Checked builds detect a Fire or Tick from
// another goroutine. Other builds detect it only while the runner runs. A run without an error
// allocates nothing on the Go heap, except in actions and in the function of [Runner.Trace]. In a
// default build it calls no C.
//
// If an event takes more steps than the runner allows, Fire returns an error that names the graph,
// the event's node and the next node. An action that can't do its work calls [Runner.Fail]. The
// links of the action's node then don't run, but other links do. The error names the first node
// whose action failed.
//
// Source: Niklas Frykholm, "Visual Scripting the Data-Oriented Way" (Bitsquid).
package flow
