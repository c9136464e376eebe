package main

import (
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

// Other contestants that run a graph.
const (
	byInterface = "Go, an interface a node"
	byClosure   = "Go, a closure a node"
	byList      = "Go, a list of nodes in a row"
)

var workO = work{
	letter: "O", title: "an event of a graph that leads through eight nodes; an instance of a graph, made and freed",
	absent: "C runs the blob that upfront runs, with its word, its handle, its search and its steps; the others are " +
		"nodes of a program, with steps that are only counted.",
	loops: []loop{
		{name: "O cascade of eight nodes", unit: "event", units: 1, enter: enterCascade},
		{name: "O instance", unit: "instance", units: 1, enter: enterInstance},
	},
	parts: []part{{name: "O cascade's memory", measure: func(h *harness) ([]series, error) {
		var all []series
		for _, c := range []struct {
			who string
			fn  func() int
		}{{library, cascadeSize}, {byInterface, cascadeOnHeap(interfaceNodes)},
			{byClosure, cascadeOnHeap(closureNodes)},
			{byList, cascadeOnHeap(listNodes)}} {
			s := newSeries("O cascade's memory", "bytes of a graph", c.who)
			s.values = []float64{float64(c.fn())}
			all = append(all, s)
		}
		return all, nil
	}}},
}

const steps = 1000

// touched is the host's world, which the last of the eight nodes changes.
type touched struct{ sum uint64 }

var (
	graphs = flow.NewHost[touched]()
	began  = flow.NewEvent[struct{}](graphs, "begin")
	_      = flow.NewAction(graphs, "touch", func(r *flow.Runner, w *touched,
		p *struct{ By flow.In[int32] }) {
		w.sum += uint64(p.By.Get(r))
	})
	cascade = flow.Source{Name: "cascade",
		Variables: []flow.Variable{{Name: "n", Type: flow.Int}, {Name: "last", Type: flow.Int},
			{Name: "on", Type: flow.Bool, Value: true}},
		Nodes: []flow.Node{
			{Name: "begin", Type: "event", Of: "begin", List: then("add")},
			{Name: "add", Type: "add", In: []flow.Input{{Name: "value", Constant: 3}},
				Out:  []flow.Output{{Name: "to", Variable: "n"}},
				List: then("less")},
			{Name: "less", Type: "less", In: []flow.Input{{Name: "a", Variable: "last"},
				{Name: "b", Variable: "n"}}, List: then("gate")},
			{Name: "gate", Type: "gate", List: then("branch")},
			{Name: "branch", Type: "branch", In: []flow.Input{{Name: "if", Variable: "on"}},
				List: then("count")},
			{Name: "count", Type: "counter", In: []flow.Input{{Name: "limit", Constant: 1}},
				List: then("set")},
			{Name: "set", Type: "set", In: []flow.Input{{Name: "value", Constant: -5}},
				Out:  []flow.Output{{Name: "to", Variable: "last"}},
				List: then("equal")},
			{Name: "equal", Type: "equal", In: []flow.Input{{Name: "a", Variable: "last"},
				{Name: "b", Constant: -5}}, List: then("touch")},
			{Name: "touch", Type: "action", Of: "touch", In: []flow.Input{{Name: "by", Constant: 7}}},
		}}
)

func then(node string) []flow.List {
	return []flow.List{{Name: "then", Links: []flow.Link{{Node: node}}}}
}

// compiled returns the cascade's blob, and the data of a new instance.
func compiled() (data, template []byte, report flow.Report) {
	data, report, err := flow.Compile(cascade, graphs.Vocabulary())
	if err != nil {
		panic(err)
	}
	// A head, two ints, a bool, and the states of the gate and the counter.
	words := []uint32{0, 0, 0, 0, 1, 0, 0, 0}
	return data, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), report.Data), report
}

func loadGraph(b *budget.Budget, instances int) (*flow.Graph, *flow.Runner, *touched) {
	data, _, _ := compiled()
	s, w := b.Scratch(0, 0).Open("graph"), &touched{}
	g, err := graphs.Load(s, data, make([]byte, blob.ScratchSize(data)))
	if err != nil {
		panic(err)
	}
	g.Instances(instances)
	return g, graphs.NewRunner(s, w, steps), w
}

//go:noinline
func enterCascade() []contestant {
	data, template, _ := compiled()
	c := cfloor.NewRunner(data, template, steps)
	b, end := scratches(1, budget.MiB)
	g, r, w := loadGraph(b, 1)
	r.Begin()
	return []contestant{
		{who: floor, run: func(n int) uint64 { return c.Fire("begin", n) }},
		{who: library, end: end, run: func(n int) uint64 {
			w.sum = 0
			i := g.New()
			for range n {
				if err := began.Fire(r, g, i, 0, struct{}{}); err != nil {
					panic(err)
				}
			}
			g.Free(i)
			return w.sum
		}},
		byNodes(byInterface, interfaceNodes),
		byNodes(byClosure, closureNodes),
		byNodes(byList, listNodes),
	}
}

// state is changed by the nodes of a program.
type state struct {
	n, last, count int32
	on, closed     bool
	sum            uint64
	steps          int
}

//go:noinline
func byNodes(who string, nodes func(s *state) func()) contestant {
	s := &state{}
	run := nodes(s)
	return contestant{who: who, run: func(n int) uint64 {
		*s = state{on: true}
		for range n {
			s.steps = steps
			run()
		}
		return s.sum
	}}
}

