package flow

import (
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

// Compile makes the blob of a graph for hosts with this vocabulary. Compile doesn't stop at the
// first error. The error joins a [Fault] for each, those of nodes last and in the order of the
// nodes, as errors.Join does. If the type, action or event of a node is unknown, Compile doesn't
// check the node's parameters and links. A blob that is too large is an error without a Fault.
// Compile works on the Go heap.
func Compile(source Source, vocabulary Vocabulary) (data []byte, report Report, err error) {
	c := compiler{source: &source, vocabulary: vocabulary}
	if data, err = c.compile(); err != nil {
		return nil, Report{}, err
	}
	c.report.Blob, c.report.Data = len(data), 8*len(c.template)
	return data, c.report, nil
}

func (c *compiler) compile() ([]byte, error) {
	if !utf8.ValidString(c.source.Name) {
		c.fault(Fault{Variable: -1, Node: -1, Part: "name", Link: -1}, "graph %q: a name is UTF-8",
			c.source.Name)
	}
	c.variables()
	c.nodes()
	if len(c.faults) > 0 {
		slices.SortStableFunc(c.faults, func(a, b error) int { return a.(*Fault).Node - b.(*Fault).Node })
		return nil, errors.Join(c.faults...)
	}
	return c.blob()
}

func (c *compiler) blob() ([]byte, error) {
	size := 0
	for {
		w := format.Writer(make([]byte, size))
		if c.strip {
			w.Bare()
		}
		at := c.write(w)
		if size == 0 { // this round only counted
			size = w.Size()
			continue
		}
		data, err := w.Finish(at)
		if err != nil {
			return nil, fmt.Errorf("flow: %w", err)
		}
		return data, nil
	}
}

// compiler holds a source and its parts that are compiled so far.
type compiler struct {
	source     *Source
	vocabulary Vocabulary
	strip      bool
	faults     []error

	variable map[string]int // by name
	at       []uint32       // of each variable, in the dynamic data
	writers  []writer       // of each variable
	node     map[string]int
	compiled []compiled
	events   map[entry]int // the index of an event's node, by hash and key

	actions, signals []Signature // in use
	template         []uint64
	state            uint32
	report           Report
}

type writer struct {
	node int // plus 1
	owns bool
}

// compiled is a node with its kind and its struct for the blob.
type compiled struct {
	tag     blob.Tag
	fields  []field        // of its kind, and of its signature
	lists   []string       // names of its lists of links
	own     []uint32       // the struct as words; write fills in its lists
	node    unsafe.Pointer // the same struct
	words   []uint32       // the parameters of an action, a send, an event
	list    [][]Link       // by lists
	written blob.Link[node]
}

func (c *compiler) fault(f Fault, format string, args ...any) {
	f.Text = fmt.Sprintf(format, args...)
	c.faults = append(c.faults, &f)
}

// variables sets the offset of each variable, and its value in the template.
func (c *compiler) variables() {
	c.variable = make(map[string]int)
	c.writers = make([]writer, len(c.source.Variables))
	c.template = []uint64{0}
	c.set(uint32(unsafe.Offsetof(head{}.random)), c.source.Seed)
	c.state = headSize
	for i, v := range c.source.Variables {
		fault := Fault{Variable: i, Node: -1, Link: -1}
		if _, twice := c.variable[v.Name]; twice || !isName(v.Name) {
			c.fault(fault, "variable %d is called %q: "+eachHasName, i, v.Name)
		}
		c.variable[v.Name] = i
		if v.Type < Bool || v.Type > Handle {
			c.fault(fault, "variable %q has no type", v.Name)
		}
		size := v.Type.size()
		c.at = append(c.at, (c.state+size-1)&^(size-1))
		c.state = c.at[i] + size
		word, err := constant(v.Value, v.Type)
		if err != nil {
			c.fault(fault, "variable %q: %v", v.Name, err)
		}
		c.set(c.at[i], word)
	}
	c.report.Values = int(c.state - headSize)
}

const eachHasName = "names are UTF-8, not empty, and unique"

func isName(name string) bool { return name != "" && utf8.ValidString(name) }

// set writes a word of the template, and grows the template for it.
func (c *compiler) set(at, word uint32) {
	for uint32(len(c.template))*8 < at+4 {
		c.template = append(c.template, 0)
	}
	*(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(c.template)), at)) = word
}

