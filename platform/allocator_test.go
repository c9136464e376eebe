package platform_test

import (
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/platform"
)

func TestPages(t *testing.T) {
	var pages platform.Pages
	page := uint64(os.Getpagesize())
	for _, size := range []uint64{0, 1, page, 3*page + 1} {
		for _, align := range []uint64{1, page, 1 << 20, 1 << 22} {
			p := pages.Alloc(size, align)
			require.NotNil(t, p)
			assert.Zero(t, uintptr(p)%uintptr(max(align, page)))
			bytes := unsafe.Slice((*byte)(p), max(size, 1))
			assert.Zero(t, bytes[0])
			bytes[len(bytes)-1] = 1
			if align == page {
				require.NoError(t, pages.Free(p))
				assert.ErrorContains(t, pages.Free(p), "freed already")
			}
		}
	}
	assert.Nil(t, pages.Alloc(1<<64-1, 1))
	assert.Nil(t, pages.Alloc(1<<62, 1))
	assert.Panics(t, func() { pages.Alloc(1, 3) })
	require.NoError(t, pages.Close())
	require.NoError(t, pages.Close())
}

func TestPagesThatTheSystemRefuses(t *testing.T) {
	for _, fault := range platform.InjectableFaults {
		var pages platform.Pages
		restore := platform.InjectFault(fault, 1)
		p := pages.Alloc(1, 1)
		if restore() {
			assert.Nil(t, p, fault)
		}
		assert.NoError(t, pages.Close())
	}
}

// A tool without a budget: a proxy counts the pages it takes from the system.
func ExamplePages() {
	var pages platform.Pages
	tool := arena.NewProxy("tool", &pages)
	block := tool.Alloc(1<<20, 64)
	level, err := arena.NewLinear(unsafe.Slice((*byte)(block), 1<<20))
	fmt.Println(level.Alloc(1000, 8) != nil, err, tool.Stats().Asked)
	fmt.Println(tool.Free(block), tool.Close(), pages.Close())
	// Output:
	// true <nil> 1048576
	// <nil> <nil> <nil>
}
