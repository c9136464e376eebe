package save_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// played returns programs with these heaps after some steps, with snapshot 1.
func played(t testing.TB, heaps ...packedHeap) []*packing {
	list := newPackings(t, nil, heaps...)
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		for _, p := range list {
			p.step(t, r)
		}
	}
	require.NoError(t, list[0].ring.Take(1))
	return list
}

// TestPackedFiles: a program with another most reads a file if its ring has room, and plays on with
// the same result. Else the error has the missing bytes, and so many more are enough.
func TestPackedFiles(t *testing.T) {
	const size = 20 << 10
	a := played(t, packedHeap{100, size, size})[0]
	file := written(t, a.ring, 1)
	appended, err := a.ring.AppendFile([]byte("x"), 1)
	require.NoError(t, err)
	require.Equal(t, "x"+string(file), string(appended))
	for _, most := range []uint64{16, 3000, 3017, 8000, size} {
		b := newPackings(t, nil, packedHeap{100, size, most})[0]
		before := heldBy(t, b.ring)
		_, err := b.ring.Read(bytes.NewReader(file))
		if err != nil {
			var holds, by uint64
			text := err.Error()
			_, err = fmt.Sscanf(text[strings.Index(text, "the ring"):],
				"the ring holds %d: raise the most of State.Heap by %d or more", &holds, &by)
			require.NoError(t, err, text)
			require.Contains(t, text, fmt.Sprintf("save: a file for region room, byte 16: a snapshot of %d bytes, and",
				a.ring.Used(1)))
			require.Equal(t, before, heldBy(t, b.ring))
			less := newPackings(t, nil, packedHeap{100, size, most + by - 16})[0]
			require.ErrorContains(t, readAgain(less.ring, file), "by 16 or more")
			b = newPackings(t, nil, packedHeap{100, size, most + by})[0]
			require.NoError(t, readAgain(b.ring, file))
		}
		require.Equal(t, hash(t, a.ring, 1), hash(t, b.ring, 1))
		require.Equal(t, file, written(t, b.ring, 1))
		require.NoError(t, b.ring.Restore(background, 1))
		_, code := b.header().Walk(nil)
		require.Zero(t, code)
		require.Equal(t, a.heap.Stats(), b.heap.Stats())
		require.NoError(t, b.ring.Take(2))
		require.Equal(t, hash(t, a.ring, 1), hash(t, b.ring, 2))
		b.live = nil
		for _, x := range a.live {
			at := unsafe.Add(unsafe.Pointer(b.header()), x.offset)
			b.live = append(b.live, packedBlock{x.offset, unsafe.Slice((*byte)(at), len(x.bytes)), x.value})
		}
		b.holdsOnly(t)
		rest := bytes.NewReader(append(slices.Clone(file), 1, 2, 3))
		_, err = b.ring.Read(rest)
		require.NoError(t, err)
		require.Equal(t, 3, rest.Len(), "bytes after a file are another's")
	}
	for _, heaps := range [][]packedHeap{{{100, size, 0}}, {{164, size, size}}, {{100, size + 64, size}},
		{{100, size, size}, {0, 1024, 1024}}} {
		other := newPackings(t, nil, heaps...)[0]
		require.ErrorContains(t, readAgain(other.ring, file), "byte 56: it is of another program, plan or data: ")
		if err := readAgain(a.ring, written(t, played(t, heaps...)[0].ring, 1)); assert.Error(t, err) {
			require.ErrorContains(t, err, "byte 56: it is of another program, plan or data: ")
		}
	}
	other := newPackings(t, nil, packedHeap{100, size, 0})[0]
	require.ErrorContains(t, readAgain(other.ring, file),
		"heap 0 of State.Heap in region room: none here, and 20480 bytes at 0x80 in the file")
	require.ErrorContains(t, readAgain(a.ring, written(t, played(t, packedHeap{100, size, 0})[0].ring, 1)),
		"heap 0 of State.Heap in region room: 20480 bytes at 0x80 here, and none in the file")
}

