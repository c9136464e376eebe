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

func countAges(ctx context.Context, place with.Place, frogs int) error {
	return with.Query(ctx, place, "ages", func(ctx context.Context, mem memory.Allocator) error {
		ages := array.NewInt32Builder(mem)
		for i := range frogs {
			ages.Append(int32(i % 10))
		}
		different, err := compute.Unique(ctx, compute.NewDatum(ages.NewArray()))
		if err == nil {
			fmt.Println(different.Len(), "ages of", frogs, "frogs")
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
		if err := countAges(context.Background(), b.Scratch(0, 0), frogs); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 10 ages of 1000 frogs
	// budget "pond": scratch 0.0 is full: scope "ages" asked for 2048 bytes, 64 of 65536 are free; held by "ages" (65472 bytes); raise scratch.size in the plan to 67520 or more
	// 10 ages of 2000 frogs
}
