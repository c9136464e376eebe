package flow_test

import (
	"strconv"

	"github.com/upfront-mem/upfront/scope/flow"
)

// model is a graph that runs as the package's doc describes: by names, recursively, on Go's heap.
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

// play holds the models of one world.
type play struct {
	world *book
	level *instance
	limit int
	steps int
	next  string // the node after the last step
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
	return map[flow.Type]any{flow.Bool: false, flow.Int: int32(0), flow.Number: float32(0),
		flow.Handle: uint64(0)}[t]
}

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

func (p *play) fire(i *instance, event string, key int32, values map[string]any) (begun string,
	ok bool) {
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

// step runs a node, and reports whether steps were left.
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
		given := map[string]any{"a": i.in(n.Node, "a", flow.Int), "b": i.in(n.Node, "b", flow.Bool),
			"c": i.in(n.Node, "c", flow.Number),
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

// below returns a number below n: M. E. O'Neill's PCG-RXS-M-XS of 32 bits.
func (i *instance) below(n int) int {
	x := i.random
	i.random = i.random*747796405 + 2891336453
	x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737
	x = (x >> 22) ^ x
	return int(uint64(x) * uint64(n) / (1 << 32))
}

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
	return (&flow.StepsError{Graph: i.of.source.Name, Began: begun, Node: p.next,
		Steps: p.limit}).Error()
}
