package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/upfront-mem/upfront/scope/flow"
)

// SVG draws the nodes of a graph from left to right, in the order in which links reach the nodes.
// In a cycle a link leads back. SVG also draws the variables that the nodes read and write.
func SVG(w io.Writer, graph flow.Source) error {
	_, err := w.Write(pictureOf(graph).svg())
	return err
}

// DOT writes a graph for Graphviz.
func DOT(w io.Writer, graph flow.Source) error {
	_, err := w.Write(pictureOf(graph).dot())
	return err
}

// pictureOf returns the picture of one version.
func pictureOf(graph flow.Source) *picture {
	p := diffOf(graph, graph)
	p.marked = false
	return p
}

// diffOf makes a box for each node. Links to missing nodes are left out.
func diffOf(a, b flow.Source) *picture {
	p := &picture{name: b.Name, marked: true, title: "flow " + oneLine(a.Name)}
	if a.Name != b.Name {
		p.title += " → " + oneLine(b.Name)
	}
	if a.Seed != b.Seed {
		p.title += fmt.Sprintf(", seed %d → %d", a.Seed, b.Seed)
	}
	nodes := match(a.Nodes, b.Nodes, func(n flow.Node) string { return n.Name })
	named := map[string]*box{}
	for _, n := range nodes {
		text, m := linesOf(n)
		box := p.box(kindOf(*n.last()), m, n.last().Name, text...)
		if named[n.last().Name] == nil {
			named[n.last().Name] = box
		}
	}
	for i, n := range nodes {
		for _, l := range matchLinks(n) {
			if to := named[l.last().to]; to != nil {
				text, m := labelOf(l)
				p.wire(p.boxes[i], to, m, text, false)
			}
		}
	}
	p.variables(match(a.Variables, b.Variables, func(v flow.Variable) string { return v.Name }), nodes)
	return p
}

// variables makes a box for a variable next to each group of linked nodes that use it. So a
// variable that the whole level uses doesn't tie the groups together. A variable that no node uses
// has a box if it differs.
func (p *picture) variables(variables []both[flow.Variable], nodes []both[flow.Node]) {
	declared := map[string]both[flow.Variable]{}
	for _, v := range variables {
		if name := v.last().Name; declared[name].last() == nil {
			declared[name] = v
		}
	}
	type use struct {
		group    *group
		variable string
	}
	of := map[*box]*group{}
	for _, g := range p.groups() {
		for _, b := range g.boxes {
			of[b] = g
		}
	}
	uses, used := map[use]*box{}, map[string]bool{}
	variable := func(g *group, name string) *box {
		u := use{g, name}
		if uses[u] == nil {
			text, m := typeOf(declared[name])
			uses[u], used[name] = p.box(variableBox, m, name, text...), true
		}
		return uses[u]
	}
	for i, n := range nodes {
		node := p.boxes[i]
		for _, v := range match(valuesOf(n.a), valuesOf(n.b), func(v value) value { return v }) {
			switch u := v.last(); {
			case u.variable && u.out:
				p.wire(node, variable(of[node], u.text), v.mark(), u.name, true)
			case u.variable:
				p.wire(variable(of[node], u.text), node, v.mark(), u.name, true)
			}
		}
	}
	for _, v := range variables {
		if _, m := typeOf(v); m != same && !used[v.last().Name] {
			variable(nil, v.last().Name)
		}
	}
}

func kindOf(n flow.Node) kind {
	switch n.Type {
	case "event":
		return event
	case "action", "send":
		return action
	}
	return logic
}

// whatText returns a node's type, or the name of its action or event.
func whatText(n flow.Node) string {
	switch n.Type {
	case "event":
		return fmt.Sprintf("%s %d", n.Of, n.Key)
	case "action":
		return n.Of
	case "send":
		return "send " + n.Of
	}
	return n.Type
}

// linkText returns a link's list, its index in a list of several, and its port. A single "then" is
// left out.
func linkText(list flow.List, k int) string {
	var text []string
	if list.Name != "then" || len(list.Links) > 1 {
		text = append(text, list.Name)
	}
	if len(list.Links) > 1 {
		text = append(text, fmt.Sprint(k+1))
	}
	if port := list.Links[k].Port; port != "" {
		text = append(text, "→ "+port)
	}
	return strings.Join(text, " ")
}

// typeOf returns the lines of a variable's box below its name.
func typeOf(v both[flow.Variable]) ([]string, mark) {
	text := func(v *flow.Variable) string {
		switch {
		case v == nil:
			return "unknown"
		case v.Value == nil:
			return v.Type.String()
		}
		return v.Type.String() + ", begins " + fmt.Sprint(v.Value)
	}
	if m := v.mark(); m != same || v.last() == nil {
		return []string{text(v.last())}, m
	}
	return change("", text(v.a), text(v.b))
}
