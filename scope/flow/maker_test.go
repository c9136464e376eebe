package flow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/upfront-mem/upfront/scope/flow"
)

type maker struct {
	*rand.Rand
	source flow.Source
	states map[flow.Type][]string // names of variables that set and add write
	others []flow.Variable        // variables without a writer so far
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
	names := []string{"event", "branch", "gate", "once", "counter", "delay", "timer", "sequence",
		"random", "set", "add", "equal", "less",
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

var modelPorts = map[string][]string{"event": nil, "gate": {"", "in", "open", "close", "toggle"},
	"once":    {"", "reset"},
	"counter": {"", "reset"}, "delay": {"", "cancel"}, "timer": {"", "start", "stop"},
	"sequence": {"", "reset"}}

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