func (c *compiler) nodes() {
	c.node = make(map[string]int)
	c.events = make(map[entry]int)
	for i, n := range c.source.Nodes {
		if _, twice := c.node[n.Name]; twice || !isName(n.Name) {
			c.fault(Fault{Variable: -1, Node: i, Part: "name", Link: -1},
				"node %d is called %q: "+eachHasName, i, n.Name)
		}
		c.node[n.Name] = i
	}
	end := c.state
	for i := range c.source.Nodes {
		s := nodeSource{c, i, &c.source.Nodes[i]}
		n, ok := s.kind()
		if ok {
			s.inputs(&n)
			s.outputs(&n)
			s.state(&n, &end)
			s.lists(&n)
		}
		c.compiled = append(c.compiled, n)
	}
	for i := range c.source.Nodes {
		s := nodeSource{c, i, &c.source.Nodes[i]}
		s.links(&c.compiled[i])
	}
	for uint32(len(c.template))*8 < end {
		c.template = append(c.template, 0)
	}
	if end > dataMax {
		c.fault(Fault{Variable: -1, Node: -1, Link: -1},
			"graph %q: an instance has %d bytes, more than %d", c.source.Name, end, dataMax)
	}
}

// nodeSource is a node during its compilation.
type nodeSource struct {
	*compiler
	i int
	*Node
}

func (s nodeSource) fault(part string, link int, format string, args ...any) {
	s.compiler.fault(Fault{Variable: -1, Node: s.i, Part: part, Link: link}, "node %q: "+format,
		append([]any{s.Name}, args...)...)
}

// kind finds the node's kind, and makes its struct.
func (s nodeSource) kind() (n compiled, ok bool) {
	is := func(k kind) bool { return k.name == s.Type }
	tag := slices.IndexFunc(kinds, is)
	if tag < 0 {
		s.fault("type", -1, "no node is a %q", s.Type)
		return n, false
	}
	if operands := s.operands(); kinds[tag].typ != 0 {
		tag = slices.IndexFunc(kinds, func(k kind) bool { return is(k) && k.typ == operands })
		if tag < 0 {
			s.fault("type", -1, "%s has no variant for operands of %v", s.Type, operands)
			return n, false
		}
	}
	n.tag, n.fields = blob.Tag(tag), kinds[tag].fields
	n.own = make([]uint32, kinds[tag].size/4)
	n.node = unsafe.Pointer(&n.own[0])
	(*node)(n.node).Tag = n.tag
	return n, s.signature(&n)
}

// operands returns the type of the first variable that the node refers to, or of a constant.
func (s nodeSource) operands() (t Type) {
	names := []string{}
	for _, out := range s.Out {
		names = append(names, out.Variable)
	}
	for _, in := range s.In {
		names = append(names, in.Variable)
	}
	for _, name := range names {
		if i, ok := s.variable[name]; ok && t == 0 {
			t = s.source.Variables[i].Type
		}
	}
	for _, in := range s.In {
		if in.Variable == "" && in.Constant != nil && t == 0 {
			t = Number
			switch reflect.TypeOf(in.Constant).Kind() {
			case reflect.Bool:
				t = Bool
			case reflect.Int, reflect.Int32:
				t = Int
			}
		}
	}
	return t
}

