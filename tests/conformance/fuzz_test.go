package conformance

import (
	"testing"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// The fuzz targets run the programs of the random test; the first byte places the block in its
// window.

func FuzzLinear(f *testing.F)  { fuzz(f, openLinear, 2048) }
func FuzzStack(f *testing.F)   { fuzz(f, openStack, 2048) }
func FuzzPool(f *testing.F)    { fuzz(f, openPool[[3]uint64], 512) }
func FuzzHandles(f *testing.F) { fuzz(f, openHandles[[3]uint64], 512) }
func FuzzScope(f *testing.F)   { fuzz(f, openScope, 3*arena_c.Edge) }

func fuzz(f *testing.F, open opener, size int) {
	f.Add([]byte{0})
	f.Add([]byte("\x01\x00\x20\x03\x01\x20\x05\x0a\x00\x00\x0a\x00\x00\x0a\x01\x00"))
	f.Add([]byte("\x13\x0d\x00\x00\x06\xff\x06\x0d\x00\x00\x09\x00\x00\x0e\x01\x00\x07\x0a\x00\x0f\x00\x00"))
	// A heap's program, twice.
	f.Add([]byte("\x01\x60\x20\x03\x60\x20\x05\x0f\x00\xff\x6a\x00\x00\x6a\x00\x00\x6a\x01\x00"))
	f.Add([]byte("\x13\x66\xff\x06\x66\x04\x0c\x66\x04\x00\x0a\x01\x00\x05\x00\xf0\x6a\x00\x00\x0f\x01\xff"))
	// A program of two ends.
	f.Add([]byte("\x01\x00\x20\x03\x81\x20\x05\x0a\x00\x00\x8a\x00\x00\x89\x01\x00\x09\x00\x00"))
	window := arena.NewBlock(size+arena_c.Edge, arena_c.AlignMax)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) == 0 || len(program) > 3000 {
			return
		}
		from := int(program[0]) * arena_c.LineSize
		block := window[from : from+size]
		m, mod, err := open(block)
		if err != nil {
			t.Fatal(err)
		}
		if err := newSession(block, m, mod).run(program[1:]); err != nil {
			t.Fatal(err)
		}
		arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(window)), uint64(len(window)))
	})
}
