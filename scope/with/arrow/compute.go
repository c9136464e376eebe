package arrow

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/compute"
)

// context returns ctx with the allocator, and with a registry whose functions report the query's
// full.
func (q *query) context(ctx context.Context) context.Context {
	e := compute.GetExecCtx(ctx)
	e.Registry = registry{e.Registry, q}
	return compute.SetExecCtx(compute.WithAllocator(ctx, q), e)
}

type registry struct {
	compute.FunctionRegistry
	q *query
}

func (r registry) GetFunction(name string) (compute.Function, bool) {
	fn, ok := r.FunctionRegistry.GetFunction(name)
	if !ok {
		return nil, false
	}
	return function{fn, r.q}, true
}

// function is a function of compute. Its goroutines allocate, and end when the query is full; the
// function's result is then dropped.
type function struct {
	compute.Function
	q *query
}

func (f function) Execute(ctx context.Context, opts compute.FunctionOptions, args ...compute.Datum) (
	result compute.Datum, err error) {
	if err = f.q.enter(); err != nil {
		return nil, err
	}
	defer f.q.calls.Done()
	err = f.q.answer(func() (err error) {
		result, err = f.Function.Execute(ctx, opts, args...)
		return err
	})
	if err != nil && result != nil {
		result.Release()
		result = nil
	}
	return result, err
}

func (q *query) enter() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over == nil {
		q.calls.Add(1)
	}
	return q.over
}
