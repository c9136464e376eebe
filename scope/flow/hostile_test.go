package flow_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/step"
)

// resum updates the checksum of a blob (package blob's header).
func resum(data []byte) {
	const at = 28
	if len(data) >= at+4 {
		sum := crc32.Update(0, crc32.MakeTable(crc32.Castagnoli), data[:at])
		binary.LittleEndian.PutUint32(data[at:], crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli),
			data[at+4:]))
	}
}

// bounded loads bytes and runs all their events, and reports whether Load accepted them. It checks
// that only one instance has changed.
func bounded(t testing.TB, s scope.Scope, data []byte) bool {
	inner := s.Open("hostile")
	defer func() { require.NoError(t, inner.Close()) }()
	guard := func() []byte {
		b := inner.BytesUnzeroed(64, 8)
		copy(b, bytes.Repeat([]byte{0xa5}, 64))
		return b
	}
	below := guard()
	size, err := flow.Size(data, scratch(data), 3)
	if err != nil {
		return false
	}
	if uint64(size) > inner.Free()/2 {
		return false
	}
	before := inner.Free()
	g, err := books.Load(inner, data, scratch(data))
	if err != nil {
		return false
	}
	g.Instances(3)
	assert.InDelta(t, size, before-inner.Free(), 63)
	w := &book{}
	runner := books.NewRunner(inner, w, 100)
	above := guard()
	first, i, last := g.New(), g.New(), g.New()
	runner.SendTo(g, i)
	fresh := slices.Clone(flow.DataOf(g, first))
	blob := slices.Clone(data)
	runner.Begin()
	for range 4 {
		for _, n := range g.Source().Nodes {
			if n.Type == "event" {
				_ = near.Fire(runner, g, i, n.Key, values{true, 1 << 50, 3, 0.5})
				_ = far.Fire(runner, g, i, n.Key, values{A: -1})
			}
		}
		_ = runner.Tick(g)
	}
	runner.End()
	for _, b := range [][]byte{above, below} {
		assert.Equal(t, bytes.Repeat([]byte{0xa5}, 64), b)
	}
	assert.Equal(t, fresh, flow.DataOf(g, first))
	assert.Equal(t, fresh, flow.DataOf(g, last))
	assert.True(t, bytes.Equal(blob, flow.BlobOf(g, len(data))))
	return true
}

// TestHostileWords sets each word of a blob with all kinds of nodes to values that lead elsewhere.
func TestHostileWords(t *testing.T) { hostileWords(t, compile(t, everything())) }

func TestHostileWordsOfStripped(t *testing.T) { hostileWords(t, strip(t, compile(t, everything()))) }

func hostileWords(t *testing.T, data []byte) {
	s := openScope(t)
	require.True(t, bounded(t, s, data))
	through, refused := 0, 0
	for at := 0; at+4 <= len(data); at += 4 {
		was := binary.LittleEndian.Uint32(data[at:])
		others := []uint32{0, 1, 2, 4, 8, was - 4, was + 4, was - 1, was + 1, was + 8, was ^ 1<<31,
			1 << 30, 1<<32 - 1, uint32(at)}
		if step.Now() < step.Check {
			others = others[at%7*2:][:2]
		}
		for _, other := range others {
			if other == was {
				continue
			}
			binary.LittleEndian.PutUint32(data[at:], other)
			resum(data)
			if bounded(t, s, data) {
				through++
			} else {
				refused++
			}
			if t.Failed() {
				t.Fatalf("word %d: %d, not %d", at, other, was)
			}
		}
		binary.LittleEndian.PutUint32(data[at:], was)
	}
	t.Logf("%d went through, %d were refused", through, refused)
	assert.NotZero(t, through)
	assert.NotZero(t, refused)
}

// TestShared: a blob whose nodes share one list or one name is refused. Otherwise a small blob
// could keep a load busy for hours, or have its names copied until memory is full.
func TestShared(t *testing.T) {
	s := openScope(t)
	source := flow.Source{Name: "pond", Nodes: []flow.Node{{Name: strings.Repeat("long ", 100), Type: "branch",
		List: then("x")}}}
	for i := range 20 {
		source.Nodes = append(source.Nodes, flow.Node{Name: "x" + strings.Repeat("y", i), Type: "gate"})
		source.Nodes[0].List[0].Links = append(source.Nodes[0].List[0].Links, flow.Link{Node: "x"})
	}
	g := load(t, s, source, 1)
	for _, of := range []func(node int) int{
		func(node int) int { return flow.OffsetOf(g, node) + 4 }, // its list
		func(node int) int { return flow.NameOf(g) + 8*node },
	} {
		data := compile(t, source)
		for i := range source.Nodes {
			copy(data[of(i):][:8], data[of(0):])
		}
		resum(data)
		_, err := books.Load(s, data, scratch(data))
		assert.EqualError(t, err, `flow: damaged: graph "pond": parts of it share their bytes`)
	}
}

// everything returns a source with each type of node, whose events run many steps.
func everything() flow.Source {
	for seed := uint64(0); ; seed++ {
		source := randomSource(rand.New(rand.NewPCG(seed, 7)), "everything", 50)
		types, ends := map[string]bool{}, true
		p := play{world: &book{}, limit: 200}
		i := modelOf(source).instance()
		for _, n := range source.Nodes {
			types[n.Type] = true
			if n.Type == "event" {
				p.steps = 0
				_, ok := p.fire(i, n.Of, n.Key, map[string]any{"a": int32(3), "b": true, "c": float32(1),
					"d": uint64(9)})
				ends = ends && ok
			}
		}
		if ends && len(types) == 15 && len(p.world.lines) > 10 {
			return source
		}
	}
}

// stripSeed is the bit of a seed for a stripped blob.
const stripSeed = 256

// FuzzLoad: a blob with any words overwritten is refused, or runs within its bounds. Package blob
// has a fuzz target for the bytes that it refuses.
func FuzzLoad(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, []byte{byte(40 + 4*seed), 0, 8, 0, 0, 0})
		f.Add(seed|stripSeed, []byte{byte(40 + 4*seed), 0, 8, 0, 0, 0})
	}
	s := openScope(f)
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		data := compile(t, randomSource(rand.New(rand.NewPCG(seed%256, 3)), "fuzzed", int(seed%32)))
		if seed&stripSeed != 0 {
			data = strip(t, data)
		}
		for ; len(edits) >= 6; edits = edits[6:] {
			at := int(binary.LittleEndian.Uint16(edits)) % (len(data) / 4) * 4
			binary.LittleEndian.PutUint32(data[at:], binary.LittleEndian.Uint32(edits[2:]))
		}
		resum(data)
		bounded(t, s, data)
	})
}
