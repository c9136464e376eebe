package flow_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/upfront-mem/upfront/scope/flow"
)

func cascade() flow.Source {
	s := flow.Source{Name: "cascade", Variables: []flow.Variable{{Name: "n", Type: flow.Int}, {Name: "b", Type: flow.Bool, Value: true}}}
	s.Nodes = append(s.Nodes, flow.Node{Name: "n0", Type: "event", Of: "near", List: then("n1")})
	for i := 1; i <= 8; i++ {
		n := flow.Node{Name: fmt.Sprint("n", i)}
		switch i % 4 {
		case 0:
			n.Type, n.In = "branch", []flow.Input{{Name: "if", Variable: "b"}}
		case 1:
			n.Type, n.Out, n.In = "add", []flow.Output{{Name: "to", Variable: "n"}}, []flow.Input{{Name: "value", Constant: 1}}
		case 2:
			n.Type, n.In = "less", []flow.Input{{Name: "a", Constant: -1}, {Name: "b", Variable: "n"}}
		case 3:
			n.Type = "gate"
		}
		if i < 8 {
			n.List = then(fmt.Sprint("n", i+1))
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func BenchmarkCascade(b *testing.B) {
	s := openScope(b)
	g := load(b, s, cascade(), 1)
	r := books.NewRunner(s, &book{}, 100)
	i := g.New()
	r.Begin()
	for b.Loop() {
		if err := near.Fire(r, g, i, 0, values{}); err != nil {
			b.Fatal(err)
		}
	}
	r.End()
}

func BenchmarkClone(b *testing.B) {
	s := openScope(b)
	g := load(b, s, cascade(), 4)
	for b.Loop() {
		g.Free(g.New())
	}
}

func BenchmarkNothing(b *testing.B) {
	s := openScope(b)
	g := load(b, s, flow.Source{Name: "x", Nodes: []flow.Node{{Name: "n0", Type: "event", Of: "near"}}}, 1)
	r := books.NewRunner(s, &book{}, 100)
	i := g.New()
	r.Begin()
	for b.Loop() {
		if err := near.Fire(r, g, i, 0, values{}); err != nil {
			b.Fatal(err)
		}
	}
	r.End()
}
func BenchmarkWord(b *testing.B) {
	var x atomic.Uint32
	for b.Loop() {
		x.CompareAndSwap(0, 1)
		x.Store(0)
	}
}