type runs interface{ run(s *state) }

type (
	addNode struct {
		to   *int32
		by   int32
		then []runs
	}
	lessNode struct {
		a, b            *int32
		then, otherwise []runs
	}
	gateNode   struct{ then []runs }
	branchNode struct {
		on              *bool
		then, otherwise []runs
	}
	counterNode struct {
		limit int32
		then  []runs
	}
	setNode struct {
		to    *int32
		value int32
		then  []runs
	}
	equalNode struct {
		a               *int32
		b               int32
		then, otherwise []runs
	}
	touchNode struct{ by int32 }
)

func follow(s *state, list []runs) {
	for _, n := range list {
		if s.steps--; s.steps < 0 {
			return
		}
		n.run(s)
	}
}

func (n *addNode) run(s *state) { *n.to += n.by; follow(s, n.then) }
func (n *setNode) run(s *state) { *n.to = n.value; follow(s, n.then) }
func (n *gateNode) run(s *state) {
	if !s.closed {
		follow(s, n.then)
	}
}

func (n *lessNode) run(s *state) {
	if *n.a < *n.b {
		follow(s, n.then)
	} else {
		follow(s, n.otherwise)
	}
}

func (n *branchNode) run(s *state) {
	if *n.on {
		follow(s, n.then)
	} else {
		follow(s, n.otherwise)
	}
}

func (n *counterNode) run(s *state) {
	if s.count++; s.count >= n.limit {
		s.count = 0
		follow(s, n.then)
	}
}

func (n *equalNode) run(s *state) {
	if *n.a == n.b {
		follow(s, n.then)
	} else {
		follow(s, n.otherwise)
	}
}

func (n *touchNode) run(s *state) { s.sum += uint64(n.by) }

//go:noinline
func interfaceNodes(s *state) func() {
	list := func(n runs) []runs { return []runs{n} }
	equal := &equalNode{a: &s.last, b: -5, then: list(&touchNode{7})}
	count := &counterNode{1, list(&setNode{&s.last, -5, list(equal)})}
	gate := &gateNode{list(&branchNode{on: &s.on, then: list(count)})}
	begin := list(&addNode{&s.n, 3, list(&lessNode{a: &s.last, b: &s.n, then: list(gate)})})
	return func() { follow(s, begin) }
}

//go:noinline
func closureNodes(s *state) func() {
	follow := func(list []func()) {
		for _, n := range list {
			if s.steps--; s.steps < 0 {
				return
			}
			n()
		}
	}
	node := func(run func() bool, then ...func()) func() {
		return func() {
			if run() {
				follow(then)
			}
		}
	}
	by := int32(7)
	touch := node(func() bool { s.sum += uint64(by); return true })
	equal := node(func() bool { return s.last == -5 }, touch)
	set := node(func() bool { s.last = -5; return true }, equal)
	count := node(func() bool {
		s.count++
		if s.count >= 1 {
			s.count = 0
			return true
		}
		return false
	}, set)
	branch := node(func() bool { return s.on }, count)
	gate := node(func() bool { return !s.closed }, branch)
	less := node(func() bool { return s.last < s.n }, gate)
	begin := []func(){node(func() bool { s.n += 3; return true }, less)}
	return func() { follow(begin) }
}

// row is a node of a list whose nodes run in order.
type row struct {
	what  uint8
	a, b  *int32
	value int32
}

//go:noinline
func listNodes(s *state) func() {
	list := []row{{what: 0, a: &s.n, value: 3}, {what: 1, a: &s.last, b: &s.n}, {what: 2}, {what: 3},
		{what: 4, value: 1},
		{what: 5, a: &s.last, value: -5}, {what: 6, a: &s.last, value: -5}, {what: 7, value: 7}}
	return func() {
		for i := range list {
			n, ok := &list[i], true
			if s.steps--; s.steps < 0 {
				return
			}
			switch n.what {
			case 0:
				*n.a += n.value
			case 1:
				ok = *n.a < *n.b
			case 2:
				ok = !s.closed
			case 3:
				ok = s.on
			case 4:
				if s.count++; s.count >= n.value {
					s.count = 0
				} else {
					ok = false
				}
			case 5:
				*n.a = n.value
			case 6:
				ok = *n.a == n.value
			case 7:
				s.sum += uint64(n.value)
			}
			if !ok {
				return
			}
		}
	}
}

// cascadeSize returns the bytes of the nodes in the blob, and of an instance.
func cascadeSize() int {
	_, _, report := compiled()
	return report.Static + report.Data
}

// cascadeOnHeap returns the bytes of the nodes and their state on the Go heap, by size class.
func cascadeOnHeap(nodes func(s *state) func()) func() int {
	return func() int {
		const many = 1000
		var keep [many]func()
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range keep {
			keep[i] = nodes(new(state))
		}
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(keep)
		return int(after.TotalAlloc-before.TotalAlloc) / many
	}
}

//go:noinline
func enterInstance() []contestant {
	_, template, _ := compiled()
	b, end := scratches(1, budget.MiB)
	g, _, _ := loadGraph(b, 100)
	return []contestant{
		{who: library, end: end, run: func(n int) uint64 {
			for range n {
				g.Free(g.New())
			}
			return 0
		}},
		{who: goHeap, run: func(n int) uint64 {
			for range n {
				lived = append([]byte(nil), template...)
			}
			return uint64(lived[0])
		}},
	}
}

var lived []byte
