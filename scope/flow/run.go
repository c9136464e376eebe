package flow

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Runner runs graphs of one host, one graph at a time. Fire runs events, and Tick runs delays and
// timers. One goroutine at a time may use a Runner. Fire and Tick panic outside of Begin and End.
// From End to Begin a Runner keeps only its settings, the target of sends and the function of
// Trace. Delays, timers and random numbers are in the instances, and are saved and restored with
// them. Methods of the zero Runner panic, except Trace.
type Runner struct {
	word  atomic.Uint32
	of    *vocabulary
	world unsafe.Pointer
	stack unsafe.Pointer // of ranges of links that are still to run: see push
	steps int            // of each event
	level place          // target of sends
	trace func(Step)

	failed  error // of the action that runs: see Fail
	failure error // of the first action that failed in this run

	// The position in a run.
	place
	data      unsafe.Pointer // of the instance
	began     uint32         // offset of the node that began the run
	next, end uint32         // the current range of links
	top, left int            // of the stack, of the steps
	unit      place          // the instance that sent, while the level's graph runs its event

	by   uint64   // in checked builds the goroutine that called Begin
	text [32]byte // for its name
}

type place struct {
	graph    *Graph
	instance Instance
}

// The states of word.
const (
	zero uint32 = iota
	closed
	ready
	running
)

// NewRunner makes a runner for graphs of the host in this world. steps is the maximum number of
// steps of an event. The runner takes 24 bytes of s and 16 for each step, one of the owned values
// that the plan's limits.owned allows, and one Go allocation. If s is full, NewRunner unwinds.
// NewRunner panics if steps isn't from 1 to 2^26.
func (h *Host[World]) NewRunner(s scope.Scope, world *World, steps int) *Runner {
	h.declared()
	if steps < 1 || steps > stepsMax {
		panic(bug("NewRunner with %d steps: give 1 to %d", steps, stepsMax))
	}
	stack := s.BytesUnzeroed((2*steps+1)*int(spanSize), 8)
	r := &Runner{of: &h.vocabulary, world: unsafe.Pointer(world), stack: unsafe.Pointer(&stack[0]),
		steps: steps}
	r.word.Store(closed)
	s.Own((*ended)(r))
	return r
}

// stepsMax bounds the stack, so that its size is an int on each target.
const stepsMax = 1 << 26

// SendTo sets the target of nodes of the type "send": an instance of the level's graph. Without a
// live target, sends only go on. SendTo may be called outside of Begin and End, but not while an
// event runs.
func (r *Runner) SendTo(level *Graph, i Instance) {
	r.mine(level)
	if r.word.Load() == running {
		r.refuse("SendTo")
	}
	r.level = place{level, i}
}

// Trace sets the function that is called before each step, from the next event, delay or timer on.
// A nil fn ends the trace then.
func (r *Runner) Trace(fn func(Step)) { r.trace = fn }

// Step is a node that is about to run.
type Step struct {
	Graph    *Graph
	Instance Instance
	Node     int // the node's index in Source; the first step is the node that began the run
	port     int // the port by which the node is entered
}

// PortName returns the name of the port by which the node is entered, as in a [Link]. The first
// port's name is "".
func (s Step) PortName() string {
	if s.port == 0 {
		return ""
	}
	return kinds[s.Graph.root.Nodes.Get(s.Graph.blob)[s.Node].Get(s.Graph.blob).Tag].ports[s.port]
}

// Begin lets the calling goroutine use the runner until End. A checked build refuses Fire and Tick
// from any other goroutine.
func (r *Runner) Begin() {
	r.change(closed, ready, "Begin")
	if arena_c.Checked {
		r.by = r.goroutine()
	}
}

// End ends the phase that Begin began.
func (r *Runner) End() { r.change(ready, closed, "End") }

// byBeginner panics in another goroutine than Begin's.
func (r *Runner) byBeginner(what string) {
	if r.by != r.goroutine() {
		r.word.Store(ready)
		panic(bug("%s in another goroutine than Begin: give each goroutine its own runner, or call Begin and End there",
			what))
	}
}

