package flow

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// Runner runs graphs of one host, one at a time: events by Fire, delays and timers by Tick. It is
// used between Begin and End, by one goroutine at a time; its own word refuses all else. The zero Runner
// is refused.
type Runner struct {
	word  atomic.Uint32
	of    *vocabulary
	world unsafe.Pointer
	stack unsafe.Pointer // of ranges of links that are not done: see push
	steps int            // of each event
	level place          // where nodes send to
	trace func(Step)

	// Where it is in a run.
	place
	data       unsafe.Pointer // of the instance
	base       unsafe.Pointer // of the graph's blob
	next, end  uint32         // the range of links that it is in
	top, taken int            // of the stack, of the steps
	began      *node          // the node that it began with
	unit       place          // that sent what it is in, or nothing
}

// place is an instance of a graph.
type place struct {
	graph    *Graph
	instance Instance
}

// The states of the word.
const (
	closed uint32 = iota
	ready
	running
)

// rangeSize is what a range of links takes on the stack.
const rangeSize = unsafe.Sizeof(span{})

// NewRunner makes a runner for graphs of the host in this world, with a budget of steps for each event.
// Its stack takes 16 bytes a step of s, and 8. It is one allocation on the Go heap. A full s unwinds.
func (h *Host[World]) NewRunner(s scope.Scope, world *World, steps int) *Runner {
	h.declared()
	if steps < 1 || steps > math.MaxInt32 {
		panic(bug("a runner with %d steps", steps))
	}
	stack := s.BytesUnzeroed((2*steps+1)*int(rangeSize), 8)
	return &Runner{of: &h.vocabulary, world: unsafe.Pointer(world), stack: unsafe.Pointer(&stack[0]), steps: steps}
}

// SendTo says where events of nodes of the type "send" go: to an instance of the level's graph. Until it
// is called they go nowhere.
func (r *Runner) SendTo(level *Graph, i Instance) {
	r.mine(level)
	r.level = place{level, i}
}

// Trace has fn called before each step; nil ends it.
func (r *Runner) Trace(fn func(Step)) { r.trace = fn }

// Step is a node that is about to run.
type Step struct {
	Graph    *Graph
	Instance Instance
	Node     int // its index in Source; that of the event first
	Port     int // by which it is led to
}

// Begin opens the phase in which the runner may be used.
func (r *Runner) Begin() { r.change(closed, ready, "Begin") }

// End closes it.
func (r *Runner) End() { r.change(ready, closed, "End") }

func (r *Runner) change(from, to uint32, what string) {
	if r.of == nil {
		panic(bug("a zero Runner: NewRunner of a Host makes one"))
	}
	if !r.word.CompareAndSwap(from, to) {
		panic(bug("%s %s", what, [...]string{
			closed:  "outside of its phase: call Begin first",
			ready:   "twice",
			running: "while an event runs: an action may not call it, nor another goroutine; a graph fires by a node \"send\"",
		}[r.word.Load()]))
	}
}

func (r *Runner) mine(g *Graph) {
	if r.of == nil {
		panic(bug("a zero Runner: NewRunner of a Host makes one"))
	}
	if g.of != r.of {
		g.loaded()
		panic(bug("a runner of another host than that of graph %q", g.Name()))
	}
}

// Fire runs what follows the event of this key in an instance of a graph, with its values. No node that
// is of the event: nothing happens. The error is a [StepsError], or that the instance isn't live. Cost:
// a few ns, a search among the graph's events, and some 2 ns a node.
func (e Event[V]) Fire(r *Runner, g *Graph, i Instance, key int32, values V) error {
	return r.fire(e.signal, place{g, i}, key, unsafe.Pointer(&values))
}

// FireNamed is Fire for tools, which have the name of an event of the vocabulary, and its values in
// order: what a [Variable] may have. One that isn't given is the zero value. It works on the Go heap.
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
	s := signal{of: r.of, hash: hashOf(event)}
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
	return r.fire(s, place{g, i}, key, unsafe.Pointer(&words[0]))
}