// withImage returns a file with another image and correct sums.
func withImage(file []byte, was int, image []byte) []byte {
	file = slices.Concat(file[:len(file)-was], image)
	binary.LittleEndian.PutUint64(file[16:], uint64(len(image)))
	return resum(file)
}

// runsOf returns the positions of the heaps' words in an image, and of the words of each heap's
// runs.
func runsOf(image []byte, fixed int) (heaps []int, runs [][]int) {
	for at := fixed; at < len(image); {
		heaps, runs = append(heaps, at), append(runs, nil)
		end := at + 16 + int(wordOf(image, uint64(at)))
		for at += 16; at < end; at += 16 + int(wordOf(image, uint64(at+8))) {
			runs[len(runs)-1] = append(runs[len(runs)-1], at)
		}
	}
	return heaps, runs
}

// TestPackedHostileFiles: a file with correct sums, in whose heaps any word is forged, is refused
// with a byte. Nothing changes, and a good file still passes.
func TestPackedHostileFiles(t *testing.T) {
	list := played(t, packedHeap{100, 8 << 10, 8 << 10}, packedHeap{0, 16 << 10, 16 << 10})
	ring := list[0].ring
	file, good := written(t, ring, 1), save.Image(ring, 1)
	before := heldBy(t, ring)
	fixed := save.Fixed(ring)
	heaps, runs := runsOf(good, fixed)
	require.Len(t, heaps, 2)
	require.Greater(t, len(runs[1]), 3)
	tries := 0
	refused := func(what string, image []byte) {
		tries++
		hostile := withImage(file, len(good), image)
		_, err := ring.Read(bytes.NewReader(hostile))
		require.ErrorContains(t, err, "save: a file for region room, byte ", what)
		require.Equal(t, before, heldBy(t, ring), what)
		_, _, err = save.DiffFiles(bytes.NewReader(file), bytes.NewReader(hostile), nil)
		_ = err // without a ring it may pass
		_ = save.Show(io.Discard, bytes.NewReader(hostile))
		if tries%5 == 0 {
			require.NoError(t, readAgain(ring, file))
			require.True(t, save.SpareIsClean(ring))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	words := slices.Clone(heaps)
	for _, list := range runs {
		words = append(words, list...)
	}
	for _, at := range words {
		for _, at := range []int{at, at + 8} {
			was := wordOf(good, uint64(at))
			for _, value := range []uint64{0, 1, 16, was - 16, was + 16, was + 1, was + 8, was << 1, 1 << 62,
				1<<64 - 16, math.MaxUint64 - was, r.Uint64(), r.Uint64N(16<<10) &^ 15} {
				if value != was {
					image := slices.Clone(good)
					binary.LittleEndian.PutUint64(image[at:], value)
					refused(fmt.Sprintf("word at %#x is %#x and was %#x", at, value, was), image)
				}
			}
		}
	}
	// grown returns an image in which the heap's size follows its runs.
	grown := func(heap int, image []byte, by int) []byte {
		binary.LittleEndian.PutUint64(image[heaps[heap]:], wordOf(good, uint64(heaps[heap]))+uint64(by))
		return image
	}
	run := func(at, n uint64, bytes ...byte) []byte {
		words := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at), n)
		return append(words, append(bytes, make([]byte, int(n)-len(bytes))...)...)
	}
	second := runs[1]
	end := func(i int) uint64 { return wordOf(good, uint64(second[i])) + wordOf(good, uint64(second[i]+8)) }
	refused("a run in free bytes", grown(1, slices.Insert(slices.Clone(good), second[1], run(end(0), 16)...), 32))
	refused("bytes in free bytes", grown(1, slices.Insert(slices.Clone(good), second[1], run(end(0), 16, 1, 2, 3)...),
		32))
	refused("an empty run", grown(1, slices.Insert(slices.Clone(good), second[1], run(end(0), 0)...), 16))
	longer := slices.Insert(slices.Clone(good), second[1], make([]byte, 16)...)
	binary.LittleEndian.PutUint64(longer[second[0]+8:], wordOf(good, uint64(second[0]+8))+16)
	refused("a run with free bytes", grown(1, longer, 16))
	split := slices.Insert(slices.Clone(good), second[0]+16+512,
		run(512, wordOf(good, uint64(second[0]+8))-512)[:16]...)
	binary.LittleEndian.PutUint64(split[second[0]+8:], 512)
	refused("a run in two", grown(1, split, 16))
	refused("no first run", grown(1, slices.Delete(slices.Clone(good), second[0], second[1]), second[0]-second[1]))
	refused("a run is missing", grown(1, slices.Delete(slices.Clone(good), second[1], second[2]), second[1]-second[2]))
	turned := slices.Concat(good[:second[1]], good[second[2]:second[3]], good[second[1]:second[2]], good[second[3]:])
	refused("two runs change places", turned)
	refused("a run twice", grown(1, slices.Insert(slices.Clone(good), second[2], good[second[1]:second[2]]...),
		second[2]-second[1]))
	refused("a heap is missing", good[:heaps[1]])
	refused("the first heap is missing", slices.Delete(slices.Clone(good), heaps[0], heaps[1]))
	refused("no heap", good[:fixed])
	refused("a heap twice", append(slices.Clone(good), good[heaps[1]:]...))
	refused("two heaps change places", slices.Concat(good[:fixed], good[heaps[1]:], good[heaps[0]:heaps[1]]))
	for n := 1; n < len(good); n += 1 + n/20 {
		refused("short", good[:len(good)-n])
	}
	for _, n := range []int{1, 8, 16, 32, 4096} {
		refused("long", append(slices.Clone(good), make([]byte, n)...))
	}
	for at := fixed; at < len(good); at += 1 + r.IntN(20) {
		image := slices.Clone(good)
		image[at] ^= 1 << r.IntN(8)
		hostile := withImage(file, len(good), image)
		binary.LittleEndian.PutUint64(hostile[24:], 2)
		number, err := ring.Read(bytes.NewReader(resum(hostile)))
		if err == nil {
			require.EqualValues(t, 2, number)
			require.Equal(t, image, save.Image(ring, 2))
			require.NoError(t, ring.Restore(background, 2))
			for _, p := range list {
				_, code := p.header().Walk(nil)
				require.Zero(t, code)
			}
			require.NoError(t, ring.Take(3))
			require.Equal(t, hash(t, ring, 2), hash(t, ring, 3))
			require.NoError(t, ring.Restore(background, 1))
		} else {
			require.ErrorContains(t, err, "save: a file for region room, byte ")
		}
	}
	require.NoError(t, readAgain(ring, file))
	require.Equal(t, before[0], heldBy(t, ring)[0])
}

