package flow_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/step"
)

// faulty has changes of a good source, each with its fault.
var faulty = map[string]struct {
	change func(s *flow.Source)
	says   string
	part   string
}{
	"no type": {func(s *flow.Source) { s.Nodes[1].Type = "brunch" },
		`node "way": no node is a "brunch"`, "type"},
	"no name": {func(s *flow.Source) { s.Nodes[1].Name = "" },
		`node 1 is called "": names are UTF-8`, "name"},
	"a name twice": {func(s *flow.Source) { s.Nodes[2].Name = "begin" }, `node 2 is called "begin"`,
		"name"},
	"a name of bits": {func(s *flow.Source) { s.Nodes[2].Name = "\xff" }, `node 2 is called "\xff"`,
		"name"},
	"dangling": {func(s *flow.Source) { s.Nodes[1].List = then("way", "far") },
		`node "way": then leads to "far", and there is no such node`, "then"},
	"no port": {func(s *flow.Source) { s.Nodes[0].List[0].Links[0].Port = "open" },
		`node "begin": then leads to "open" of node "way", and a branch has the ports ["in"]`, "then"},
	"to an event": {func(s *flow.Source) { s.Nodes[1].List = then("begin") },
		`then leads to "" of node "begin", and an event has the ports []`, "then"},
	"no list": {func(s *flow.Source) { s.Nodes[0].List[0].Name = "else" },
		`node "begin": an event has no list "else" of links`, "else"},
	"a list twice": {func(s *flow.Source) {
		s.Nodes[0].List = append(s.Nodes[0].List,
			s.Nodes[0].List[0])
	},
		`list "then" appears twice`, "then"},
	"a list that isn't next": {func(s *flow.Source) { s.Nodes[3].List[1].Name = "3" },
		`node "turns": a sequence has its lists "1" to "2", and none "3"`, "3"},
	"no input": {func(s *flow.Source) { s.Nodes[1].In[0].Name = "of" },
		`node "way": a branch has no input "of"`, "of"},
	"an input twice": {func(s *flow.Source) {
		s.Nodes[1].In = append(s.Nodes[1].In,
			s.Nodes[1].In[0])
	},
		`input "if" appears twice`, "if"},
	"no variable": {func(s *flow.Source) { s.Nodes[1].In[0].Variable = "y" },
		`node "way": if: no variable "y"`, "if"},
	"wrong variable": {func(s *flow.Source) { s.Nodes[1].In[0].Variable = "n" },
		`node "way": if is a bool, variable "n" is an int`, "if"},
	"wrong constant": {func(s *flow.Source) {
		s.Nodes[1].In[0] = flow.Input{Name: "if",
			Constant: 3}
	}, `node "way": if: 3 is no bool`, "if"},
	"variable and constant": {func(s *flow.Source) { s.Nodes[1].In[0].Constant = true },
		`if has a variable and a constant`, "if"},
	"a variable as state": {func(s *flow.Source) {
		s.Nodes[4] = flow.Node{Name: "ask", Type: "once", In: []flow.Input{{Name: "done", Variable: "b"}}}
	}, `node "ask": done must be a constant bool`, "done"},
	"no output": {func(s *flow.Source) { s.Nodes[4].Out[0].Name = "a" },
		`node "ask": an action has no output "a"`, "a"},
	"wrong output": {func(s *flow.Source) { s.Nodes[4].Out[0].Variable = "b" },
		`node "ask": x is an int, variable "b" is a bool`, "x"},
	"two writers": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "ask too", Type: "action", Of: "ask",
			Out: s.Nodes[4].Out})
	}, `node "ask too": variable "n" already has a writer, node "ask"; only set and add nodes may share one`,
		"x"},
	"set beside a writer": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "set", Type: "set",
			Out: []flow.Output{{Name: "to", Variable: "n"}}})
	}, `node "set": variable "n" already has a writer, node "ask"`, "to"},
	"a writer beside set": {func(s *flow.Source) {
		s.Nodes = append([]flow.Node{{Name: "set", Type: "set",
			Out: []flow.Output{{Name: "to", Variable: "n"}}}}, s.Nodes...)
	}, `node "ask": variable "n" already has a writer, node "set"`, "x"},
	"set of nothing": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "set", Type: "set",
			In: []flow.Input{{Name: "value", Constant: 1}}})
	}, `node "set": a set must write to a variable`, "to"},
	"add of a bool": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "add", Type: "add",
			Out: []flow.Output{{Name: "to", Variable: "b"}}})
	}, `node "add": add has no variant for operands of bool`, "type"},
	"no action": {func(s *flow.Source) { s.Nodes[4].Of = "shout" },
		`node "ask": the host has no action "shout"`, "of"},
	"no event": {func(s *flow.Source) { s.Nodes[0].Of = "ask" },
		`node "begin": the host has no event "ask"`, "of"},
	"of something": {func(s *flow.Source) { s.Nodes[1].Of = "ask" },
		`node "way": a branch refers to no action or event, and this one to "ask"`, "of"},
	"a key": {func(s *flow.Source) { s.Nodes[1].Key = 3 },
		`node "way": only an event has a key`, "key"},
	"a key of an action": {func(s *flow.Source) { s.Nodes[4].Key = 3 },
		`node "ask": only an event has a key`, "key"},
	"a key of a send": {func(s *flow.Source) {
		s.Nodes[4] = flow.Node{Name: "ask", Type: "send", Of: "near", Key: 3}
	}, `node "ask": the key of a send is an input`, "key"},
	"an event twice": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "begin too", Type: "event", Of: "near", Key: 3})
	}, `node "begin too": node "begin" already is the event "near" with the key 3`, "of"},
	"a variable twice": {func(s *flow.Source) { s.Variables[1].Name = "b" },
		`variable 1 is called "b"`, ""},
	"a variable no type": {func(s *flow.Source) { s.Variables[2].Type = 9 },
		`variable "x" has no type`, ""},
	"a wrong value": {func(s *flow.Source) { s.Variables[1].Value = 0.5 },
		`variable "n": 0.5 is no int`, ""},
	"a large value": {func(s *flow.Source) { s.Variables[1].Value = int64(1 << 31) },
		`variable "n": 2147483648 is no int`, ""},
	"a huge value": {func(s *flow.Source) { s.Variables[2].Value = 1e39 },
		`variable "x": 1e+39 is no number`, ""},
	"a graph of bits": {func(s *flow.Source) { s.Name = "\xff" }, `graph "\xff": a name is UTF-8`,
		"name"},
}

