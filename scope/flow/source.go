package flow

// Source is a graph as its author has it: what an editor saves, and what Compile makes a blob of.
type Source struct {
	Name      string
	Seed      uint32 // of random nodes, in each new instance
	Variables []Variable
	Nodes     []Node
}

// Variable has its name, type, and the value that a new instance has; nil is the zero one. Constants and
// values are bool, int, int32, float32 or float64: what fits, fits. A handle begins as 0.
type Variable struct {
	Name  string
	Type  Type
	Value any
}

// Node is one of a graph. Type is one of those in the package's doc.
type Node struct {
	Name string
	Type string
	Of   string // event, send, action: its name in the vocabulary
	Key  int32  // event: of which thing in the level
	In   []Input
	Out  []Output
	List []List
}

// Input gives a parameter a variable, by name, or a constant. One that isn't given is the zero constant.
type Input struct {
	Name     string
	Variable string // "": the constant
	Constant any
}

// Output gives a parameter the variable that it writes, by name. One that isn't given writes nothing.
type Output struct {
	Name     string
	Variable string
}

// List is the links of one list of a node: "then", "else"; "1", "2" and so on.
type List struct {
	Name  string
	Links []Link
}

// Link leads to a port of a node; "" is its first.
type Link struct {
	Node string
	Port string
}

// Vocabulary is what a host has to offer to graphs.
type Vocabulary struct{ Actions, Events []Signature }

// Signature is an action or an event with its parameters, in the order of their struct.
type Signature struct {
	Name       string
	Parameters []Parameter
}

// Parameter of an action is In or Out; of an event all are values.
type Parameter struct {
	Name string
	Type Type
	Out  bool
}

// Fault is what is wrong with a place of a source.
type Fault struct {
	Variable int    // its index; -1: none
	Node     int    // its index; -1: none
	Part     string // of the node: the name of an input, output or list; or "name", "type", "of", "key"
	Link     int    // its index in the list; -1: none
	Text     string // with names: it says all by itself
}

// Error is the text.
func (f *Fault) Error() string { return "flow: " + f.Text }

// NodeSize is what the nodes of one type take.
type NodeSize struct {
	Type    string
	Nodes   int
	Static  int // bytes in the blob
	Dynamic int // bytes in each instance
}

// Report says what a compiled graph takes.
type Report struct {
	Nodes  []NodeSize // by type, in the order of the package's doc; those that occur
	Blob   int        // all of the bytes
	Static int        // of them the nodes with their links and parameters; the rest is names and tables
	Data   int        // bytes of each instance
	Values int        // of them variables
}