// goroutine returns the number of the calling goroutine. pre: the caller has changed the word.
func (r *Runner) goroutine() (number uint64) {
	for _, c := range r.text[len("goroutine "):runtime.Stack(r.text[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		number = 10*number + uint64(c-'0')
	}
	return number
}

func (r *Runner) change(from, to uint32, what string) {
	if !r.word.CompareAndSwap(from, to) {
		r.refuse(what)
	}
}

func (r *Runner) made() {
	switch {
	case r.stack == nil:
		panic(bug("a zero Runner: NewRunner of a Host makes one"))
	case r.of == nil:
		panic(bug("a Runner whose scope has closed"))
	}
}

type ended Runner

func (r *ended) Close() error {
	r.of = nil
	r.word.Store(zero)
	return nil
}

// refuse panics with the reason that the word gives.
func (r *Runner) refuse(what string) {
	r.made()
	panic(bug("%s %s", what, [...]string{
		closed: "outside of its phase: call Begin first",
		ready:  "twice",
		running: "while an event runs: an action may not call it, nor another goroutine; " +
			"a graph fires by a node \"send\"",
	}[r.word.Load()]))
}

func (r *Runner) mine(g *Graph) {
	if g.of != r.of || r.of == nil {
		r.made()
		g.loaded()
		panic(bug("a runner of another host than that of graph %q", g.Name()))
	}
}

// Fire runs the links of the event node with this key in an instance of a graph, with the event's
// values. If the graph has no such node, Fire does nothing. It returns an error if the instance
// isn't live, if the run takes too many steps ([StepsError]), or if an action failed
// ([ActionError]). Cost: a few ns, a search among the graph's events, some 2 ns a node, and the
// actions' own; a checked build takes longer.
func (e Event[V]) Fire(r *Runner, g *Graph, i Instance, key int32, values V) error {
	return r.fire(e.signal, g, i, key, unsafe.Pointer(&values))
}

// FireNamed is Fire for tools, by the name of the event in the vocabulary. The values are in the
// order of the event's parameters, each as in a [Variable]. A missing value is zero. FireNamed also
// returns an error if the host doesn't declare such an event and values. FireNamed works on the Go
// heap.
func (r *Runner) FireNamed(g *Graph, i Instance, event string, key int32, values ...any) error {
	r.mine(g)
	of := slices.IndexFunc(r.of.Events, func(s Signature) bool { return s.Name == event })
	if of < 0 {
		return fmt.Errorf("flow: the host has no event %q", event)
	}
	parameters := r.of.Events[of].Parameters
	if len(values) > len(parameters) {
		return fmt.Errorf("flow: event %q has %d values, not %d", event, len(parameters), len(values))
	}
	s := &signal{of: r.of, hash: hashOf(event)}
	words := make([]uint64, len(parameters)+1)
	for j, p := range parameters {
		s.fields = append(s.fields, field{typ: p.Type, at: uint32(8 * j)})
		if j < len(values) {
			word, err := constant(values[j], p.Type)
			if err != nil {
				return fmt.Errorf("flow: event %q: %s: %w", event, p.Name, err)
			}
			words[j] = uint64(word)
		}
	}
	return r.fire(s, g, i, key, unsafe.Pointer(&words[0]))
}

func (r *Runner) fire(e *signal, g *Graph, i Instance, key int32, values unsafe.Pointer) error {
	if e == nil || e.of != r.of || g.of != r.of {
		r.wrong(e, g)
	}
	n := g.find(eventKey(e.hash, key))
	if r.change(ready, running, "Fire"); arena_c.Checked {
		r.byBeginner("Fire")
	}
	defer r.done()
	if g.running != 0 {
		r.graph = nil
		g.alone()
	}
	if !r.goTo(g, i) {
		r.graph = nil
		return fmt.Errorf("flow: the instance of graph %q isn't live", g.Name())
	}
	if n == nil {
		return nil
	}
	for j, out := range n.Out.Get(g.blob) {
		if out == 0 {
			continue
		}
		from, to := unsafe.Add(values, e.fields[j].at), unsafe.Add(r.data, out)
		switch e.fields[j].typ {
		case Bool:
			*(*bool)(to) = *(*bool)(from)
		case Handle:
			*(*uint64)(to) = *(*uint64)(from)
		default:
			*(*uint32)(to) = *(*uint32)(from)
		}
	}
	return r.begin(&n.node)
}

// wrong panics for an event, graph or runner of another host.
func (r *Runner) wrong(e *signal, g *Graph) {
	if e == nil {
		panic(bug("a zero Event: NewEvent makes one"))
	}
	r.mine(g)
	panic(bug("an event of another host"))
}

// alone panics if another runner is in the graph, because Free checks only for one.
func (g *Graph) alone() {
	if g.running != 0 {
		panic(bug("another runner is in graph %q: an action may not use it", g.Name()))
	}
}

// eventKey orders events by hash and key.
func eventKey(hash uint32, key int32) uint64 { return uint64(hash)<<32 | uint64(uint32(key)^1<<31) }

func (g *Graph) find(key uint64) *event {
	list, low, high := g.events, uint32(0), g.heard
	for low < high {
		middle := (low + high) / 2
		e := (*entry)(unsafe.Add(list, middle*uint32(unsafe.Sizeof(entry{}))))
		at := eventKey(e.Hash, e.Key)
		if at == key {
			return (*event)(unsafe.Add(g.base, offsetOf(e.Node)))
		}
		if at < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return nil
}

// goTo makes an instance the running one, and reports whether it is live.
func (r *Runner) goTo(g *Graph, i Instance) bool {
	data := g.at(i)
	if data == nil {
		return false
	}
	r.graph, r.instance, r.data, g.running = g, i, data, i
	return true
}

// done ends a run, also after an action's panic.
func (r *Runner) done() {
	r.rest()
	if r.failed != nil || r.failure != nil {
		r.failed, r.failure = nil, nil
	}
	r.word.Store(ready)
}

// rest marks no instance as running: neither the current instance nor, if steps ran out in a send,
// the sender.
func (r *Runner) rest() {
	if r.graph != nil {
		r.graph.running = 0
	}
	if r.unit.graph != nil {
		r.unit.graph.running = 0
		r.unit.graph = nil
	}
}

// begin runs the links of an event, or of a delay or timer that ended.
func (r *Runner) begin(n *node) error {
	s := spanOf(&n.Then)
	next, end := s.offset, s.offset+s.count*toSize
	r.began, r.top = uint32(uintptr(unsafe.Pointer(n))-uintptr(r.graph.base)), 0
	var err error
	if r.trace != nil {
		err = r.traced(next, end)
	} else if !r.run(next, end, r.steps) {
		err = r.tooMany()
	}
	if r.failure != nil {
		err = errors.Join(r.failure, err)
		r.failure = nil
	}
	return err
}

// traced is run with a call of trace before each step.
func (r *Runner) traced(next, end uint32) error {
	trace := r.trace // trace may stop itself
	trace(Step{r.graph, r.instance, r.graph.index(r.began), 0})
	r.next, r.end = next, end
	for left := r.steps; r.peek(); left-- {
		if left == 0 {
			return r.tooMany()
		}
		l := (*to)(unsafe.Add(r.graph.base, r.next))
		trace(Step{r.graph, r.instance, r.graph.index(offsetOf(l.Node)), int(l.Port)})
		if r.run(r.next, r.end, 1) {
			break
		}
	}
	return nil
}

func (g *Graph) index(node uint32) int { return indexOf(g.root.Nodes.Get(g.blob), node) }

// peek finds the next link to run, and reports whether one is left.
func (r *Runner) peek() bool {
	for r.next == r.end {
		if r.top == 0 {
			return false
		}
		r.pop()
	}
	return true
}

// tooMany returns the error of a run that took all steps.
func (r *Runner) tooMany() error {
	r.peek()
	home := r.home()
	l := (*to)(unsafe.Add(r.graph.base, r.next))
	return &StepsError{home.Name(), home.nameOf(r.began), r.graph.nameOf(offsetOf(l.Node)),
		r.steps}
}

// home returns the graph of the node that began the run.
func (r *Runner) home() *Graph {
	if r.unit.graph != nil {
		return r.unit.graph
	}
	return r.graph
}

func (g *Graph) nameOf(node uint32) string { return nodeName(g.root, g.blob, g.index(node)) }

// StepsError is the error of an event, delay or timer that took more steps than the runner allows.
type StepsError struct {
	Graph string
	Began string // the node that began the run; in a stripped graph its index, as "#3"
	Node  string // the next node, in Graph or in the level's graph
	Steps int
}

// Error returns the error in one line.
func (e *StepsError) Error() string {
	return fmt.Sprintf("flow: graph %q: %q: no end after %d steps; node %q is next: is it in a cycle?",
		e.Graph, e.Began, e.Steps, e.Node)
}

// Fail reports that the running action couldn't do its work. Outputs that the action has set stay
// set. The links of the action's node don't run, but other links do. For the first action that
// failed in a run, Fire or Tick returns err in an [ActionError] that names the node. Only an action
// may call Fail: it panics outside of Fire and Tick.
func (r *Runner) Fail(err error) {
	if r.word.Load() != running {
		r.made()
		panic(bug("Fail where no action runs"))
	}
	if err == nil {
		panic(bug("Fail of nil"))
	}
	r.failed = err
}

// ActionError names the node of a failed action.
type ActionError struct {
	Graph string
	Began string // the node that began the run; in a stripped graph its index, as "#3"
	Node  string // the action's node, in Graph or in the level's graph
	err   error  // from Fail
}

// Error returns the names and the text of Err.
func (e *ActionError) Error() string {
	return fmt.Sprintf("flow: graph %q: %q: the action of node %q failed: %v", e.Graph, e.Began, e.Node,
		e.err)
}

// Unwrap returns the action's error.
func (e *ActionError) Unwrap() error { return e.err }

func (r *Runner) fails(n *action) span {
	if r.failure == nil {
		home := r.home()
		at := uint32(uintptr(unsafe.Pointer(n)) - uintptr(r.graph.base))
		r.failure = &ActionError{home.Name(), home.nameOf(r.began), r.graph.nameOf(at), r.failed}
	}
	r.failed = nil
	return span{}
}
