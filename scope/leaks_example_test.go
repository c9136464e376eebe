package scope_test

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// A query that forgets a block of its heap is told so when its scope closes. An interpreter that is dropped with all that
// it has says that its blocks may live.
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
	said, _, _ := strings.Cut(query(false).Error(), "\n") // a checked build adds who made the heap
	fmt.Println(said)
	fmt.Println(query(true))
	// Output:
	// scratch 0.0, scope "query": an arena.Heap of 4096 bytes ends with 1 live block, 128 bytes used; free each before the scope closes, or call MayLive
	// <nil>
}
