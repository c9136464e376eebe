package source_test

import (
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/scope/flow/source"
)

var doors = flow.Vocabulary{
	Events: []flow.Signature{{Name: "line.used", Parameters: []flow.Parameter{{Name: "keys", Type: flow.Int}}}},
	Actions: []flow.Signature{
		{Name: "door.open", Parameters: []flow.Parameter{{Name: "tag", Type: flow.Int},
			{Name: "speed", Type: flow.Number}, {Name: "moved", Type: flow.Bool, Out: true}}},
		{Name: "door.close", Parameters: []flow.Parameter{{Name: "tag", Type: flow.Int}}},
		{Name: "sound.play", Parameters: []flow.Parameter{{Name: "id", Type: flow.Int}}},
	},
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return data
}

var update = flag.Bool("update", false, "rewrite testdata")

func golden(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile("testdata/"+name, []byte(text), 0o644))
	}
	assert.Equal(t, string(file(t, name)), text)
}

// The graph in the package's doc is testdata/door.json, and its vocabulary testdata/host.json.
func TestDoor(t *testing.T) {
	door := file(t, "door.json")
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	assert.Contains(t, string(doc), "//\t"+strings.ReplaceAll(strings.TrimSuffix(string(door), "\n"), "\n", "\n//\t"))
	assert.Equal(t, string(file(t, "host.json")), string(source.WriteVocabulary(doors)))
	host, err := source.ReadVocabulary("host.json", file(t, "host.json"))
	require.NoError(t, err)
	assert.Equal(t, doors, host)

	data, report, err := source.Compile("door.json", door, host)
	require.NoError(t, err)
	assert.Equal(t, len(data), report.Blob)
	exported := same(t, data)
	golden(t, "door.export.json", string(exported))
}

// same exports a blob, compiles the result, and compares the bytes.
func same(t testing.TB, data []byte) []byte {
	t.Helper()
	graph, vocabulary, err := flow.Decompile(data, scratch(data))
	require.NoError(t, err)
	text := source.Write(graph)
	again, _, err := source.Compile("export", text, vocabulary)
	require.NoError(t, err, "%s", text)
	require.Equal(t, data, again, "%s", text)
	require.Equal(t, text, source.Write(graph))
	return text
}

// TestFaults: all faults at once, in the order of the file, each at its place.
func TestFaults(t *testing.T) {
	_, _, err := source.Compile("bad.json", file(t, "bad.json"), doors)
	require.Error(t, err)
	golden(t, "bad.txt", err.Error()+"\n")
}

// TestFaultsAlone: a fault that would make correct parts faulty is reported alone.
func TestFaultsAlone(t *testing.T) {
	const nodes = `"nodes": {"a": {"event": "line.used", "then": "nowhere"}}`
	for text, want := range map[string]string{
		`[]`:                             "a list is not an object",
		`{"version": 2, ` + nodes + `}`:  "version: 2 is not a known version; give 1",
		`{"version": 1, "nodes": {}} {}`: "invalid character '{' after top-level value",
		`{"version": 1, "variables": {"v": {"type": "float"}}, ` + nodes +
			`}`: `variables.v.type: "float" is not a type (bool, int, number or handle)`,
		`{"version": 1, "nodes": {"a": {"event": "line.used", "key": 1e3, "then": "b"}}}`: "nodes.a.key: 1e3 is not " +
			"a whole number from -2147483648 to 2147483647",
	} {
		_, _, err := source.Compile("x", []byte(text), doors)
		assert.EqualError(t, err, "x:1: "+want)
	}
	_, _, err := source.Compile("x", []byte("{}"), doors)
	assert.EqualError(t, err, "x:1: version: none; give \"version\": 1\nx:1: nodes: none; give \"nodes\"")
}

func TestConstants(t *testing.T) {
	for _, number := range []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.1, 1 << 24, 3e38, 1e-45, math.Pi,
		16777217, 1e21} {
		for _, bits := range []uint32{math.Float32bits(number), math.Float32bits(number) + 1} {
			graph := flow.Source{Nodes: []flow.Node{{Name: "less", Type: "less",
				In: []flow.Input{{Name: "a", Constant: math.Float32frombits(bits)},
					{Name: "b", Constant: float32(1)}}}}}
			want, _, err := flow.Compile(graph, doors)
			require.NoError(t, err)
			got, _, err := source.Compile("x", source.Write(graph), doors)
			require.NoError(t, err)
			assert.Equal(t, want, got, "%s", source.Write(graph))
			same(t, got)
		}
	}
	for _, zero := range []any{false, 0, float32(0)} {
		two := []flow.Input{{Name: "a", Constant: zero}, {Name: "b", Constant: zero}}
		want, _, err := flow.Compile(flow.Source{Nodes: []flow.Node{{Name: "equal", Type: "equal", In: two}}}, doors)
		require.NoError(t, err)
		same(t, want)
	}
	ints := flow.Source{Nodes: []flow.Node{{Name: "less", Type: "less",
		In: []flow.Input{{Name: "a", Constant: 1}, {Name: "b", Constant: 2}}}}}
	want, _, err := flow.Compile(ints, doors)
	require.NoError(t, err)
	assert.Contains(t, string(same(t, want)), `"in": {"a": 1, "b": 2}`)
}

func TestNames(t *testing.T) {
	names := []string{"a.b[1]", "then", "\"\\\n\u2028<&>", strings.Repeat("long", 100), "é", "type", "key"}
	graph := flow.Source{Name: names[2]}
	for i, name := range names {
		graph.Variables = append(graph.Variables, flow.Variable{Name: name, Type: flow.Bool})
		graph.Nodes = append(graph.Nodes,
			flow.Node{Name: name, Type: "branch", In: []flow.Input{{Name: "if", Variable: name}},
				List: []flow.List{{Name: "else", Links: []flow.Link{{Node: names[len(names)-1-i], Port: "in"},
					{Node: name}}}}})
	}
	data, _, err := flow.Compile(graph, doors)
	require.NoError(t, err)
	same(t, data)
	graph.Nodes[3].List[0].Links[0].Node = "?"
	_, _, err = source.Compile("x", source.Write(graph), doors)
	assert.ErrorContains(t, err, "nodes.\"longlonglonglonglonglonglonglonglonglong\"….else[0].\"?\": ")
}

func FuzzCompile(f *testing.F) {
	for _, name := range []string{"door.json", "bad.json", "every.json"} {
		data, err := os.ReadFile("testdata/" + name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, readError := source.Read("x", data)
		compiled, _, err := source.Compile("x", data, doors)
		if err != nil {
			assert.True(t, utf8.ValidString(err.Error()))
			return
		}
		require.NoError(t, readError)
		same(t, compiled)
	})
}

func scratch(data []byte) []byte { return make([]byte, blob.ScratchSize(data)) }

func openScope(t testing.TB) scope.Scope {
	t.Helper()
	b := budgettest.Open(t, budget.Plan{Name: "flow", Scratch: budget.ScratchPlan{Workers: 1, Size: 4 * budget.MiB}})
	s := b.Scratch(0, 0).Open("level")
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
