package cache_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

const blockSize = 4 << 10

// blocks reads a file through a cache.
type blocks struct {
	file  io.ReaderAt
	cache *cache.Bytes
}

// read appends block n to buf.
func (b *blocks) read(buf []byte, n uint64) ([]byte, error) {
	key := binary.LittleEndian.AppendUint64(make([]byte, 0, 8), n)
	if found, ok := b.cache.Get(buf, key); ok {
		return found, nil
	}
	begin := len(buf)
	buf = slices.Grow(buf, blockSize)[:begin+blockSize]
	if _, err := b.file.ReadAt(buf[begin:], int64(n*blockSize)); err != nil {
		return buf[:begin], err
	}
	return buf, b.cache.Set(key, buf[begin:])
}

// A cache of blocks in front of a file.
func ExampleBytes() {
	file := strings.NewReader(strings.Repeat("upfront ", 100*blockSize/8))
	b, err := budget.Open(budget.Plan{Name: "reader", Regions: []budget.RegionPlan{{Name: "level", Size: 2 * budget.MiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(level scope.Scope) (*struct{ _ byte }, error) {
		r := &blocks{file, cache.NewBytes(level, 1<<20, cache.Options{Entry: blockSize})}
		buf := make([]byte, 0, blockSize)
		for _, n := range []uint64{7, 8, 7, 7} {
			block, err := r.read(buf, n)
			if err != nil {
				return nil, err
			}
			fmt.Printf("block %d: %d bytes, %q\n", n, len(block), block[:8])
		}
		s := r.cache.Stats()
		fmt.Println(s.Hits, "hits,", s.Misses, "misses")
		return nil, nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// block 7: 4096 bytes, "upfront "
	// block 8: 4096 bytes, "upfront "
	// block 7: 4096 bytes, "upfront "
	// block 7: 4096 bytes, "upfront "
	// 2 hits, 2 misses
}