func good() flow.Source {
	return flow.Source{Name: "good",
		Variables: []flow.Variable{{Name: "b", Type: flow.Bool}, {Name: "n", Type: flow.Int},
			{Name: "x", Type: flow.Number}},
		Nodes: []flow.Node{
			{Name: "begin", Type: "event", Of: "near", Key: 3,
				Out: []flow.Output{{Name: "b", Variable: "b"}}, List: then("way")},
			{Name: "way", Type: "branch", In: []flow.Input{{Name: "if", Variable: "b"}},
				List: []flow.List{to("then", "ask"), to("else", "turns")}},
			{Name: "tell", Type: "action", Of: "note", In: []flow.Input{{Name: "a", Variable: "n"}}},
			{Name: "turns", Type: "sequence", List: []flow.List{to("1", "ask"), to("2", "tell")}},
			{Name: "ask", Type: "action", Of: "ask", Out: []flow.Output{{Name: "x", Variable: "n"}},
				List: then("tell")},
		}}
}

func TestFaults(t *testing.T) {
	compile(t, good())
	for name, c := range faulty {
		t.Run(name, func(t *testing.T) {
			source := good()
			c.change(&source)
			data, _, err := flow.Compile(source, books.Vocabulary())
			assert.Nil(t, data)
			assert.ErrorContains(t, err, c.says)
			assert.Contains(t, parts(t, err), c.part)
		})
	}
	all := good()
	faulty["dangling"].change(&all)
	faulty["no input"].change(&all)
	faulty["wrong output"].change(&all)
	faulty["a wrong value"].change(&all)
	_, _, err := flow.Compile(all, books.Vocabulary())
	assert.Equal(t, []string{"", "of", "then", "x"}, parts(t, err), "in the order of the source")
}

func TestTooLarge(t *testing.T) {
	step.Needs(t, step.Check)
	large := flow.Source{Name: "large"}
	for i := range 2<<20 + 1 {
		large.Variables = append(large.Variables, flow.Variable{Name: strconv.Itoa(i), Type: flow.Handle})
	}
	_, _, err := flow.Compile(large, books.Vocabulary())
	assert.EqualError(t, err, `flow: graph "large": an instance has 16777232 bytes, more than 16777216`)
}

func parts(t *testing.T, err error) (parts []string) {
	var several interface{ Unwrap() []error }
	require.ErrorAs(t, err, &several)
	for _, err := range several.Unwrap() {
		var f *flow.Fault
		require.ErrorAs(t, err, &f)
		parts = append(parts, f.Part)
	}
	return parts
}