// TestPackedForgedDescriptions: a description with heaps that no state has is refused with a byte.
func TestPackedForgedDescriptions(t *testing.T) {
	list := played(t, packedHeap{100, 8 << 10, 8 << 10}, packedHeap{0, 16 << 10, 16 << 10})
	ring := list[0].ring
	file := written(t, ring, 1)
	size := binary.LittleEndian.Uint64(file[8:])
	text := string(file[56:][:size])
	const own = `"heaps":[{"offset":128,"size":8192},{"offset":8320,"size":16384}]`
	require.Contains(t, text, own)
	forged := func(heaps string) []byte {
		text := strings.Replace(text, own, heaps, 1)
		forged := slices.Concat(file[:56], []byte(text), file[56+size:])
		binary.LittleEndian.PutUint64(forged[8:], uint64(len(text)))
		binary.LittleEndian.PutUint64(forged[32:], save.FingerprintOf(text))
		return resum(forged)
	}
	_, err := save.ReadFile(bytes.NewReader(forged(own)))
	require.NoError(t, err)
	require.NoError(t, readAgain(ring, forged(own)))
	heap := func(offset, size any) string { return fmt.Sprintf(`{"offset":%v,"size":%v}`, offset, size) }
	_, err = save.ReadFile(bytes.NewReader(forged(`"heaps":[` + heap(128, 8192) + "," + heap(8304, 16384) + "]")))
	require.ErrorContains(t, err, "a heap of 16384 bytes at byte 8304 of ")
	for _, heaps := range [][]string{
		nil,
		{heap(128, 8192)},
		{heap(8320, 16384), heap(128, 8192)},
		{heap(128, 8193), heap(8321, 16383)},
		{heap(120, 8192), heap(8320, 16384)},
		{heap(128, 8208), heap(8320, 16384)},
		{heap(128, 8192), heap(128, 8192)},
		{heap(128, 0), heap(128, 24576)},
		{heap(128, 8192), heap(8320, 1<<30)},
		{heap(128, uint64(math.MaxUint64-127)), heap(0, 16)},
		{heap(uint64(1<<63), 16), heap(uint64(1<<63), uint64(1<<63))},
		{heap(uint64(math.MaxUint64-15), 32)},
		{heap(0, uint64(math.MaxUint64-15))},
		{heap(-1, 16)},
		{heap(0.5, 16)},
		{"null"},
		{heap(0, 24704+8192)},
		{heap(0, 64), heap(64, 64), heap(128, 24576)},
	} {
		hostile := forged(`"heaps":[` + strings.Join(heaps, ",") + `]`)
		what := strings.Join(heaps, ",")
		_, err := ring.Read(bytes.NewReader(hostile))
		require.ErrorContains(t, err, "save: a file for region room, byte ", what)
		_, err = save.ReadFile(bytes.NewReader(hostile))
		require.ErrorContains(t, err, "save: a file, byte ", what)
		require.ErrorContains(t, save.Show(io.Discard, bytes.NewReader(hostile)), "save: a file, byte ", what)
		_, _, err = save.DiffFiles(bytes.NewReader(file), bytes.NewReader(hostile), nil)
		require.ErrorContains(t, err, "B: save: a file, byte ", what)
	}
}

