package flow

import (
	"cmp"
	"slices"

	"github.com/upfront-mem/upfront/arena/blob"
)

// write writes the graph to the blob: each node is followed by its links.
func (c *compiler) write(w *blob.Writer[root]) blob.Link[root] {
	at := blob.Put(w, root{})
	var r root
	c.report.Nodes = nil
	var heads []blob.Array[to]
	first := w.Size()
	for i := range c.compiled {
		n := &c.compiled[i]
		from := w.Size()
		own := blob.PutAll(w, n.own...)
		n.written = blob.Link[node](blob.At(own, 0))
		heads = append(heads, c.writeParts(w, n)...)
		for j, word := range n.own { // its parts have offsets now
			blob.Set(w, blob.At(own, j), word)
		}
		c.count(n, w.Size()-from)
	}
	c.report.Static = w.Size() - first
	for _, n := range c.compiled { // all nodes have offsets now
		for _, list := range n.list {
			for j, l := range list {
				target := &c.compiled[c.node[l.Node]]
				blob.Set(w, blob.At(heads[0], j), to{target.written, uint32(portOf(target.tag, l.Port))})
			}
			heads = heads[1:]
		}
	}
	c.writeTables(w, &r)
	blob.Set(w, at, r)
	return at
}

// writeParts writes the parts that follow a node, and returns its lists of links in order.
func (c *compiler) writeParts(w *blob.Writer[root], n *compiled) (heads []links) {
	for _, list := range n.list {
		heads = append(heads, blob.PutAll(w, make([]to, len(list))...))
	}
	if _, words := (*node)(n.node).signed(); words != nil {
		*words = blob.PutAll(w, n.words...)
	}
	place := 0
	for _, f := range n.fields {
		switch f.role {
		case list:
			*(*links)(n.place(f)) = heads[place]
			place++
		case lists:
			*(*blob.Array[links])(n.place(f)) = blob.PutAll(w, heads...)
		}
	}
	return heads
}

func (c *compiler) count(n *compiled, static int) {
	k := kinds[n.tag]
	i := slices.IndexFunc(c.report.Nodes, func(s NodeSize) bool { return s.Type == k.name })
	if i < 0 {
		i = len(c.report.Nodes)
		c.report.Nodes = append(c.report.Nodes, NodeSize{Type: k.name})
	}
	s := &c.report.Nodes[i]
	s.Nodes++
	s.Static += static
	for _, f := range n.fields {
		if f.role == state {
			s.Dynamic += 4
		}
	}
}

func (c *compiler) writeTables(w *blob.Writer[root], r *root) {
	var nodes, timed []blob.Link[node]
	var events []entry
	for i := range c.compiled {
		n := &c.compiled[i]
		nodes = append(nodes, n.written)
		switch n.tag {
		case tagDelay, tagTimer:
			timed = append(timed, n.written)
		case tagEvent:
			events = append(events, entry{hashOf(c.source.Nodes[i].Of), c.source.Nodes[i].Key, n.written})
		}
	}
	slices.SortFunc(events, compare)
	order := func(a, b NodeSize) int { return rank(a.Type) - rank(b.Type) }
	slices.SortFunc(c.report.Nodes, order)
	r.Nodes, r.Timed, r.Events = blob.PutAll(w, nodes...), blob.PutAll(w, timed...),
		blob.PutAll(w, events...)
	r.Template, r.State = blob.PutAll(w, c.template...), c.state
	var variables []variable
	for i, v := range c.source.Variables {
		variables = append(variables, variable{w.Str(c.kept(v.Name)), v.Type, c.at[i]})
	}
	r.Variables = blob.PutAll(w, variables...)
	r.Actions, r.Signals = c.writeSignatures(w, c.actions), c.writeSignatures(w, c.signals)
	var names []blob.Str
	for _, n := range c.source.Nodes {
		if !c.strip {
			names = append(names, w.Str(n.Name))
		}
	}
	r.Names, r.Name = blob.PutAll(w, names...), w.Str(c.source.Name)
}

func rank(name string) int {
	return slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
}

// compare orders the table of events.
func compare(x, y entry) int {
	return cmp.Compare(eventKey(x.Hash, x.Key), eventKey(y.Hash, y.Key))
}

func (c *compiler) kept(name string) string {
	if c.strip {
		return ""
	}
	return name
}

func (c *compiler) writeSignatures(w *blob.Writer[root], of []Signature) blob.Array[signature] {
	var all []signature
	for _, s := range of {
		name := s.Name
		if c.strip {
			name = printOf(s)
		}
		var parameters []parameterOf
		for _, p := range s.Parameters {
			q := parameterOf{w.Str(c.kept(p.Name)), p.Type, 0}
			if p.Out {
				q.Out = 1
			}
			parameters = append(parameters, q)
		}
		all = append(all, signature{w.Str(name), hashOf(s.Name), blob.PutAll(w, parameters...)})
	}
	return blob.PutAll(w, all...)
}