// signature finds the action or event that the node refers to, and adds its parameters to n.
func (s nodeSource) signature(n *compiled) bool {
	what, from, used := "event", s.vocabulary.Events, &s.signals
	switch n.tag {
	case tagAction:
		what, from, used = "action", s.vocabulary.Actions, &s.actions
		s.keyless("only an event has a key")
	case tagSend:
		s.keyless(`the key of a send is an input`)
	case tagEvent:
	default:
		if s.Of != "" {
			s.fault("of", -1, "%s refers to no action or event, and this one to %q", a(s.Type), s.Of)
		}
		s.keyless("only an event has a key")
		return true
	}
	named := func(other Signature) bool { return other.Name == s.Of }
	i := slices.IndexFunc(from, named)
	if i < 0 {
		s.fault("of", -1, "the host has no %s %q", what, s.Of)
		return false
	}
	of := slices.IndexFunc(*used, named)
	if of < 0 {
		of = len(*used)
		*used = append(*used, from[i])
	}
	n.fields = slices.Clone(n.fields)
	size := uint32(0)
	for _, p := range from[i].Parameters {
		f := field{name: p.Name, typ: p.Type, at: size, role: input, outside: true}
		if n.tag == tagEvent || p.Out {
			f.role = output
		}
		size += f.role.size()
		n.fields = append(n.fields, f)
	}
	n.words = make([]uint32, size/4)
	index, _ := (*node)(n.node).signed()
	*index = uint32(of)
	if n.tag == tagEvent {
		(*event)(n.node).Key = s.Key
		key := entry{Hash: hashOf(s.Of), Key: s.Key}
		if before, twice := s.events[key]; twice {
			s.fault("of", -1, "node %q already is the event %q with the key %d", s.source.Nodes[before].Name, s.Of,
				s.Key)
		}
		s.events[key] = s.i
	}
	return true
}

func (s nodeSource) keyless(text string) {
	if s.Key != 0 {
		s.fault("key", -1, "%s", text)
	}
}

func (n *compiled) place(f field) unsafe.Pointer {
	if f.outside {
		return unsafe.Pointer(&n.words[f.at/4])
	}
	return unsafe.Add(n.node, f.at)
}

