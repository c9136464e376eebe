package scope_test

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// A query leaves a block of its heap live, and the Close of its scope reports it. An interpreter is
// dropped with all its blocks, and allows that with MayLive.
func Example_blocksThatLive() {
	b, _ := openExample()
	defer b.Close()
	query := func(mayLive bool) error {
		return b.Scratch(0, 0).Do("query", func(s scope.Scope) error {
			heap, err := arena.NewHeap(s.BytesUnzeroed(4096, 64), 0)
			if err != nil {
				return err
			}
			if mayLive {
				heap.MayLive()
			}
			heap.Alloc(100, 16)
			rows := heap.Alloc(200, 16)
			return heap.Free(rows)
		})
	}
	// a checked build adds the line that made the heap
	said, _, _ := strings.Cut(query(false).Error(), "\n")
	fmt.Println(said)
	fmt.Println(query(true))
	// Output:
	// budget "example": scratch 0.0, scope "query": an arena.Heap of 4096 bytes ends with 1 live block, 128 bytes used; free each before the scope closes, or call MayLive
	// <nil>
}
