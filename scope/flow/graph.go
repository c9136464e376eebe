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

// Graph is a loaded graph. [Graph.Instances] reserves memory for the instances. A Graph ends with
// the scope in which it was loaded. One goroutine at a time may use a Graph. Methods of the zero
// Graph panic.
type Graph struct {
	of       *vocabulary
	root     *root
	blob     blob.Blob
	base     unsafe.Pointer // of the blob
	events   unsafe.Pointer // the table in the blob
	heard    uint32         // number of events
	actions  *uint32        // the host's index of each of root.Actions
	template []uint64
	scope    scope.Scope   // in which it was loaded
	pool     *arena_c.Pool // of the instances
	gen      uint64
	running  Instance // the instance that a runner is in
}

// Instance names an instance of a graph. An Instance has 8 bytes of plain data, and may be stored
// in any block. An Instance is valid only in the graph that made it. The zero Instance names no
// instance.
type Instance uint64

// Size returns the bytes that Load and Instances take at most in a scope, for the graph in data and
// a number of instances. The bytes are a copy of the blob, 4 bytes for each action, some 80 bytes,
// for each instance 9 bytes and the instance's dynamic data, and the alignment. Size checks data as
// Load does, but without a host. scratch must have blob.ScratchSize bytes.
func Size(data, scratch []byte, instances int) (int, error) {
	r, _, err := verify(data, scratch)
	if err != nil {
		return 0, err
	}
	align := 8
	if instances != 0 {
		align = arena_c.LineSize
	}
	return align - 1 + loadSize(r, data) + nodeSize + poolSize(r.Template.Len(), instances), nil
}

// actionsOf returns the offset of the actions' indexes, which follow the copy of the blob.
func actionsOf(data []byte) int { return (len(data) + 3) &^ 3 }

func loadSize(r *root, data []byte) int { return (actionsOf(data) + 4*r.Actions.Len() + 7) &^ 7 }

// poolSize returns the bytes that the pool takes for a number of instances, each with `words` words
// of data.
func poolSize(words, instances int) int {
	if instances < 0 || int64(instances) > 1<<31 {
		panic(bug("a graph with %d instances: give 0 to %d", instances, int64(1)<<31))
	}
	n := uint64(instances)
	if n == 0 {
		return 0
	}
	size := uint64(unsafe.Sizeof(arena_c.Pool{})) + (9*n+7)&^7 + 8*uint64(words)*n
	return int(min(size, math.MaxInt/2)) // more than any scope has
}

const nodeSize = 16

// Load checks a blob, which may come from any source, and makes a graph of a copy in s. data must
// begin at a multiple of 8. The copy stays constant. Load returns an error if data isn't a graph,
// or if the host doesn't declare the graph's actions and events with the same parameters. If s is
// full, Load unwinds; see [Size]. scratch must have blob.ScratchSize bytes. Load doesn't need
// scratch and data afterwards. Cost: some 150 ns a node, including blob.Verify, and one of the
// owned values that the plan's limits.owned allows. On the Go heap Load allocates the Graph, and
// copies to compare with the host's vocabulary.
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

// Instances reserves memory for n instances in the scope in which the graph was loaded. That scope
// must be the topmost scope. The reserved memory holds all data that changes as graphs run, so a
// level's saved state (package budget/save) may begin after the blob. If the scope is full,
// Instances unwinds. A second call panics, unless the first was with 0. After save.NewRing, the
// reserved memory isn't in the state. Cost: 64 bytes and their alignment, for each instance 9 bytes
// and the instance's dynamic data, and one call into C.
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
	clear(block) // so that the same state has the same bytes
	data := uint64(8 * len(g.template))
	g.pool = arena_c.PoolMake(room.Chunks(nil, g.checkData), data, 8, true)
	g.gen = g.pool.Gen
}

// checkData refuses an instance's data from outside if a bool in it is neither 0 nor 1. All other
// values are valid.
func (g *Graph) checkData(data []byte) error {
	for i, v := range g.root.Variables.Get(g.blob) {
		if v.Type == Bool && data[v.At] > 1 {
			return fmt.Errorf("graph %q: variable %d is a bool, and has %d", g.root.Name.Get(g.blob), i, data[v.At])
		}
	}
	return nil
}

// differs returns an error for an action or event of a graph that the host doesn't declare.
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

// String returns the parameter's name and type, with "out" between them for an Out.
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

func hashed(list []Signature, hash uint32) int {
	return slices.IndexFunc(list, func(s Signature) bool { return hashOf(s.Name) == hash })
}

// textOf returns a copy of a text, which may outlive the blob.
func textOf(s blob.Str, b blob.Blob) string { return strings.Clone(s.Get(b)) }

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

// Name returns the graph's name, copied to the Go heap.
func (g *Graph) Name() string {
	g.loaded()
	return textOf(g.root.Name, g.blob)
}

// Data returns the size of an instance's data in bytes.
func (g *Graph) Data() int {
	g.loaded()
	return 8 * len(g.template)
}

// New makes an instance with the graph's initial data. It returns the zero Instance if no reserved
// instance is free. Cost: a few ns and the copy of the data; in a default build no call into C.
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

// Free ends an instance. If the instance isn't live, or an action runs in it now, Free panics
// without a change.
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

func (g *Graph) at(i Instance) unsafe.Pointer {
	if g.pool == nil {
		return nil
	}
	return g.pool.At(g.gen, uint64(i))
}

// Live reports whether i is a live instance of the graph.
func (g *Graph) Live(i Instance) bool {
	g.loaded()
	return g.at(i) != nil
}

// Seed sets the state of an instance's random numbers. At first that state is the source's seed.
// Seed panics if the instance isn't live.
func (g *Graph) Seed(i Instance, seed uint32) {
	(*head)(g.data("Seed", i)).random = seed
}

// Value returns the value of a variable in an instance, as a bool, int32, float32 or uint64.
// variable is the variable's index in Source. Value panics if the instance isn't live, or if there
// is no such variable. Value is for tools and tests.
func (g *Graph) Value(i Instance, variable int) any {
	data := g.data("Value", i)
	list := g.root.Variables.Get(g.blob)
	if variable < 0 || variable >= len(list) {
		panic(bug("variable %d of graph %q, which has %d", variable, g.Name(), len(list)))
	}
	v := list[variable]
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
