// Package merge compares and merges versions of a JSON file, by name and key instead of line: plans
// of budgets, and graphs of level scripts.
//
//	base, err := merge.Parse("base.json", data, merge.Plan)
//	changes := merge.Diff(a, b)
//	data, conflicts := merge.Merge(base, a, b)
//
// Parse finds names that occur twice. budget.ReadPlan and source.Read, which a program calls first,
// report all other errors of a file.
//
// Source: Khanna, Kunal and Pierce, "A Formal Investigation of Diff3".
package merge

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// Schema is a kind of file.
type Schema struct {
	// shape returns the shape of the value at a path.
	shape func(path []string) shape
	// whole reports whether the object at a path is there or not as a whole, so that the removal of
	// all its keys doesn't merge with a change of one.
	whole func(path []string) bool
	// sole returns the key that a scalar at the path of an object stands for, or "".
	sole func(path []string) string
	// plain returns a text that is the same for equal scalars at a path.
	plain func(path []string, text string) string
}

// shape says how a value is compared.
type shape int

const (
	fields shape = iota // an object of keys whose order has no meaning, or a scalar
	parts               // an object or list of parts, such as nodes, whose order a file keeps
	items               // a list of parts, such as regions, whose order has a meaning
	links               // a link or a list of links, whose order has a meaning
)

// Plan is the schema of the plans that budget.ReadPlan reads.
var Plan = &Schema{
	shape: func(path []string) shape {
		switch {
		case len(path) == 1 && path[0] == "regions":
			return items
		case len(path) == 1 && (path[0] == "expected" || path[0] == "quotas"):
			return parts
		}
		return fields
	},
	whole: func(path []string) bool {
		return len(path) == 1 && slices.Contains([]string{"frame", "scratch", "c_heap"}, path[0])
	},
	sole: func(path []string) string { // "c_heap": "8MiB" is {"size": "8MiB"}
		if len(path) == 1 && path[0] == "c_heap" || len(path) == 2 && path[0] == "quotas" {
			return "size"
		}
		return ""
	},
	plain: func(path []string, text string) string {
		if key := path[len(path)-1]; !slices.Contains([]string{"name", "on", "in", "note", "part", "label"}, key) {
			if size, err := budget.ParseSize(unquote(text)); err == nil {
				return strconv.FormatUint(size, 10)
			}
		}
		return quote(unquote(text))
	},
}

// Graph is the schema of the graphs that package source of scope/flow reads.
var Graph = &Schema{
	shape: func(path []string) shape {
		switch {
		case len(path) == 1 && (path[0] == "variables" || path[0] == "nodes"):
			return parts
		case len(path) == 3 && path[0] == "nodes" && !slices.Contains(notLists, path[2]):
			return links
		}
		return fields
	},
	whole: func([]string) bool { return false },
	sole:  func([]string) string { return "" },
	plain: func(_ []string, text string) string {
		if text[0] == '"' {
			return quote(unquote(text))
		}
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(number, 'e', -1, 64)
		}
		return text
	},
}

// notLists are the keys of a node that aren't lists of links.
var notLists = []string{"type", "event", "action", "send", "key", "note", "in", "out"}

func unquote(text string) string {
	var value string
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	return value
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string never fails
	return string(quoted)
}

// Tree is a file that Parse has read.
type Tree struct {
	text string
	root *node
}

// node is a value of a file.
type node struct {
	name    string // among its siblings
	parent  *node
	line    int
	shape   shape
	whole   bool    // of the schema
	branch  bool    // it has members, and isn't a scalar
	list    bool    // and is in brackets
	members []*node // in the order of the file
	text    string  // as in the file
	plain   string  // of a scalar: a text that is the same for equal values
	repeats bool    // it has a link twice
	like    *node   // of a merged value: the one whose spacing it has

	lead string // space before it
	head string // its key and colon, of a member of an object
	tail string // space before the closing bracket
}

// Parse reads a file. Errors begin with file and line.
func Parse(file string, data []byte, schema *Schema) (*Tree, error) {
	f, root := jsonfile.Parse(file+":", data)
	r := reader{file: f, text: string(data), schema: schema, line: 1}
	t := &Tree{text: r.text}
	if root != nil {
		t.root = r.read(root, &node{}, nil)
	}
	return t, f.Err()
}

type reader struct {
	file   *jsonfile.File
	text   string
	schema *Schema
	at     int // a place in the text, and its line
	line   int
}

func (r *reader) lineOf(at int) int {
	if at < r.at {
		r.at, r.line = 0, 1
	}
	r.line += strings.Count(r.text[r.at:at], "\n")
	r.at = at
	return r.line
}

