package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope/flow"
)

// FileMax is the size of the largest file of a graph that the tool upfront reads, in bytes. This
// package doesn't check it.
const FileMax = 16 << 20

// Read reads a graph without a vocabulary. Unlike Compile, Read doesn't check whether the nodes,
// variables and actions that the graph names exist. Errors begin with name and line.
func Read(name string, data []byte) (flow.Source, error) {
	r := newReader(name, data)
	return r.graph, r.file.Err()
}

// Compile makes the blob of a graph for hosts with this vocabulary, and reports its size. The error
// lists faults of the file with name, line and, for most, path, up to [jsonfile.MaxFaults] faults.
// A fault may hide others. Compile works on the Go heap.
func Compile(name string, data []byte, vocabulary flow.Vocabulary) ([]byte, flow.Report, error) {
	r := newReader(name, data)
	if r.stop {
		return nil, flow.Report{}, r.file.Err()
	}
	compiled, report, err := flow.Compile(r.graph, vocabulary)
	r.told(err)
	if err := r.file.Err(); err != nil {
		return nil, flow.Report{}, err
	}
	return compiled, report, nil
}

// reader reads a graph, and keeps the places of its parts.
type reader struct {
	file      *jsonfile.File
	graph     flow.Source
	variables []*jsonfile.Value
	nodes     []nodeAt
	stop      bool // the file is no graph, so faults of its parts would be meaningless
}

// nodeAt has the places of a node's parts, by their names in a flow.Fault.
type nodeAt struct {
	whole *jsonfile.Value
	parts map[string]*jsonfile.Value
	links map[string][]*jsonfile.Value
}

func newReader(name string, data []byte) *reader {
	file, root := jsonfile.Parse(name+":", data)
	r := &reader{file: file}
	if root == nil {
		r.stop = true
		return r
	}
	var version, nodes bool
	for m := range file.Members(root, []string{"version", "name", "note", "seed", "variables", "nodes"}) {
		switch m.Name {
		case "version":
			version = true
			if m.Text != "1" {
				r.refuse(m, "is not a known version; give 1")
				r.stop = true
			}
		case "name":
			r.graph.Name = r.text(m)
		case "note":
			r.text(m)
		case "seed":
			r.graph.Seed = uint32(r.number(m, 0, 1<<32-1))
		case "variables":
			r.readVariables(m)
		case "nodes":
			nodes = true
			r.readNodes(m)
		}
	}
	if !root.Refused && !version {
		file.Fault(root.At, "version", `none; give "version": 1`)
	}
	if !root.Refused && !nodes {
		file.Fault(root.At, "nodes", `none; give "nodes"`)
	}
	r.stop = r.stop || root.Refused
	return r
}

func (r *reader) refuse(v *jsonfile.Value, format string, args ...any) {
	r.file.Refuse(v, fmt.Errorf(format, args...))
}

func (r *reader) text(v *jsonfile.Value) string {
	text, err := v.Str()
	if err != nil {
		r.file.Refuse(v, err)
	}
	return text
}

func (r *reader) number(v *jsonfile.Value, least, most int64) int64 {
	number, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil || number < least || number > most {
		r.refuse(v, "is not a whole number from %d to %d", least, most)
		return 0
	}
	return number
}

func (r *reader) readVariables(all *jsonfile.Value) {
	for v := range r.file.Members(all, nil) {
		variable := flow.Variable{Name: v.Name}
		for m := range r.file.Members(v, []string{"type", "value", "note"}) {
			switch m.Name {
			case "type":
				if variable.Type = typeNamed(r.text(m)); variable.Type == 0 && !m.Refused {
					r.refuse(m, "is not a type (bool, int, number or handle)")
				}
				r.stop = r.stop || m.Refused // else each use of the variable would be a fault
			case "value":
				variable.Value = r.constant(m, "")
			case "note":
				r.text(m)
			}
		}
		r.graph.Variables = append(r.graph.Variables, variable)
		r.variables = append(r.variables, v)
	}
}

// typeNamed returns the type with a name, or 0.
func typeNamed(name string) flow.Type {
	for t := flow.Bool; t <= flow.Handle; t++ {
		if t.String() == name {
			return t
		}
	}
	return 0
}

// constant reads a bool or a number. A number with a point or an exponent is no int, so that types
// survive Write.
func (r *reader) constant(v *jsonfile.Value, or string) any {
	switch c := v.Text[0]; {
	case v.Text == "true", v.Text == "false":
		return v.Text == "true"
	case c == '-' || c >= '0' && c <= '9':
		if number, err := strconv.ParseInt(v.Text, 10, 32); err == nil {
			return int32(number)
		}
		number, err := strconv.ParseFloat(v.Text, 64)
		if err == nil {
			return number
		}
	}
	r.refuse(v, "is not a constant (true, false or a number)%s", or)
	return nil
}

