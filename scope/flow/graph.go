package flow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Graph is a graph that was loaded; Instances makes room for what it runs in. It dies with the
// scope that it was loaded in. One goroutine at a time uses a graph. The zero Graph is refused.
type Graph struct {
	of       *vocabulary
	root     *root
	blob     blob.Blob
	base     unsafe.Pointer // of the blob
	events   unsafe.Pointer // the table in it
	heard    uint32         // how many there are
	actions  *uint32        // the host's index of each of root.Actions
	template []uint64
	scope    scope.Scope   // that it was loaded in
	pool     *arena_c.Pool // of the instances
	gen      uint64
	running  Instance // that a runner is in
}

// Instance names an instance of a graph: plain data of 8 bytes, that may lie in any block. It is
// good in its own graph only. The zero Instance names nothing.
type Instance uint64

// Size says how many bytes Load and Instances take of their scope for the graph of these bytes and
// so many instances: a copy of the blob, 4 bytes for each action that nodes call, for each instance
// its dynamic data and 9 bytes, and some 80. It looks at the bytes as Load does. scratch has
// blob.ScratchSize bytes.
func Size(data, scratch []byte, instances int) (int, error) {
	r, _, err := verify(data, scratch)
	if err != nil {
		return 0, err
	}
	return loadSize(r, data) + nodeSize + poolSize(r.Template.Len(), instances), nil
}

// actionsOf is where, behind the copy of the blob, the indexes of the actions lie.
func actionsOf(data []byte) int { return (len(data) + 3) &^ 3 }

// loadSize is what both take.
func loadSize(r *root, data []byte) int { return (actionsOf(data) + 4*r.Actions.Len() + 7) &^ 7 }

// poolSize is what so many instances take whose data has so many words.
func poolSize(words, instances int) int {
	if instances < 0 || int64(instances) > 1<<31 {
		panic(bug("a graph with %d instances", instances))
	}
	n := uint64(instances)
	if n == 0 {
		return 0
	}
	size := uint64(unsafe.Sizeof(arena_c.Pool{})) + (9*n+7)&^7 + 8*uint64(words)*n
	return int(min(size, math.MaxInt/2)) // more than a scope has
}

// nodeSize is what Own takes.
const nodeSize = 16

// Load looks at the bytes of a blob, which may come from anywhere, and makes a graph of a copy of
// them in s, which nothing changes from then on. Bytes that are no graph, or of a graph that needs
// what the host hasn't, are an error. When s is full it unwinds, as New does: Size says what it
// takes. scratch has blob.ScratchSize bytes, and neither it nor data is needed afterwards. Cost:
// some 150 ns a node with what blob.Verify takes, a place in the table of limits.owned, and on the
// Go heap the Graph and what is compared with the host's vocabulary.
func (h *Host[World]) Load(s scope.Scope, data, scratch []byte) (*Graph, error) {
	h.declared()
	r, b, err := verify(data, scratch)
	if err != nil {
		return nil, err
	}
	differ := differs
	if blob.IsBare(data) {
		differ = stripDiffers
	}
	if err := cmp.Or(differ("action", r.Actions, b, h.Actions), differ("event", r.Signals, b, h.Events)); err != nil {
		return nil, fmt.Errorf("flow: graph %q: %w", r.Name.Get(b), err)
	}
	block := s.BytesUnzeroed(loadSize(r, data), 8)
	copy(block, data)
	g := &Graph{of: &h.vocabulary, scope: s, base: unsafe.Pointer(&block[0])}
	g.root = (*root)(unsafe.Add(g.base,
		uintptr(unsafe.Pointer(r))-uintptr(unsafe.Pointer(unsafe.SliceData(data)))))
	g.blob = b.Moved(block)
	g.template = g.root.Template.Get(g.blob)
	g.actions = (*uint32)(unsafe.Add(g.base, actionsOf(data)))
	for i, s := range g.root.Actions.Get(g.blob) {
		*(*uint32)(unsafe.Add(unsafe.Pointer(g.actions), 4*i)) = uint32(hashed(h.Actions, s.Hash))
	}
	events := spanOf(&g.root.Events)
	g.events, g.heard = unsafe.Add(g.base, events.offset), events.count
	s.Own((*ending)(g))
	return g, nil
}

// Instances makes room for so many instances of the graph, in the scope that it was loaded in,
// which is the topmost one: all that changes when graphs run lies there, so that who saves a
// level's state may have the blob before it. A full scope unwinds. A second call is a caller's bug
// and panics, and so is one on the bytes of a state that is whole (save.NewRing). Cost: for each instance its dynamic data and 9 bytes, and 64; one call into C.
func (g *Graph) Instances(n int) {
	g.loaded()
	if g.pool != nil {
		panic(bug("Instances of graph %q twice", g.Name()))
	}
	size := poolSize(len(g.template), n)
	if n == 0 {
		return
	}
	block := g.scope.BytesUnzeroed(size, arena_c.LineSize)
	room := arena_c.RoomOf(arena_c.RoomPool, unsafe.Pointer(&block[0]), uint64(size))
	if err := room.Err(); err != nil {
		panic(bug("Instances of graph %q: %v", g.Name(), err))
	}
	clear(block) // also what nothing else writes: the same state is the same bytes
	data := uint64(8 * len(g.template))
	g.pool = arena_c.PoolMake(room.Chunks(nil, g.checkData), data, 8, true)
	g.gen = g.pool.Gen
}

