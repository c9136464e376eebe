package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/scope/flow"
)

// SVG draws a graph: nodes from left to right, in the order in which links reach them, and the
// variables that they read and write.
func SVG(w io.Writer, graph flow.Source) error {
	_, err := w.Write(pictureOf(graph).svg())
	return err
}

// DOT writes a graph for Graphviz.
func DOT(w io.Writer, graph flow.Source) error {
	_, err := w.Write(pictureOf(graph).dot())
	return err
}

// pictureOf makes a box for each node, and one for a variable next to each group of linked nodes.
// So a variable that the whole level uses doesn't tie the groups together. Links to missing nodes
// are left out.
func pictureOf(graph flow.Source) *picture {
	p := &picture{name: graph.Name}
	nodes := map[string]*box{}
	for _, n := range graph.Nodes {
		if b := p.box(kindOf(n), n.Name, linesOf(n)...); nodes[n.Name] == nil {
			nodes[n.Name] = b
		}
	}
	for i, n := range graph.Nodes {
		for _, list := range n.List {
			for k, l := range list.Links {
				if to := nodes[l.Node]; to != nil {
					p.wire(p.boxes[i], to, linkText(list, k), false)
				}
			}
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
	uses := map[use]*box{}
	variable := func(node *box, name string) *box {
		u := use{of[node], name}
		if uses[u] == nil {
			uses[u] = p.box(variableBox, name, typeOf(graph, name))
		}
		return uses[u]
	}
	for i, n := range graph.Nodes {
		b := p.boxes[i]
		for _, in := range n.In {
			if in.Variable != "" {
				p.wire(variable(b, in.Variable), b, in.Name, true)
			}
		}
		for _, out := range n.Out {
			if out.Variable != "" {
				p.wire(b, variable(b, out.Variable), out.Name, true)
			}
		}
	}
	return p
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

// linesOf returns the lines of a node's box below its name: its type, and its constants.
func linesOf(n flow.Node) []string {
	lines := []string{whatText(n)}
	var constants []string
	for _, in := range n.In {
		if in.Variable == "" && in.Constant != nil {
			constants = append(constants, in.Name+" "+fmt.Sprint(in.Constant))
		}
	}
	for some := range slices.Chunk(constants, 2) {
		lines = append(lines, strings.Join(some, ", "))
	}
	return lines
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

func typeOf(graph flow.Source, variable string) string {
	for _, v := range graph.Variables {
		if v.Name == variable {
			if v.Value == nil {
				return v.Type.String()
			}
			return v.Type.String() + ", begins " + fmt.Sprint(v.Value)
		}
	}
	return "unknown"
}
