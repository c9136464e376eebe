package flow_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/step"
)

func strip(t testing.TB, data []byte) []byte {
	t.Helper()
	stripped, err := flow.Strip(data, scratch(data))
	require.NoError(t, err)
	_, err = flow.Size(stripped, scratch(stripped), 1)
	require.NoError(t, err, "it is looked at")
	return stripped
}

// TestStripSizes: an empty graph is its root and a template.
func TestStripSizes(t *testing.T) {
	data := compile(t, flow.Source{Name: "e"})
	stripped := strip(t, data)
	t.Logf("an empty graph: %d bytes, stripped %d", len(data), len(stripped))
	assert.Equal(t, [2]int{2276, 121}, [2]int{len(data), len(stripped)})
	for _, text := range []string{"good", "near"} { // the graph's name stays, an event's doesn't
		assert.True(t, bytes.Contains(compile(t, good()), []byte(text)))
	}
	stripped = strip(t, compile(t, good()))
	assert.True(t, bytes.Contains(stripped, []byte("good")))
	assert.False(t, bytes.Contains(stripped, []byte("near")))
}

func TestStripTwice(t *testing.T) {
	once := strip(t, compile(t, everything()))
	twice := strip(t, once)
	assert.Equal(t, once, twice)
	assert.NotSame(t, &once[0], &twice[0])
}

// TestStrippedRunsAlike: the instances of a stripped graph have the same bytes after each event and
// tick, and their actions are the same. Errors name nodes by index.
func TestStrippedRunsAlike(t *testing.T) {
	name := regexp.MustCompile(`"n([0-9]+)"`)
	outer := openScope(t)
	errors, lines := 0, 0
	for seed := range uint64(step.Pick(40, 300, 20_000)) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := outer.Open("round")
		data := compile(t, randomSource(r, "alike", 1+r.IntN(40)))
		var graphs [2]*flow.Graph
		var worlds [2]*book
		var runners [2]*flow.Runner
		var instances [2]flow.Instance
		limit := 1 + r.IntN(60)
		for i, data := range [][]byte{data, strip(t, data)} {
			g, err := books.Load(s, data, scratch(data))
			require.NoError(t, err)
			g.Instances(1)
			graphs[i], worlds[i], instances[i] = g, &book{}, g.New()
			runners[i] = books.NewRunner(s, worlds[i], limit)
			runners[i].SendTo(g, instances[i])
		}
		require.Equal(t, graphs[0].Data(), graphs[1].Data())
		nodes := graphs[0].Source().Nodes
		for range 20 {
			key, v := int32(r.IntN(16)), values{r.IntN(2) == 0, r.Uint64(), int32(r.IntN(4)), float32(r.IntN(4))}
			if n := nodes[r.IntN(len(nodes))]; n.Type == "event" {
				key = n.Key
			}
			event := []flow.Event[values]{near, far}[r.IntN(2)]
			var said [2]string
			for i, g := range graphs {
				runners[i].Begin()
				said[i] = text(event.Fire(runners[i], g, instances[i], key, v)) + text(runners[i].Tick(g))
				runners[i].End()
			}
			require.Equal(t, name.ReplaceAllString(said[0], `"#$1"`), said[1])
			require.Equal(t, worlds[0].lines, worlds[1].lines)
			require.Equal(t, flow.DataOf(graphs[0], instances[0]), flow.DataOf(graphs[1], instances[1]))
			errors += min(len(said[1]), 1)
		}
		lines += len(worlds[1].lines)
		require.NoError(t, s.Close())
	}
	assert.NotZero(t, errors)
	assert.NotZero(t, lines)
}

// TestStrippedSource: names are replaced by indexes, and all else stays.
func TestStrippedSource(t *testing.T) {
	s := openScope(t)
	source := everything()
	data := compile(t, source)
	stripped := strip(t, data)
	g, err := books.Load(s, stripped, scratch(stripped))
	require.NoError(t, err)
	assert.Equal(t, "everything", g.Name())
	numbered := g.Source()
	assert.Equal(t, "#0", numbered.Nodes[0].Name)
	assert.Equal(t, "#1", numbered.Variables[1].Name)
	again := strip(t, compile(t, numbered))
	assert.Equal(t, stripped, again, "it is the same graph")
	_, _, err = flow.Decompile(stripped, scratch(stripped))
	assert.EqualError(t, err,
		`flow: graph "everything" is stripped: its names are gone; take the blob or the source from which it was made`)
}

// TestStripRefuses: bytes that are incomplete, or not as Compile makes them, are refused.
func TestStripRefuses(t *testing.T) {
	for _, data := range [][]byte{compile(t, good()), strip(t, compile(t, good()))} {
		for at := 0; at < len(data); at++ {
			data[at] ^= 1
			_, err := flow.Strip(data, make([]byte, 1<<14))
			require.Error(t, err, at)
			data[at] ^= 1
		}
		_, err := flow.Strip(data[:len(data)-1], make([]byte, 1<<14))
		assert.ErrorContains(t, err, "cut off")
	}
	// A blob that can be loaded, whose delay waits in each new instance.
	s := openScope(t)
	data := compile(t, good())
	g := load(t, s, good(), 1)
	_, err := books.Load(s, data, scratch(data))
	require.NoError(t, err)
	binary.LittleEndian.PutUint32(data[flow.TemplateOf(g):], 1)
	resum(data)
	_, err = books.Load(s, data, scratch(data))
	require.NoError(t, err)
	_, err = flow.Strip(data, scratch(data))
	assert.EqualError(t, err, `flow: graph "good" isn't as Compile makes it: compile its source again`)
}

