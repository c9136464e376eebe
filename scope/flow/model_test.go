package flow_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/flow"
)

// model is a graph that runs as a reader of the package's doc would have it: by names, recursively, on
// Go's heap.
type model struct {
	source *flow.Source
	nodes  map[string]*flow.Node
}

type instance struct {
	of     *model
	values map[string]any // of variables
	state  map[string]int // of nodes
	due    map[string]bool
	random uint32
}

// play is the models in one world.
type play struct {
	world *book
	level *instance
	limit int
	steps int
	next  string // the node that was one too many
}

func modelOf(source flow.Source) *model {
	m := &model{&source, map[string]*flow.Node{}}
	for i := range source.Nodes {
		m.nodes[source.Nodes[i].Name] = &source.Nodes[i]
	}
	return m
}

func (m *model) instance() *instance {
	i := &instance{m, map[string]any{}, map[string]int{}, map[string]bool{}, m.source.Seed}
	for _, v := range m.source.Variables {
		i.values[v.Name] = v.Value
		if v.Value == nil {
			i.values[v.Name] = zeroOf(v.Type)
		}
	}
	for name, n := range m.nodes {
		for _, in := range n.In {
			if (in.Name == "closed" || in.Name == "done") && in.Constant == true {
				i.state[name] = 1
			}
		}
	}
	return i
}

func zeroOf(t flow.Type) any {
	return map[flow.Type]any{flow.Bool: false, flow.Int: int32(0), flow.Number: float32(0), flow.Handle: uint64(0)}[t]
}

// in is an input's value.
func (i *instance) in(n *flow.Node, name string, t flow.Type) any {
	for _, in := range n.In {
		if in.Name != name {
			continue
		}
		if in.Variable != "" {
			return i.values[in.Variable]
		}
		return in.Constant
	}
	return zeroOf(t)
}

func (i *instance) out(n *flow.Node, name string, value any) {
	for _, out := range n.Out {
		if out.Name == name {
			i.values[out.Variable] = value
		}
	}
}

func (n *modelNode) list(name string) []flow.Link {
	for _, l := range n.List {
		if l.Name == name {
			return l.Links
		}
	}
	return nil
}

type modelNode struct{ *flow.Node }

// fire writes values and follows what the event leads to.
func (p *play) fire(i *instance, event string, key int32, values map[string]any) (begun string, ok bool) {
	for name, n := range i.of.nodes {
		if n.Type == "event" && n.Of == event && n.Key == key {
			for value := range values {
				i.out(n, value, values[value])
			}
			return name, p.follow(i, (&modelNode{n}).list("then"))
		}
	}
	return "", true
}

func (p *play) follow(i *instance, links []flow.Link) bool {
	for _, l := range links {
		if p.steps == p.limit {
			p.next = l.Node
			return false
		}
		p.steps++
		if !p.step(i, &modelNode{i.of.nodes[l.Node]}, l.Port) {
			return false
		}
	}
	return true
}

