package flow_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

// book is a world that records actions, and answers with the number of calls.
type book struct {
	lines []string
	asked int32
	inner func() // an action also calls it
}

type note struct {
	A flow.In[int32]
	B flow.In[bool]
	C flow.In[float32]
	D flow.In[uint64]
}

type ask struct {
	A flow.In[int32]
	X flow.Out[int32]
	Y flow.Out[bool]
	Z flow.Out[float32]
	W flow.Out[uint64]
}

// values has the values of both events, "near" and "far".
type values struct {
	B bool
	D uint64
	A int32
	C float32
}

var (
	books = flow.NewHost[book]()
	near  = flow.NewEvent[values](books, "near")
	far   = flow.NewEvent[values](books, "far")
	_     = flow.NewAction(books, "note", func(r *flow.Runner, w *book, p *note) {
		w.note(p.A.Get(r), p.B.Get(r), p.C.Get(r), p.D.Get(r))
	})
	_ = flow.NewAction(books, "ask", func(r *flow.Runner, w *book, p *ask) {
		x, y, z, d := w.ask(p.A.Get(r))
		p.X.Set(r, x)
		p.Y.Set(r, y)
		p.Z.Set(r, z)
		p.W.Set(r, d)
	})
	_ = flow.NewAction(books, "do", func(_ *flow.Runner, w *book, _ *struct{}) {
		if w.inner != nil {
			w.inner()
		}
	})
)

func (w *book) note(values ...any) { w.lines = append(w.lines, fmt.Sprint(values...)) }

func (w *book) ask(a int32) (int32, bool, float32, uint64) {
	w.asked++
	return a + w.asked, w.asked%2 == 0, float32(w.asked) / 4, uint64(w.asked)<<40 | uint64(uint32(a))
}

func openScope(t testing.TB) scope.Scope {
	t.Helper()
	b := budgettest.Open(t, budget.Plan{Name: "flow", Scratch: budget.ScratchPlan{Workers: 1,
		Size: 4 * budget.MiB}})
	s := b.Scratch(0, 0).Open("level")
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func compile(t testing.TB, source flow.Source) []byte {
	t.Helper()
	data, _, err := flow.Compile(source, books.Vocabulary())
	require.NoError(t, err)
	return data
}

func scratch(data []byte) []byte { return make([]byte, blob.ScratchSize(data)) }

func load(t testing.TB, s scope.Scope, source flow.Source, instances int) *flow.Graph {
	t.Helper()
	data := compile(t, source)
	g, err := books.Load(s, data, scratch(data))
	require.NoError(t, err)
	g.Instances(instances)
	return g
}

// to returns a list of links to the first ports of nodes.
func to(name string, nodes ...string) flow.List {
	l := flow.List{Name: name}
	for _, n := range nodes {
		l.Links = append(l.Links, flow.Link{Node: n})
	}
	return l
}

func then(nodes ...string) []flow.List { return []flow.List{to("then", nodes...)} }