// read fills in the node of a value.
func (r *reader) read(v *jsonfile.Value, n *node, path []string) *node {
	n.line, n.text, n.shape, n.whole = r.lineOf(v.At), v.Text, r.schema.shape(path), r.schema.whole(path)
	switch {
	case n.shape == links:
		n.branch, n.list = true, true
		r.links(v, n)
	case (n.shape == items || n.shape == parts) && v.Text[0] == '[':
		n.branch, n.list = true, true
		end, seen := v.At+1, map[string]*node{}
		for m := range r.file.Items(v) {
			member := &node{parent: n, lead: r.space(end, m.At)}
			r.read(m, member, append(path, ""))
			member.name = member.nameOf()
			if seen[member.name] != nil {
				r.file.Fault(m.At, m.Path(), "the name %s occurs twice", jsonfile.Quote(member.name))
			}
			seen[member.name] = member
			n.members = append(n.members, member)
			end = m.At + len(m.Text)
		}
		n.tail = r.text[end : v.At+len(v.Text)-1]
	case v.Text[0] == '{':
		n.branch = true
		end := v.At + 1
		for m := range r.file.Members(v, nil) {
			member := &node{name: m.Name, parent: n, lead: r.space(end, m.NameAt), head: r.text[m.NameAt:m.At]}
			n.members = append(n.members, r.read(m, member, append(path, m.Name)))
			end = m.At + len(m.Text)
		}
		n.tail = r.text[end : v.At+len(v.Text)-1]
	case len(path) == 0:
		n.plain = v.Text
	case r.schema.sole(path) != "":
		key := r.schema.sole(path)
		n.branch = true
		n.members = []*node{{name: key, parent: n, line: n.line, text: v.Text,
			plain: r.schema.plain(append(path, key), v.Text), head: quote(key) + ": "}}
	default:
		n.plain = r.schema.plain(path, v.Text)
	}
	return n
}

// space returns the space before a member that follows a bracket or another member.
func (r *reader) space(end, at int) string {
	text := r.text[end:at]
	return text[strings.IndexByte(text, ',')+1:]
}

// links reads "node", {"node": "port"}, or a list of these.
func (r *reader) links(v *jsonfile.Value, n *node) {
	seen := map[string]int{}
	add := func(name, text, lead string, at int) *node {
		link := &node{name: name, parent: n, line: r.lineOf(at), text: text, plain: name, lead: lead}
		if seen[name]++; seen[name] > 1 {
			link.name += "#" + strconv.Itoa(seen[name])
			n.repeats = true
		}
		n.members = append(n.members, link)
		return link
	}
	one := func(m *jsonfile.Value, lead string) {
		if m.Text[0] != '{' {
			add(quote(unquote(m.Text)), m.Text, lead, m.At)
			return
		}
		var ports []*node
		for port := range r.file.Members(m, nil) {
			name := "{" + quote(port.Name) + ": " + quote(unquote(port.Text)) + "}"
			ports = append(ports, add(name, name, lead, port.NameAt))
			lead = " "
		}
		if len(ports) == 1 {
			ports[0].text = m.Text
		}
	}
	if v.Text[0] != '[' {
		one(v, "")
		return
	}
	end := v.At + 1
	for m := range r.file.Items(v) {
		one(m, r.space(end, m.At))
		end = m.At + len(m.Text)
	}
	n.tail = r.text[end : v.At+len(v.Text)-1]
}

// nameOf returns the name of a part in a list: of an expectation its part, and its label.
func (n *node) nameOf() string {
	of, names := n.byName(), []string{}
	for _, key := range []string{"name", "part", "label"} {
		if m := of[key]; m != nil {
			names = append(names, unquote(m.text))
		}
	}
	return strings.Join(names, " ")
}

// path returns the names from the root to the node, as nodes.open.in.tag. A link has the path of
// its list.
func (n *node) path() string {
	switch {
	case n.parent == nil:
		return ""
	case n.parent.shape == links:
		return n.parent.path()
	}
	path := n.name
	if path == "" || strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		path = strconv.Quote(path)
	}
	if up := n.parent.path(); up != "" {
		path = up + "." + path
	}
	return path
}

// same reports whether two values are equal.
func same(a, b *node) bool {
	if a == nil || b == nil || a.branch != b.branch || len(a.members) != len(b.members) {
		return a == b
	}
	if !a.branch {
		return a.plain == b.plain
	}
	ofB := b.byName()
	for i, m := range a.members {
		other := ofB[m.name]
		if a.shape != fields {
			other = b.members[i]
		}
		if other == nil || other.name != m.name || !same(m, other) {
			return false
		}
	}
	return true
}

// byName returns the members of a node, which may be nil.
func (n *node) byName() map[string]*node {
	all := map[string]*node{}
	if n != nil {
		for _, m := range n.members {
			all[m.name] = m
		}
	}
	return all
}