// step runs a node, and says whether steps were left.
func (p *play) step(i *instance, n *modelNode, port string) bool {
	choose := func(yes bool) bool {
		if yes {
			return p.follow(i, n.list("then"))
		}
		return p.follow(i, n.list("else"))
	}
	name := n.Name
	switch n.Type {
	case "branch":
		return choose(i.in(n.Node, "if", flow.Bool).(bool))
	case "gate":
		switch port {
		case "open":
			i.state[name] = 0
		case "close":
			i.state[name] = 1
		case "toggle":
			i.state[name] = 1 - i.state[name]
		default:
			return i.state[name] != 0 || p.follow(i, n.list("then"))
		}
		return true
	case "once":
		if port == "reset" {
			i.state[name] = 0
			return true
		}
		was := i.state[name]
		i.state[name] = 1
		return was != 0 || p.follow(i, n.list("then"))
	case "counter":
		i.state[name]++
		if port == "reset" {
			i.state[name] = 0
			return true
		}
		if i.state[name] < int(i.in(n.Node, "limit", flow.Int).(int32)) {
			return true
		}
		i.state[name] = 0
	case "delay", "timer":
		every := n.Type == "timer"
		ticks := i.in(n.Node, map[bool]string{true: "every", false: "ticks"}[every], flow.Int).(int32)
		if every && ticks < 1 {
			ticks = 1
		}
		delete(i.due, name)
		i.state[name] = 0
		if port == "cancel" || port == "stop" {
			return true
		}
		if ticks > 0 {
			i.state[name] = int(ticks)
			return true
		}
	case "sequence":
		if port == "reset" || len(n.List) == 0 {
			i.state[name] = 0
			return true
		}
		at := i.state[name] % len(n.List)
		i.state[name] = at + 1
		return p.follow(i, n.list(strconv.Itoa(at+1)))
	case "random":
		if len(n.List) == 0 {
			return true
		}
		return p.follow(i, n.list(strconv.Itoa(1+i.below(len(n.List)))))
	case "set", "add":
		to := n.Out[0].Variable
		value := i.in(n.Node, "value", typeOf(i.values[to]))
		switch was := i.values[to].(type) {
		case int32:
			if n.Type == "add" {
				value = was + value.(int32)
			}
		case float32:
			if n.Type == "add" {
				value = was + value.(float32)
			}
		}
		i.values[to] = value
	case "equal", "less":
		a, b := i.in(n.Node, "a", 0), i.in(n.Node, "b", 0)
		if n.Type == "equal" {
			return choose(a == b)
		}
		switch a := a.(type) {
		case int32:
			return choose(a < b.(int32))
		case float32:
			return choose(a < b.(float32))
		}
	case "action":
		p.act(i, n.Node)
	case "send":
		given := map[string]any{"a": i.in(n.Node, "a", flow.Int), "b": i.in(n.Node, "b", flow.Bool), "c": i.in(n.Node, "c", flow.Number),
			"d": i.in(n.Node, "d", flow.Handle)}
		if p.level != nil {
			if _, ok := p.fire(p.level, n.Of, i.in(n.Node, "key", flow.Int).(int32), given); !ok {
				return false
			}
		}
	}
	return p.follow(i, n.list("then"))
}

func typeOf(value any) flow.Type {
	switch value.(type) {
	case bool:
		return flow.Bool
	case int32:
		return flow.Int
	case float32:
		return flow.Number
	}
	return flow.Handle
}

func (p *play) act(i *instance, n *flow.Node) {
	a := i.in(n, "a", flow.Int).(int32)
	switch n.Of {
	case "note":
		p.world.note(a, i.in(n, "b", flow.Bool), i.in(n, "c", flow.Number), i.in(n, "d", flow.Handle))
	case "ask":
		x, y, z, w := p.world.ask(a)
		i.out(n, "x", x)
		i.out(n, "y", y)
		i.out(n, "z", z)
		i.out(n, "w", w)
	}
}

// below is a number below n: M. E. O'Neill's PCG-RXS-M-XS of 32 bits.
func (i *instance) below(n int) int {
	x := i.random
	i.random = i.random*747796405 + 2891336453
	x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737
	x = (x >> 22) ^ x
	return int(uint64(x) * uint64(n) / (1 << 32))
}

// tick gives the errors that a tick of an instance has, as texts.
func (p *play) tick(i *instance) (errors []string) {
	var timed []string
	for _, n := range i.of.source.Nodes {
		if n.Type == "delay" || n.Type == "timer" {
			timed = append(timed, n.Name)
		}
	}
	for _, name := range timed {
		if i.state[name] > 0 {
			i.state[name]--
			i.due[name] = i.state[name] == 0
		}
	}
	for _, name := range timed {
		if !i.due[name] {
			continue
		}
		delete(i.due, name)
		n := &modelNode{i.of.nodes[name]}
		if n.Type == "timer" {
			i.state[name] = int(max(1, i.in(n.Node, "every", flow.Int).(int32)))
		}
		p.steps = 0
		if !p.follow(i, n.list("then")) {
			errors = append(errors, p.tooMany(i, name))
		}
	}
	return errors
}

