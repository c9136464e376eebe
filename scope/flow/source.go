package flow

// Source is a graph as its author writes it, for example in an editor. Compile makes a blob of a
// Source.
type Source struct {
	Name      string
	Seed      uint32 // the seed of random nodes, in each new instance
	Variables []Variable
	Nodes     []Node
}

// Variable has a name, a type, and the initial value of an instance; nil is zero. A value or a
// constant is a bool, int, int32, float32 or float64 that fits in the type. A handle begins as 0.
type Variable struct {
	Name  string
	Type  Type
	Value any
}

// Node is a node of a graph. Type is one of the types in the package's doc.
type Node struct {
	Name string
	Type string
	Of   string // event, send, action: the name in the vocabulary
	Key  int32  // event: the object in the level
	In   []Input
	Out  []Output
	List []List
}

// Input sets a parameter to a variable, by name, or to a constant. A missing input is the zero
// constant.
type Input struct {
	Name     string
	Variable string // "" for the constant
	Constant any
}

// Output names the variable that a parameter writes. A parameter of an event or an action without
// an output writes no variable.
type Output struct {
	Name     string
	Variable string
}

// List is a list of links of a node. Its name is "then" or "else", or "1", "2" and so on.
type List struct {
	Name  string
	Links []Link
}

// Link leads to a port of a node; "" is its first port.
type Link struct {
	Node string
	Port string
}

// Vocabulary lists the actions and events that a host offers to graphs.
type Vocabulary struct{ Actions, Events []Signature }

// Signature is an action or an event with its parameters, in the order of the struct's fields.
type Signature struct {
	Name       string
	Parameters []Parameter
}

// Parameter is a parameter of an action, In or Out, or a value of an event.
type Parameter struct {
	Name string
	Type Type
	Out  bool
}

// Fault is an error at a place of a source.
type Fault struct {
	Variable int // the variable's index, or -1 for none
	Node     int // the node's index, or -1 for none
	// the part at fault: the name of an input, output or list; "name", "type", "of" or "key"; or ""
	Part string
	Link int    // the link's index in the list, or -1 for none
	Text string // the complete text, with names
}

// Error returns the text, after "flow: ".
func (f *Fault) Error() string { return "flow: " + f.Text }

// NodeSize is the size of all nodes of one type.
type NodeSize struct {
	Type    string
	Nodes   int
	Static  int // bytes in the blob
	Dynamic int // bytes in each instance
}

// Report is the size of a compiled graph.
type Report struct {
	Nodes []NodeSize // by type, in the order of the package's doc; types without nodes are left out
	Blob  int        // bytes in all
	// bytes of the nodes with their links and parameters; the rest is the description of types,
	// names and tables
	Static int
	Data   int // bytes of an instance
	Values int // bytes of its variables, with the padding between them
}
