package main

import (
	"context"
	"errors"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// crash commits a classic mistake to show the crash report: it keeps a block beyond the budget's
// Close, and C code writes to the block.
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