func (r *reader) readNodes(all *jsonfile.Value) {
	for v := range r.file.Members(all, nil) {
		at := nodeAt{v, map[string]*jsonfile.Value{"name": v}, map[string][]*jsonfile.Value{}}
		node := flow.Node{Name: v.Name}
		for m := range r.file.Members(v, nil) {
			switch m.Name {
			case "type", "event", "action", "send":
				if node.Type != "" {
					r.file.Fault(m.NameAt, m.Path(), "the node has a type already: %s", node.Type)
					continue
				}
				at.parts["type"], at.parts["of"] = m, m
				if node.Type = r.text(m); m.Name != "type" {
					node.Type, node.Of = m.Name, node.Type
				}
			case "key":
				if _, input := at.parts["key"]; !input {
					at.parts["key"] = m
				}
				node.Key = int32(r.number(m, -1<<31, 1<<31-1))
				r.stop = r.stop || m.Refused // else the node would be another event
			case "note":
				r.text(m)
			case "in":
				node.In = r.inputs(m, at)
			case "out":
				node.Out = r.outputs(m, at)
			default:
				at.parts[m.Name] = m
				node.List = append(node.List, flow.List{Name: m.Name, Links: r.links(m, at)})
			}
		}
		if node.Type == "" && !v.Refused && at.parts["type"] == nil {
			r.file.Fault(v.At, v.Path(), `no type; give "type", "event", "action" or "send"`)
			v.Refused = true
		}
		r.graph.Nodes = append(r.graph.Nodes, node)
		r.nodes = append(r.nodes, at)
	}
}

func (r *reader) inputs(v *jsonfile.Value, at nodeAt) (list []flow.Input) {
	for m := range r.file.Members(v, nil) {
		at.parts[m.Name] = m
		in := flow.Input{Name: m.Name}
		if name, err := m.Str(); err != nil {
			in.Constant = r.constant(m, ", nor a variable's name")
		} else if in.Variable = name; name == "" {
			r.refuse(m, "is not a variable's name")
		}
		list = append(list, in)
	}
	return list
}

func (r *reader) outputs(v *jsonfile.Value, at nodeAt) (list []flow.Output) {
	for m := range r.file.Members(v, nil) {
		at.parts[m.Name] = m
		list = append(list, flow.Output{Name: m.Name, Variable: r.text(m)})
	}
	return list
}

// links reads a node's name, or {"node": "port"}, or a list of these.
func (r *reader) links(all *jsonfile.Value, at nodeAt) (list []flow.Link) {
	one := func(v *jsonfile.Value) {
		switch v.Text[0] {
		case '"':
			list = append(list, flow.Link{Node: r.text(v)})
			at.links[all.Name] = append(at.links[all.Name], v)
		case '{':
			for m := range r.file.Members(v, nil) {
				list = append(list, flow.Link{Node: m.Name, Port: r.text(m)})
				at.links[all.Name] = append(at.links[all.Name], m)
			}
		default:
			r.refuse(v, `is not a link ("node" or {"node": "port"})`)
		}
	}
	if all.Text[0] != '[' {
		one(all)
		return list
	}
	for m := range r.file.Items(all) {
		one(m)
	}
	return list
}

// Adds the faults in err, except faults of values that were refused before.
func (r *reader) told(err error) {
	list := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		list = several.Unwrap()
	}
	for _, err := range list {
		fault, ok := errors.AsType[*flow.Fault](err)
		switch {
		case err == nil:
		case !ok:
			r.file.Fault(0, "", "%v", err)
		default:
			where, text := r.place(fault)
			if !where.Refused {
				r.file.Fault(where.At, where.Path(), "%s", text)
			}
		}
	}
}

// place returns the place of a fault, and its text there.
func (r *reader) place(f *flow.Fault) (where *jsonfile.Value, text string) {
	switch {
	case f.Variable >= 0:
		where = r.variables[f.Variable]
		return where, strings.TrimPrefix(f.Text, fmt.Sprintf("variable %q: ", where.Name))
	case f.Node >= 0:
		n := r.nodes[f.Node]
		where = n.whole
		if n.whole.Refused {
			return where, ""
		}
		if part := n.parts[f.Part]; part != nil {
			where = part
		}
		if links := n.links[f.Part]; f.Link >= 0 && f.Link < len(links) {
			where = links[f.Link]
		}
		return where, strings.TrimPrefix(f.Text, fmt.Sprintf("node %q: ", n.whole.Name))
	}
	return r.file.Given(""), f.Text
}
