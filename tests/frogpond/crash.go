package main

import (
	"context"
	"errors"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// crash commits the classic mistake, to show what a report looks like: a block
// is kept beyond its budget's Close, and C writes into it.
func crash(ctx context.Context, b *budget.Budget) error {
	var kept []byte
	_, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*byte, error) {
		kept = s.BytesUnzeroed(4096, 64)
		return &kept[0], nil
	})
	if err := errors.Join(err, b.Close()); err != nil {
		return err
	}
	_, _ = arena.NewHeap(kept, 0)
	return errors.New("-crash: this build keeps the budget on the Go heap, where memory after Close " +
		"is still there")
}