func (p *play) tooMany(i *instance, begun string) string {
	return (&flow.StepsError{Graph: i.of.source.Name, Began: begun, Node: p.next, Steps: p.limit}).Error()
}

// maker makes sources by chance.
type maker struct {
	*rand.Rand
	source flow.Source
	states map[flow.Type][]string // names of variables that set and add write
	others []flow.Variable        // that nobody writes yet
}

func (m *maker) constant(t flow.Type) any {
	switch t {
	case flow.Bool:
		return m.IntN(2) == 0
	case flow.Int:
		return int32(m.IntN(6) - 1)
	case flow.Number:
		return float32(m.IntN(5)-1) / 2
	}
	return nil
}

var allTypes = []flow.Type{flow.Bool, flow.Int, flow.Number, flow.Handle}

func randomSource(r *rand.Rand, name string, nodes int) flow.Source {
	m := &maker{Rand: r, states: map[flow.Type][]string{}}
	m.source = flow.Source{Name: name, Seed: r.Uint32()}
	for i := range 4 + r.IntN(16) {
		v := flow.Variable{Name: fmt.Sprint("v", i), Type: allTypes[r.IntN(4)]}
		if r.IntN(2) == 0 {
			v.Value = m.constant(v.Type)
		}
		m.source.Variables = append(m.source.Variables, v)
		if r.IntN(2) == 0 {
			m.states[v.Type] = append(m.states[v.Type], v.Name)
		} else {
			m.others = append(m.others, v)
		}
	}
	for i := range nodes {
		m.source.Nodes = append(m.source.Nodes, m.node(i))
	}
	for i := range m.source.Nodes {
		m.lists(&m.source.Nodes[i])
	}
	return m.source
}

func (m *maker) input(n *flow.Node, name string, t flow.Type) {
	var of []string
	for _, v := range m.source.Variables {
		if v.Type == t {
			of = append(of, v.Name)
		}
	}
	switch {
	case len(of) > 0 && m.IntN(3) != 0:
		n.In = append(n.In, flow.Input{Name: name, Variable: of[m.IntN(len(of))]})
	case t != flow.Handle && m.IntN(5) != 0:
		n.In = append(n.In, flow.Input{Name: name, Constant: m.constant(t)})
	}
}

// must is input that is there.
func (m *maker) must(n *flow.Node, name string, t flow.Type) {
	if m.input(n, name, t); len(n.In) == 0 || n.In[len(n.In)-1].Name != name {
		n.In = append(n.In, flow.Input{Name: name, Constant: zeroOf(t)})
	}
}

func (m *maker) output(n *flow.Node, name string, t flow.Type) {
	for i, v := range m.others {
		if v.Type == t && m.IntN(2) == 0 {
			n.Out = append(n.Out, flow.Output{Name: name, Variable: v.Name})
			m.others = slices.Delete(m.others, i, i+1)
			return
		}
	}
}