// offers lists the fields of a node that have one of the roles.
func (n *compiled) offers(roles []role) string {
	var names []string
	for _, f := range n.fields {
		if slices.Contains(roles, f.role) {
			names = append(names, f.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// find returns the field with a name and one of the roles. A missing field and a second use are
// faults.
func (s nodeSource) find(n *compiled, what, name string, seen map[string]bool,
	roles ...role) (f field, ok bool) {
	is := func(f field) bool { return f.name == name && slices.Contains(roles, f.role) }
	i := slices.IndexFunc(n.fields, is)
	switch {
	case i < 0:
		s.fault(name, -1, "%s has no %s %q (there are %s)", a(s.Type), what, name, n.offers(roles))
		return f, false
	case seen[name]:
		s.fault(name, -1, "%s %q appears twice", what, name)
	}
	seen[name] = true
	return n.fields[i], true
}

// use returns the offset of a variable. Another type than t is a fault.
func (s nodeSource) use(part, name string, t Type) (at uint32, ok bool) {
	i, ok := s.variable[name]
	if !ok {
		s.fault(part, -1, "%s: no variable %q", part, name)
		return 0, false
	}
	if is := s.source.Variables[i].Type; is != t {
		s.fault(part, -1, "%s is %s, variable %q is %s", part, a(t.String()), name, a(is.String()))
		return 0, false
	}
	return s.at[i], true
}

func (s nodeSource) inputs(n *compiled) {
	seen := map[string]bool{}
	for _, in := range s.In {
		f, ok := s.find(n, "input", in.Name, seen, input, state)
		if !ok {
			continue
		}
		if f.role == state && (f.typ != Bool || in.Variable != "") {
			s.fault(in.Name, -1, "%s must be a constant bool", in.Name)
			continue
		}
		if in.Variable != "" {
			if in.Constant != nil {
				s.fault(in.Name, -1, "%s has a variable and a constant", in.Name)
			}
			(*In[int32])(n.place(f)).at, _ = s.use(in.Name, in.Variable, f.typ)
			continue
		}
		word, err := constant(in.Constant, f.typ)
		if err != nil {
			s.fault(in.Name, -1, "%s: %v", in.Name, err)
		}
		if f.role == state {
			*(*uint32)(n.place(f)) = word // state reads it next
			continue
		}
		(*In[int32])(n.place(f)).constant = word
	}
}

func (s nodeSource) outputs(n *compiled) {
	seen := map[string]bool{}
	for _, out := range s.Out {
		f, ok := s.find(n, "output", out.Name, seen, output)
		if !ok {
			continue
		}
		at, ok := s.use(out.Name, out.Variable, f.typ)
		if !ok {
			continue
		}
		(*Out[int32])(n.place(f)).at = at
		w := &s.writers[s.variable[out.Variable]]
		if w.node != 0 && (w.owns || f.outside) {
			s.fault(out.Name, -1, "variable %q already has a writer, node %q; only set and add nodes may share one",
				out.Variable,
				s.source.Nodes[w.node-1].Name)
			continue
		}
		*w = writer{s.i + 1, f.outside}
	}
	for _, f := range n.fields {
		if f.role == output && !f.outside && !seen[f.name] {
			s.fault(f.name, -1, "%s must write to a variable", a(s.Type))
		}
	}
}

// state allocates the node's words of dynamic data, and sets their initial values.
func (s nodeSource) state(n *compiled, end *uint32) {
	for _, f := range n.fields {
		if f.role == state {
			at := (*uint32)(n.place(f))
			s.set(*end, *at)
			*at = *end
			*end += 4
		}
	}
}

func (s nodeSource) lists(n *compiled) {
	several := false
	for _, f := range n.fields {
		switch f.role {
		case list:
			n.lists = append(n.lists, f.name)
		case lists:
			several = true
			for i := range s.List {
				n.lists = append(n.lists, strconv.Itoa(i+1))
			}
		}
	}
	n.list = make([][]Link, len(n.lists))
	index, seen := map[string]int{}, map[string]bool{}
	for i, name := range n.lists {
		index[name] = i
	}
	for _, l := range s.List {
		i, ok := index[l.Name]
		switch {
		case !ok && several:
			s.fault(l.Name, -1, "%s has its lists %q to %q, and none %q", a(s.Type), "1",
				strconv.Itoa(len(s.List)), l.Name)
			continue
		case !ok:
			s.fault(l.Name, -1, "%s has no list %q of links", a(s.Type), l.Name)
			continue
		case seen[l.Name]:
			s.fault(l.Name, -1, "list %q appears twice", l.Name)
		}
		seen[l.Name] = true
		n.list[i] = l.Links
	}
}

func (s nodeSource) links(n *compiled) {
	for i, list := range n.list {
		for j, l := range list {
			target, ok := s.node[l.Node]
			if !ok {
				s.fault(n.lists[i], j, "%s leads to %q, and there is no such node", n.lists[i], l.Node)
				continue
			}
			to := s.compiled[target]
			if to.node != nil && portOf(to.tag, l.Port) < 0 {
				s.fault(n.lists[i], j, "%s leads to %q of node %q, and %s has the ports %q", n.lists[i],
					l.Port, l.Node,
					a(kinds[to.tag].name), kinds[to.tag].ports)
			}
		}
	}
}

func portOf(tag blob.Tag, name string) int {
	if ports := kinds[tag].ports; name == "" && len(ports) > 0 {
		return 0
	}
	return slices.Index(kinds[tag].ports, name)
}

// a returns a name with its article.
func a(name string) string {
	if strings.ContainsAny(name[:min(1, len(name))], "aeio") && name != "once" {
		return "an " + name
	}
	return "a " + name
}

func hashOf(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash's Write doesn't fail
	return h.Sum32()
}
