package arrow_test

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/scope/with/arrow"
)

func countOld(ctx context.Context, place with.Place, frogs int) error {
	return with.Query(ctx, place, "old frogs", func(ctx context.Context, mem memory.Allocator) error {
		ages := array.NewInt32Builder(mem)
		for i := range frogs {
			ages.Append(int32(i % 10))
		}
		column := compute.NewDatum(ages.NewArray())
		above, err := compute.CallFunction(ctx, "greater", nil, column, compute.NewDatum(int32(7)))
		if err != nil {
			return err
		}
		old, err := compute.Filter(ctx, column, above, *compute.DefaultFilterOptions())
		if err == nil {
			fmt.Println(old.Len(), "of", frogs, "are old")
		}
		return err
	})
}

func Example() {
	scratch := budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}
	b, err := budget.Open(budget.Plan{Name: "pond", Scratch: scratch})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	for _, frogs := range []int{1000, 100_000, 2000} {
		if err := countOld(context.Background(), b.Scratch(0, 0), frogs); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
}