func (m *maker) node(i int) flow.Node {
	names := []string{"event", "branch", "gate", "once", "counter", "delay", "timer", "sequence", "random", "set", "add", "equal", "less",
		"action", "action", "send"}
	n := flow.Node{Name: fmt.Sprint("n", i), Type: names[m.IntN(len(names))]}
	switch n.Type {
	case "event":
		n.Of, n.Key = []string{"near", "far"}[m.IntN(2)], int32(i/2)
		for _, other := range m.source.Nodes {
			if other.Type == "event" && other.Of == n.Of && other.Key == n.Key {
				n.Key += 1000
			}
		}
		m.output(&n, "a", flow.Int)
		m.output(&n, "b", flow.Bool)
		m.output(&n, "c", flow.Number)
		m.output(&n, "d", flow.Handle)
	case "branch":
		m.input(&n, "if", flow.Bool)
	case "gate":
		n.In = append(n.In, flow.Input{Name: "closed", Constant: m.IntN(2) == 0})
	case "once":
		n.In = append(n.In, flow.Input{Name: "done", Constant: m.IntN(2) == 0})
	case "counter":
		m.input(&n, "limit", flow.Int)
	case "delay":
		m.input(&n, "ticks", flow.Int)
	case "timer":
		m.input(&n, "every", flow.Int)
	case "set", "add":
		t := allTypes[m.IntN(4)]
		if n.Type == "add" {
			t = []flow.Type{flow.Int, flow.Number}[m.IntN(2)]
		}
		if len(m.states[t]) == 0 {
			n.Type = "random"
			break
		}
		n.Out = []flow.Output{{Name: "to", Variable: m.states[t][m.IntN(len(m.states[t]))]}}
		m.input(&n, "value", t)
	case "equal", "less":
		t := []flow.Type{flow.Int, flow.Number, flow.Bool}[m.IntN(3)]
		if n.Type == "less" {
			t = []flow.Type{flow.Int, flow.Number}[m.IntN(2)]
		}
		m.must(&n, "a", t)
		m.must(&n, "b", t)
	case "action":
		n.Of = []string{"note", "ask"}[m.IntN(2)]
		m.input(&n, "a", flow.Int)
		if n.Of == "note" {
			m.input(&n, "b", flow.Bool)
			m.input(&n, "c", flow.Number)
			m.input(&n, "d", flow.Handle)
			break
		}
		m.output(&n, "x", flow.Int)
		m.output(&n, "y", flow.Bool)
		m.output(&n, "z", flow.Number)
		m.output(&n, "w", flow.Handle)
	case "send":
		n.Of = []string{"near", "far"}[m.IntN(2)]
		m.input(&n, "key", flow.Int)
		m.input(&n, "a", flow.Int)
		m.input(&n, "b", flow.Bool)
		m.input(&n, "c", flow.Number)
		m.input(&n, "d", flow.Handle)
	}
	return n
}

var modelPorts = map[string][]string{"event": nil, "gate": {"", "in", "open", "close", "toggle"}, "once": {"", "reset"},
	"counter": {"", "reset"}, "delay": {"", "cancel"}, "timer": {"", "start", "stop"}, "sequence": {"", "reset"}}

func (m *maker) lists(n *flow.Node) {
	names := []string{"then"}
	switch n.Type {
	case "branch", "equal", "less":
		names = []string{"then", "else"}
	case "sequence", "random":
		names = nil
		for i := range m.IntN(4) {
			names = append(names, strconv.Itoa(i+1))
		}
	}
	for _, name := range names {
		l := flow.List{Name: name}
		for range m.IntN(4) {
			target := m.source.Nodes[m.IntN(len(m.source.Nodes))]
			ports, several := modelPorts[target.Type]
			switch {
			case !several:
				l.Links = append(l.Links, flow.Link{Node: target.Name})
			case len(ports) > 0:
				l.Links = append(l.Links, flow.Link{Node: target.Name, Port: ports[m.IntN(len(ports))]})
			}
		}
		n.List = append(n.List, l)
	}
}

// pair is the real thing beside its model.
type pair struct {
	*testing.T
	r      *rand.Rand
	p      play
	real   *book
	runner *flow.Runner
	graphs []*flow.Graph
	models []*model
	live   []map[flow.Instance]*instance // of each graph
	lines  int
	errors int
}

// TestModel: whatever graphs there are and whatever is done to them, the runner does what the model does.
func TestModel(t *testing.T) {
	rounds := 150
	if os.Getenv("UPFRONT_SOAK") != "" {
		rounds = 20000
	}
	took := map[string]int{}
	for seed := range uint64(rounds) {
		checkModel(t, seed, took)
		if t.Failed() {
			t.Logf("seed %d", seed)
			return
		}
	}
	for _, what := range []string{"lines", "asked", "errors", "sent"} {
		assert.NotZero(t, took[what], what)
	}
}

