package arrow_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/arrow"
	"github.com/upfront-mem/upfront/tests/clients/paired"
	"github.com/upfront-mem/upfront/tests/step"
)

// built builds n numbers, one by one, without Reserve.
func built(n int) with.Func {
	return func(_ context.Context, mem memory.Allocator) error {
		b := array.NewInt64Builder(mem)
		defer b.Release()
		for i := range n {
			b.Append(int64(i))
		}
		b.NewArray().Release()
		return nil
	}
}

// builtTexts builds n texts of 50 bytes.
func builtTexts(n int) with.Func {
	return func(_ context.Context, mem memory.Allocator) error {
		b := array.NewStringBuilder(mem)
		defer b.Release()
		for range n {
			b.Append("a text of a column that has fifty bytes, or nearly")
		}
		b.NewArray().Release()
		return nil
	}
}

// selects filters n numbers, and selects half of them, scattered.
func selects(n int) with.Func {
	values, selected := array.NewInt32Builder(memory.DefaultAllocator), array.NewBooleanBuilder(memory.DefaultAllocator)
	for i := range n {
		values.Append(int32(i))
		selected.Append(uint32(i)*2654435761>>31 == 0)
	}
	column, filter := values.NewArray(), selected.NewArray()
	return func(ctx context.Context, _ memory.Allocator) error {
		kept, err := compute.FilterArray(ctx, column, filter, *compute.DefaultFilterOptions())
		if err == nil {
			kept.Release()
		}
		return err
	}
}

// compared runs a query in scratch, and with arrow's default.
func compared(t *testing.T, p scope.Scratch, name string, n int, fn with.Func) paired.Figure {
	ctx := context.Background()
	return paired.Compare(t, name, n, func(n int) {
		for range n {
			if err := with.Query(ctx, p, "query", fn); err != nil {
				panic(err)
			}
		}
	}, func(n int) {
		for range n {
			if err := fn(ctx, memory.DefaultAllocator); err != nil {
				panic(err)
			}
		}
	})
}

// TestFigures measures the work of arrow's own benchmarks of builders and of selection.
func TestFigures(t *testing.T) {
	p := open(t, 1, 64*budget.MiB).Scratch(0, 0)
	rounds := step.Pick(2, 2, 20)
	for _, row := range []struct {
		name string
		n    int
		fn   with.Func
	}{
		{"build 2^18 numbers", 2 * rounds, built(1 << 18)},
		{"build 2^16 texts", 2 * rounds, builtTexts(1 << 16)},
		{"build 1000 numbers", 1000 * rounds, built(1000)},
		{"filter 2^20 numbers", 5 * rounds, selects(1 << 20)},
		{"filter 2^16 numbers", 100 * rounds, selects(1 << 16)},
		{"filter 1000 numbers", 500 * rounds, selects(1000)},
	} {
		f := compared(t, p, row.name, row.n, row.fn)
		if release {
			assert.LessOrEqual(t, f.Garbage, 1.1*5000, row.name)
		}
	}
	paired.Live(t, p.Stats().Used)
}