// TestStrippedHosts: a host with other actions or events is refused, with the host's names.
func TestStrippedHosts(t *testing.T) {
	s := openScope(t)
	data := strip(t, compile(t, good()))
	v := books.Vocabulary()
	load := func(change func(v *flow.Vocabulary)) string {
		t.Helper()
		changed := flow.Vocabulary{}
		for _, s := range v.Actions {
			changed.Actions = append(changed.Actions,
				flow.Signature{Name: s.Name, Parameters: slices.Clone(s.Parameters)})
		}
		for _, s := range v.Events {
			changed.Events = append(changed.Events,
				flow.Signature{Name: s.Name, Parameters: slices.Clone(s.Parameters)})
		}
		change(&changed)
		h, err := flow.HostOf(changed)
		require.NoError(t, err)
		_, err = h.Load(s, data, scratch(data))
		return text(err)
	}
	assert.Empty(t, load(func(*flow.Vocabulary) {}))
	assert.Empty(t, load(func(v *flow.Vocabulary) { slices.Reverse(v.Actions); slices.Reverse(v.Events) }))
	assert.Equal(t,
		`flow: graph "good": the host has no action whose name has the hash 919a0c3d; the graph is stripped`,
		load(func(v *flow.Vocabulary) { v.Actions = nil }))
	other := `flow: graph "good": event "near": the host has `
	for _, change := range []func(p []flow.Parameter) []flow.Parameter{
		func(p []flow.Parameter) []flow.Parameter { return p[1:] },
		func(p []flow.Parameter) []flow.Parameter { p[0].Name = "other"; return p },
		func(p []flow.Parameter) []flow.Parameter { p[0].Type = flow.Number; return p },
		func(p []flow.Parameter) []flow.Parameter { p[0], p[1] = p[1], p[0]; return p },
	} {
		said := load(func(v *flow.Vocabulary) {
			e := &v.Events[0]
			e.Parameters = change(e.Parameters)
		})
		assert.True(t, strings.HasPrefix(said, other) &&
			strings.HasSuffix(said, "the graph is stripped and has another fingerprint: compile its source again"),
			said)
	}
}

// TestStrippedTypes: even if the fingerprint is right, the types must be equal.
func TestStrippedTypes(t *testing.T) {
	s := openScope(t)
	h := flow.NewHost[book]()
	flow.NewEvent[struct{ A int32 }](h, "near")
	source := flow.Source{Name: "types", Nodes: []flow.Node{{Name: "e", Type: "event", Of: "near"}}}
	full, _, err := flow.Compile(source, h.Vocabulary())
	require.NoError(t, err)
	data := strip(t, full)
	g, err := h.Load(s, data, scratch(data))
	require.NoError(t, err)
	at := flow.ParameterOf(g)
	require.EqualValues(t, flow.Int, binary.LittleEndian.Uint32(data[at+8:]))
	binary.LittleEndian.PutUint32(data[at+8:], uint32(flow.Handle))
	resum(data)
	_, err = flow.Size(data, scratch(data), 1)
	require.NoError(t, err, "by itself it is whole")
	_, err = h.Load(s, data, scratch(data))
	assert.ErrorContains(t, err,
		`event "near": the host has [a int]; the graph is stripped and has another fingerprint`)
}

func TestHalfStripped(t *testing.T) {
	refused := func(data []byte, cut bool, says string) {
		t.Helper()
		types := binary.LittleEndian.Uint32(data[20:])
		if !cut {
			full := compile(t, flow.Source{})
			data = append(slices.Clone(data), full[binary.LittleEndian.Uint32(full[20:]):]...)
		} else {
			data = slices.Clone(data[:types])
		}
		binary.LittleEndian.PutUint32(data[4:], uint32(len(data)))
		resum(data)
		_, err := flow.Size(data, make([]byte, 1<<14), 1)
		assert.ErrorContains(t, err, says)
	}
	one := flow.Source{Name: "half", Nodes: []flow.Node{{Name: "b", Type: "branch"}}}
	refused(compile(t, one), true, "it is stripped, and has names")
	refused(compile(t, flow.Source{Variables: []flow.Variable{{Name: "v", Type: flow.Int}}}), true,
		"it is stripped, and has names")
	refused(compile(t, good()), true, "the fingerprint of signature 0 has 4 bytes, not 8")
	refused(strip(t, compile(t, one)), false, "1 nodes have 0 names")
	assert.True(t, blob.IsBare(strip(t, compile(t, one))))
}
