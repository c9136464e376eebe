package cache_test

import (
	"context"
	"encoding/binary"
	"errors"
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
	b, err := budget.Open(budget.Plan{Name: "reader",
		Regions: []budget.RegionPlan{{Name: "level", Size: 2 * budget.MiB}}})
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

// Entries end at times of the caller's clock. A value that is larger than Most isn't stored.
func ExampleBytes_SetUntil() {
	c := cache.NewBytes(inMemory("sessions"), 1<<20, cache.Options{})
	key := []byte("ada")
	fmt.Println(c.SetUntil(key, []byte("token"), 60))
	c.View(key, func(token []byte) { fmt.Printf("%s\n", token) })
	c.Advance(60)
	fmt.Println(c.Has(key), c.Delete(key))

	err := c.Set(key, make([]byte, c.Most()))
	fmt.Println(errors.Is(err, cache.ErrLarge), c.Has(key))
	// Output:
	// <nil>
	// token
	// false true
	// true false
}

// The figures say where the bytes are.
func ExampleStats() {
	c := cache.NewBytes(inMemory("names"), 1<<20, cache.Options{})
	for i := range uint64(100_000) {
		if err := c.Set(binary.LittleEndian.AppendUint64(nil, i), make([]byte, 92)); err != nil {
			panic(err)
		}
	}
	s := c.Stats()
	fmt.Println(s.Entries+s.Evictions, s.Rejected, s.Crowded < s.Evictions, s.Examined >= s.Evictions)
	fmt.Println(s.KeyBytes/s.Entries, s.ValueBytes/s.Entries, s.KeyBytes+s.ValueBytes+s.Index+s.Padding)
	c.Clear()
	fmt.Println(c.Stats().Entries)
	// Output:
	// 100000 0 true true
	// 8 92 1048576
	// 0
}

// A smaller cache gives pages back.
func ExampleBytes_Resize() {
	c := cache.NewBytes(inMemory("names"), 1<<20, cache.Options{})
	c.Resize(1 << 18)
	_, err := c.Trim() // in a program without checks, up to 768 KiB that were in use
	fmt.Println(err)
	// Output:
	// <nil>
}
