// Command released shows a fault of arrow-go's tests: their generator of list views returns the
// buffers of an array that it has released.
package main

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/internal/testing/gen"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// reuses is an allocator whose freed bytes have another use.
type reuses struct{ memory.Allocator }

func (reuses) Free(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}

func main() {
	dt := arrow.ListViewOf(arrow.PrimitiveTypes.Int8)
	for _, mem := range []memory.Allocator{memory.DefaultAllocator, reuses{memory.DefaultAllocator}} {
		random := gen.NewRandomArrayGenerator(1, mem)
		views := random.ListView(dt, 100, 0, 20, 0.3)
		fmt.Println("valid:", views.ValidateFull() == nil)
	}
}