type (
	cellar struct {
		Tick  uint64
		Head  arena.Ptr[barrel]
		Names arena.Slice[place]
	}
	barrel struct {
		Next arena.Ptr[barrel]
		Age  uint32
		Lid  lamp
	}
)

var cellarMaker = scope.Plain[cellar]()

// TestPackedDiff: Diff and DiffFiles name the fields of values in a heap's blocks, and Show lists
// the heap.
func TestPackedDiff(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	var root *cellar
	var heap arena.Heap
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		var state *save.State
		var err error
		state, root = save.Begin(r, s, cellarMaker)
		heap, err = arena.NewHeap(s.BytesUnzeroed(8<<10, 64), 16)
		require.NoError(t, err)
		heap.MayLive()
		state.Heap(heap, 4<<10)
		ring = save.NewRing(s, 3, state)
	})
	base := b.Region("level").Base()
	barrels, places := arena.HeapOf[barrel](nil), arena.HeapOf[place](nil)
	first := barrels.New(heap)
	first.Age = 7
	root.Head = arena.PtrTo(base, first)
	ways := places.Slice(heap, 5)
	root.Names = arena.SliceOf(base, ways)
	require.NoError(t, ring.Take(1))
	differ := func(a, b uint64) string {
		d, isOther, err := ring.Diff(a, b)
		require.NoError(t, err)
		fromFiles, again, err := save.DiffFiles(bytes.NewReader(written(t, ring, a)),
			bytes.NewReader(written(t, ring, b)), nil)
		require.NoError(t, err)
		require.Equal(t, isOther, again)
		require.Equal(t, d, fromFiles)
		return d.String()
	}
	require.NoError(t, ring.Take(2))
	assert.Equal(t, "equal", differ(1, 2))
	first.Age++
	require.NoError(t, ring.Take(2))
	assert.Contains(t, differ(1, 2), "region level: cellar.Head.Age: 7 in A, 8 in B (uint32 of save_test.barrel; "+
		"offset ")
	first.Age--
	ways[3].Y = 1.5
	require.NoError(t, ring.Take(2))
	assert.Contains(t, differ(1, 2), "region level: cellar.Names[3].Y: 0 in A, 1.5 in B (float32 of "+
		"save_test.place; offset ")
	ways[3].Y = 0
	other := barrels.New(heap)
	require.NoError(t, ring.Take(2))
	assert.Regexp(t, "^region level: (offset|uint8)", differ(1, 2), "the heap's own words come first")
	require.NoError(t, heap.Free(unsafe.Pointer(other)))
	var text bytes.Buffer
	require.NoError(t, save.Show(&text, bytes.NewReader(written(t, ring, 1))))
	assert.Regexp(t, `\n  offset \S+ +arena.Heap +8192 bytes, saved without its free bytes\n`, text.String())
	// a link into bytes of the heap that no block has
	image := save.Flat(ring, 1)
	require.NoError(t, save.Hold(ring, 3, image))
	from := save.ControlOf(ring).From
	others := uint64(uintptr(unsafe.Pointer(&ways[0])) - uintptr(unsafe.Pointer(first)))
	for by := uint64(16); by < 4000; by += 16 {
		binary.LittleEndian.PutUint64(image[from+8:], *(*uint64)(unsafe.Pointer(&root.Head))+by)
		if err := save.Hold(ring, 3, image); by != others {
			require.ErrorContains(t, err, "region level, ", "%d bytes on", by)
		}
	}
}

