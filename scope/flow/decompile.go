package flow

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

// Decompile returns a source of a blob, and the part of the vocabulary that the source uses.
// Compile makes the same blob of these two, if Compile made the blob. Decompile returns an error
// for bytes that aren't a graph, and for a stripped graph ([Strip]). scratch must have
// blob.ScratchSize bytes. Decompile works on the Go heap.
func Decompile(data, scratch []byte) (source Source, vocabulary Vocabulary, err error) {
	r, b, err := verify(data, scratch)
	if err != nil {
		return Source{}, Vocabulary{}, err
	}
	if blob.IsBare(data) {
		return Source{}, Vocabulary{}, fmt.Errorf("flow: graph %q is stripped: its names are gone; take the blob "+
			"or the source from which it was made", r.Name.Get(b))
	}
	d := decompiler{root: r, blob: b, vocabulary: Vocabulary{signaturesOf(r.Actions, b), signaturesOf(r.Signals, b)}}
	return d.source(), d.vocabulary, nil
}

func (d *decompiler) source() Source {
	d.template = unsafe.Pointer(unsafe.SliceData(d.root.Template.Get(d.blob)))
	s := Source{Name: textOf(d.root.Name, d.blob), Seed: (*head)(d.template).random}
	for i, v := range d.root.Variables.Get(d.blob) {
		s.Variables = append(s.Variables, Variable{variableName(d.root, d.blob, i), v.Type,
			valueOf(unsafe.Add(d.template, v.At), v.Type)})
	}
	for i, l := range d.root.Nodes.Get(d.blob) {
		s.Nodes = append(s.Nodes, d.node(nodeName(d.root, d.blob, i), l.Get(d.blob)))
	}
	return s
}

type decompiler struct {
	root       *root
	blob       blob.Blob
	vocabulary Vocabulary
	template   unsafe.Pointer
}

func (d *decompiler) node(name string, n *node) Node {
	out := Node{Name: name, Type: kinds[n.Tag].name}
	for _, f := range kinds[n.Tag].fields {
		d.field(&out, f, unsafe.Add(unsafe.Pointer(n), f.at), kinds[n.Tag].typ != 0)
	}
	all := d.vocabulary.Events
	if n.Tag == tagAction {
		all = d.vocabulary.Actions
	}
	if of, words := n.signed(); of != nil {
		d.parameters(&out, all[*of], *words, n.Tag == tagEvent)
	}
	if n.Tag == tagEvent {
		out.Key = (*event)(unsafe.Pointer(n)).Key
	}
	return out
}

func (d *decompiler) parameters(n *Node, of Signature, words blob.Array[uint32], values bool) {
	n.Of = of.Name
	left := words.Get(d.blob)
	for _, p := range of.Parameters {
		f := field{name: p.Name, typ: p.Type, role: input}
		if p.Out || values {
			f.role = output
		}
		d.field(n, f, unsafe.Pointer(&left[0]), false)
		left = left[f.role.size()/4:]
	}
}

// field adds a field to a source, unless its value is the default. A field that determines the
// node's type is always added.
func (d *decompiler) field(n *Node, f field, p unsafe.Pointer, says bool) {
	switch f.role {
	case input:
		in := (*In[int32])(p)
		if in.at != 0 {
			n.In = append(n.In, Input{Name: f.name, Variable: d.variable(in.at)})
		} else if f.typ != Handle && (in.constant != 0 || says) {
			n.In = append(n.In, Input{Name: f.name, Constant: valueOf(unsafe.Pointer(&in.constant), f.typ)})
		}
	case output:
		if at := (*Out[int32])(p).at; at != 0 {
			n.Out = append(n.Out, Output{f.name, d.variable(at)})
		}
	case list:
		if all := *(*links)(p); all.Len() > 0 {
			n.List = append(n.List, List{f.name, d.links(all)})
		}
	case lists:
		for i, l := range (*(*blob.Array[links])(p)).Get(d.blob) {
			n.List = append(n.List, List{Name: strconv.Itoa(i + 1)})
			n.List[i].Links = d.links(l)
		}
	case state:
		if f.typ == Bool && *(*uint32)(unsafe.Add(d.template, *(*uint32)(p))) != 0 {
			n.In = append(n.In, Input{Name: f.name, Constant: true})
		}
	}
}

// variable returns the name of the variable at an offset, which verify has checked.
func (d *decompiler) variable(at uint32) string {
	return variableName(d.root, d.blob, variableAt(d.root.Variables.Get(d.blob), at))
}

func (d *decompiler) links(all links) (list []Link) {
	for _, l := range all.Get(d.blob) {
		node := l.Node.Get(d.blob)
		link := Link{Node: nodeName(d.root, d.blob, indexOf(d.root.Nodes.Get(d.blob), offsetOf(l.Node)))}
		if l.Port != 0 {
			link.Port = kinds[node.Tag].ports[l.Port]
		}
		list = append(list, link)
	}
	return list
}

// Source returns a source of the graph. It isn't spelled as the author's: for example, notes and
// most zero inputs are left out. The names of nodes and variables of a stripped graph are their
// indexes, as "#3". Source works on the Go heap.
func (g *Graph) Source() Source {
	g.loaded()
	d := decompiler{root: g.root, blob: g.blob}
	d.vocabulary.Actions = hostsOf(g.root.Actions, g.blob, g.of.Actions)
	d.vocabulary.Events = hostsOf(g.root.Signals, g.blob, g.of.Events)
	return d.source()
}

// hostsOf returns the host's signature for each of the blob's. pre: the host has them all.
func hostsOf(there blob.Array[signature], b blob.Blob, here []Signature) (list []Signature) {
	for _, s := range there.Get(b) {
		list = append(list, here[hashed(here, s.Hash)])
	}
	return list
}