func (r *Runner) fire(e signal, p place, key int32, values unsafe.Pointer) error {
	if e.of == nil {
		panic(bug("a zero Event: NewEvent makes one"))
	}
	r.mine(p.graph)
	if e.of != r.of {
		panic(bug("an event of another host"))
	}
	r.change(ready, running, "Fire")
	defer r.done()
	if !r.goTo(p) {
		return gone(p.graph)
	}
	n := p.graph.find(e.hash, key)
	if n == nil {
		return nil
	}
	for j, out := range n.Out.Get(p.graph.blob) {
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

func gone(g *Graph) error { return fmt.Errorf("flow: the instance of graph %q isn't live", g.Name()) }

// find is the event node, or nil.
func (g *Graph) find(hash uint32, key int32) *event {
	events := g.root.Events.Get(g.blob)
	want := entry{Hash: hash, Key: key}
	low, high := 0, len(events)
	for low < high {
		middle := int(uint(low+high) / 2)
		switch compare := compare(events[middle], want); {
		case compare == 0:
			return (*event)(unsafe.Pointer(events[middle].Node.Get(g.blob)))
		case compare < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil
}

// goTo makes an instance the one that runs, and says whether it is live.
func (r *Runner) goTo(p place) bool {
	data := p.graph.at(p.instance)
	if data == nil {
		return false
	}
	r.place, r.data, r.base = p, data, p.graph.base
	p.graph.running = p.instance
	return true
}

// done ends a run, also one that an action panicked out of.
func (r *Runner) done() {
	for _, p := range [...]place{r.place, r.unit} {
		if p.graph != nil {
			p.graph.running = 0
		}
	}
	r.place, r.unit = place{}, place{}
	r.top = 0
	r.word.Store(ready)
}

// begin runs the links that follow an event, or a node whose time has come.
func (r *Runner) begin(n *node) error {
	s := spanOf(&n.Then)
	r.began, r.top, r.taken = n, 0, 0
	r.next, r.end = s.offset, s.offset+s.count*toSize
	if r.trace == nil {
		if r.run(r.steps) {
			return nil
		}
		return r.tooMany()
	}
	r.trace(Step{r.graph, r.instance, r.graph.index(n), 0})
	for r.peek() {
		if r.taken == r.steps {
			return r.tooMany()
		}
		l := (*to)(unsafe.Add(r.base, r.next))
		r.trace(Step{r.graph, r.instance, r.graph.index(l.Node.Get(r.graph.blob)), int(l.Port)})
		r.run(r.taken + 1)
	}
	return nil
}

// index is that of a node of the graph.
func (g *Graph) index(n *node) int {
	return indexOf(g.root.Nodes.Get(g.blob), uint32(uintptr(unsafe.Pointer(n))-uintptr(g.base)))
}

// peek goes to the next link to follow, if there is one.
func (r *Runner) peek() bool {
	for r.next == r.end {
		if r.top == 0 {
			return false
		}
		r.pop()
	}
	return true
}

// pop goes on with the range of links that lies on the stack. The empty one says that a unit sent what is
// done now.
func (r *Runner) pop() {
	r.top--
	s := (*span)(unsafe.Add(r.stack, uintptr(r.top)*rangeSize))
	r.next, r.end = s.offset, s.count
	if r.end == 0 {
		r.graph.running = 0
		if !r.goTo(r.unit) {
			r.top = 0 // an action ended it
		}
		r.unit = place{}
	}
}

// StepsError says that an event, or a delay or timer that went on, took more steps than there may be.
type StepsError struct {
	Graph string
	Began string // the node that it began with
	Node  string // the node that was next
	Steps int
}

// Error says it in one line.
func (e *StepsError) Error() string {
	return fmt.Sprintf("flow: graph %q: %q: no end after %d steps; node %q is next: is it in a cycle?", e.Graph, e.Began, e.Steps, e.Node)
}