// TestPackedLibrary: a snapshot from outside of a heap that a library fills needs Authenticated. In
// its process it works like any other.
func TestPackedLibrary(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		b := open(t, twoRegions())
		var ring *save.Ring
		var heap arena.Heap
		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			state, _ := save.Begin(r, s, matchMaker)
			clear(s.BytesUnzeroed(100, 8))
			own, err := arena.NewHeap(s.BytesUnzeroed(4<<10, 64), 0)
			require.NoError(t, err)
			heap, err = arena.NewHeap(s.BytesUnzeroed(4<<10, 64), 16)
			require.NoError(t, err)
			heap.MayLive()
			state.Library(heap, 4<<10)
			state.Heap(own, 4<<10)
			if trusted {
				state.Authenticated()
			}
			ring = save.NewRing(s, 3, state)
		})
		require.NoError(t, ring.Take(1))
		p := (*uintptr)(heap.Alloc(8, 16))
		*p = uintptr(unsafe.Pointer(p))
		require.NoError(t, ring.Take(2))
		delta, err := ring.Delta(nil, 1, 2)
		require.NoError(t, err)
		require.NoError(t, ring.Restore(background, 1))
		_, err = heap.SizeOf(unsafe.Pointer(p))
		require.Error(t, err)
		require.NoError(t, ring.Restore(background, 2))
		require.NoError(t, ring.Restore(background, 2))
		assert.Equal(t, uintptr(unsafe.Pointer(p)), *p)
		_, err = ring.Apply(delta)
		again := readAgain(ring, written(t, ring, 2))
		if trusted {
			require.NoError(t, err)
			require.NoError(t, again)
			continue
		}
		for _, err := range []error{err, again} {
			require.ErrorContains(t, err, "region level, byte 0x1080 of the state: arena.Heap: the library's data "+
				"in it has addresses, which can't be checked; Take and Restore work; to take snapshots from "+
				"outside, check a signature of them, and call State.Authenticated in the load")
		}
	}
}
