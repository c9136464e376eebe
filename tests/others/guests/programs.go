package guests

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/others/row"
)

// Programs returns the server in a budget, with wazero's own memories, and the same carefully.
func Programs() []row.Program {
	return []row.Program{
		{Task: "guests", Name: "in a budget", Run: inBudget},
		{Task: "guests", Name: "wazero's own", Run: func(ctx context.Context, m *row.Meter, short bool) error {
			m.Row.Bound = "24 MiB are answered; their guest keeps the memory"
			return run(ctx, m, short, nil, false)
		}},
		{Task: "guests", Name: "wazero's own, carefully",
			Run: func(ctx context.Context, m *row.Meter, short bool) error {
				m.Row.Bound = "24 MiB are refused; closed memory waits for the collector"
				return run(ctx, m, short, nil, true)
			}},
	}
}

func inBudget(ctx context.Context, m *row.Meter, short bool) (err error) {
	b, err := budget.Open(plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	m.Row.Bound = "24 MiB are refused; closed memory goes to the system"
	return run(ctx, m, short, b.Slots("guest"), true)
}

func run(ctx context.Context, m *row.Meter, short bool, slots *budget.Slots, careful bool) (err error) {
	s, err := open(ctx, slots, careful)
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err != nil {
		return err
	}
	requests := 4000
	if short {
		requests = 250
	}
	if err := m.Measure(func() error { return s.serve(ctx, requests) }); err != nil {
		return err
	}
	peak, _ := platform.ResidentPeak()
	m.Add("resident at most", float64(peak)/budget.MiB, "MiB")
	m.Add("replaced", float64(s.replaced.Load()), "guests")
	m.Add("refused", float64(s.refused.Load()), "requests")
	return nil
}

// request is a body and its size in bytes.
type request struct {
	size uint32
	body io.Reader
}

// number returns request i. Most bodies are small, one in 25 has up to 6 MiB, and one in 250 has
// 24 MiB.
func number(i int) request {
	r := rand.New(rand.NewPCG(4, uint64(i)))
	size := r.Uint64N(256 * budget.KiB)
	switch n := r.IntN(250); {
	case n == 0:
		size = 24 * budget.MiB
	case n <= 10:
		size = r.Uint64N(6 * budget.MiB)
	}
	return request{uint32(size), rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)})}
}