func checkModel(t *testing.T, seed uint64, took map[string]int) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := openScope(t)
	x := &pair{T: t, r: r, real: &book{}}
	x.p = play{world: &book{}, limit: 1 + r.IntN(60)}
	x.runner = books.NewRunner(s, x.real, x.p.limit)
	for i := range 2 {
		source := randomSource(r, []string{"level", "unit"}[i], 1+r.IntN(30))
		x.graphs = append(x.graphs, load(t, s, source, 3))
		x.models = append(x.models, modelOf(source))
		x.live = append(x.live, map[flow.Instance]*instance{})
		x.make(i)
		for _, n := range source.Nodes {
			if n.Type == "send" {
				took["sent"]++
			}
		}
	}
	if r.IntN(4) != 0 {
		for h, i := range x.live[0] {
			x.p.level = i
			x.runner.SendTo(x.graphs[0], h)
		}
	}
	if r.IntN(3) == 0 {
		x.runner.Trace(func(step flow.Step) { took["steps"]++ })
	}
	for range 60 {
		if x.act(); t.Failed() {
			return
		}
	}
	took["lines"] += x.lines
	took["asked"] += int(x.real.asked)
	took["errors"] += x.errors
}

func (x *pair) make(graph int) {
	h := x.graphs[graph].New()
	require.Equal(x, len(x.live[graph]) < 3, h != 0)
	if h != 0 {
		i := x.models[graph].instance()
		x.live[graph][h] = i
		if x.r.IntN(3) == 0 {
			i.random = x.r.Uint32()
			x.graphs[graph].Seed(h, i.random)
		}
	}
}

// any is one of a graph's instances, in the order of their chunks.
func (x *pair) instances(graph int) []flow.Instance {
	var all []flow.Instance
	for h := range x.live[graph] {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b flow.Instance) int { return int(uint32(a)) - int(uint32(b)) })
	return all
}

func (x *pair) act() {
	graph := x.r.IntN(2)
	all := x.instances(graph)
	var want, got string
	x.runner.Begin()
	x.p.steps = 0
	switch what := x.r.IntN(10); {
	case what == 0:
		x.make(graph)
	case what == 1 && graph == 1 && len(all) > 0:
		h := all[x.r.IntN(len(all))]
		x.graphs[graph].Free(h)
		delete(x.live[graph], h)
		assert.False(x, x.graphs[graph].Live(h))
	case what < 4:
		got = text(x.runner.Tick(x.graphs[graph]))
		for _, h := range all {
			if errors := x.p.tick(x.live[graph][h]); len(errors) > 0 && want == "" {
				want = errors[0]
			}
		}
	case len(all) > 0:
		h := all[x.r.IntN(len(all))]
		want, got = x.fire(graph, h)
	}
	x.runner.End()
	assert.Equal(x, want, got)
	assert.Equal(x, x.p.world.lines, x.real.lines)
	x.lines += len(x.real.lines)
	x.real.lines, x.p.world.lines = nil, nil
	for graph, live := range x.live {
		for h, i := range live {
			for n, v := range x.models[graph].source.Variables {
				want, got := i.values[v.Name], x.graphs[graph].Value(h, n)
				if want != got && fmt.Sprint(want) != fmt.Sprint(got) { // not a number is not itself
					x.Errorf("graph %d, %s: %v, not %v", graph, v.Name, got, want)
				}
			}
		}
	}
}

func (x *pair) fire(graph int, h flow.Instance) (want, got string) {
	key, v := int32(x.r.IntN(16)), values{x.r.IntN(2) == 0, x.r.Uint64(), int32(x.r.IntN(4)), float32(x.r.IntN(4))}
	for _, n := range x.models[graph].source.Nodes { // most often one that there is
		if n.Type == "event" && x.r.IntN(2) == 0 {
			key = n.Key
		}
	}
	event, name := near, "near"
	if x.r.IntN(2) == 0 {
		event, name = far, "far"
	}
	got = text(event.Fire(x.runner, x.graphs[graph], h, key, v))
	i := x.live[graph][h]
	if begun, ok := x.p.fire(i, name, key, map[string]any{"a": v.A, "b": v.B, "c": v.C, "d": v.D}); !ok {
		want = x.p.tooMany(i, begun)
		x.errors++
	}
	return want, got
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