// checkData refuses data of an instance, from outside, that compiled code would stumble over: a bool
// that is neither 0 nor 1. All else may be any.
func (g *Graph) checkData(data []byte) error {
	for i, v := range g.root.Variables.Get(g.blob) {
		if v.Type == Bool && data[v.At] > 1 {
			return fmt.Errorf("graph %q: variable %d is a bool, and has %d", g.root.Name.Get(g.blob), i, data[v.At])
		}
	}
	return nil
}

// differs says what a graph needs that the host hasn't.
func differs(what string, there blob.Array[signature], b blob.Blob, here []Signature) error {
	for _, s := range signaturesOf(there, b) {
		i := slices.IndexFunc(here, func(other Signature) bool { return other.Name == s.Name })
		if i < 0 {
			return fmt.Errorf("the host has no %s %q", what, s.Name)
		}
		if !slices.Equal(here[i].Parameters, s.Parameters) {
			return fmt.Errorf("%s %q: the host has %v, the graph %v", what, s.Name, here[i].Parameters,
				s.Parameters)
		}
	}
	return nil
}

// String is the parameter as its name and type.
func (p Parameter) String() string {
	if p.Out {
		return p.Name + " out " + p.Type.String()
	}
	return p.Name + " " + p.Type.String()
}

func signaturesOf(all blob.Array[signature], b blob.Blob) (list []Signature) {
	for _, s := range all.Get(b) {
		of := Signature{Name: textOf(s.Name, b)}
		for _, p := range s.Parameters.Get(b) {
			of.Parameters = append(of.Parameters, Parameter{textOf(p.Name, b), p.Type, p.Out != 0})
		}
		list = append(list, of)
	}
	return list
}

// hashed is the index of the signature whose name has the hash, or -1: a host has one at most.
func hashed(list []Signature, hash uint32) int {
	return slices.IndexFunc(list, func(s Signature) bool { return hashOf(s.Name) == hash })
}

// textOf is a copy of a text: who gets it, in an error as well, may outlive the blob.
func textOf(s blob.Str, b blob.Blob) string { return strings.Clone(s.Get(b)) }

// ending is a graph whose scope closes.
type ending Graph

func (g *ending) Close() error {
	g.of = nil
	return nil
}

func (g *Graph) loaded() {
	switch {
	case g.root == nil:
		panic(bug("a zero Graph: Load of a Host makes one"))
	case g.of == nil:
		panic(bug("a Graph whose scope has closed"))
	}
}

// Name is the graph's, copied to the Go heap.
func (g *Graph) Name() string {
	g.loaded()
	return textOf(g.root.Name, g.blob)
}

// Data is how many bytes each instance has.
func (g *Graph) Data() int {
	g.loaded()
	return 8 * len(g.template)
}

// New makes an instance: a chunk with a copy of the template. It gives the zero Instance when all
// that Instances made room for are live. Cost: a few ns and the copy; no call into C.
func (g *Graph) New() Instance {
	g.loaded()
	if g.pool == nil {
		return 0
	}
	data, handle := g.pool.TakeHandle(g.gen)
	if data == nil {
		return 0
	}
	copy(unsafe.Slice((*uint64)(data), len(g.template)), g.template)
	return Instance(handle)
}

// Free ends an instance. One that was freed already, one of no graph, or one that a runner is in is
// a caller's bug and panics; nothing changes.
func (g *Graph) Free(i Instance) {
	g.loaded()
	if i == g.running && i != 0 {
		panic(bug("Free of an instance of graph %q while it runs: free it when its event has returned",
			g.Name()))
	}
	if g.pool == nil {
		panic(bug("Free of an instance of graph %q, which has none", g.Name()))
	}
	if code := g.pool.PutHandle(g.gen, uint64(i)); code != arena_c.OK {
		panic(bug("Free of an instance of graph %q: %v", g.Name(), code))
	}
}

// at is the dynamic data of an instance, or nil.
func (g *Graph) at(i Instance) unsafe.Pointer {
	if g.pool == nil {
		return nil
	}
	return g.pool.At(g.gen, uint64(i))
}

// Live says whether the instance is one of the graph's.
func (g *Graph) Live(i Instance) bool {
	g.loaded()
	return g.at(i) != nil
}

// Seed gives an instance its own random numbers: they begin as the source says.
func (g *Graph) Seed(i Instance, seed uint32) {
	(*head)(g.data("Seed", i)).random = seed
}

// Value is what the variable with this index in Source has in an instance: a bool, int32, float32
// or uint64. It is for tools and tests.
func (g *Graph) Value(i Instance, variable int) any {
	data := g.data("Value", i)
	v := g.root.Variables.Get(g.blob)[variable]
	return valueOf(unsafe.Add(data, v.At), v.Type)
}

func (g *Graph) data(what string, i Instance) unsafe.Pointer {
	g.loaded()
	data := g.at(i)
	if data == nil {
		panic(bug("%s of an instance of graph %q, which isn't live", what, g.Name()))
	}
	return data
}
