package blob_test

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
)

// A struct that embeds a Link inherits its methods, but isn't a Link: the fields next to the Link
// are also checked.
func TestEmbeddedLink(t *testing.T) {
	type node struct {
		blob.Link[Vec]
		Name blob.Str
		Lit  bool
		_    [3]byte
	}
	nodes := blob.Of[node]()
	w := nodes.Writer(aligned(256))
	data, err := w.Finish(blob.Put(w, node{Lit: true}))
	require.NoError(t, err)
	words := unsafe.Slice((*uint32)(unsafe.Pointer(&data[0])), len(data)/4)
	words[9], words[10] = 1<<30, 100
	resum(data)
	_, _, err = nodes.Verify(data, make([]byte, 1024))
	assert.ErrorContains(t, err, "blob: node.Name at 36 leads to 100 uint8 at 1073741824;")
}

// A union is checked where a link leads to it. Inside a struct that isn't one of its variants, a
// union has no variant to check.
func TestUnionAsPart(t *testing.T) {
	type named struct{ Do Step }
	type several struct{ Do [2]Step }
	type unlisted struct {
		Step
		What blob.Str
	}
	type none struct{ Do nothing }
	type inside struct{ In struct{ Do Step } }
	assert.PanicsWithValue(t, "blob: none has 0 bytes; a node has 1 at least, and less than 2 GiB", func() {
		blob.Of[none]()
	})
	for name, of := range map[string]func(){
		"named.Do": func() { blob.Of[named]() }, "several.Do": func() { blob.Of[several]() },
		"unlisted.Step": func() {
			blob.Of[unlisted]()
		}, "struct { Do blob_test.Step }.Do": func() { blob.Of[inside]() },
	} {
		assert.PanicsWithValue(t, "blob: "+name+": a union blob_test.Step by value has no room for its variants: "+
			"use a Link, or a variant", of)
	}
}

// A text of types with more lines at its end is refused, without an index out of range.
func TestForeignTypesThatGoOn(t *testing.T) {
	for _, more := range []string{"\n", "\n\n", "\t", "\t\n", "\nx"} {
		_, _, err := verify(withTypes(t, func(text string) string { return text + more }))
		assert.ErrorContains(t, err, "blob: of other types: ", "%q", more)
	}
}

// A text of types of any length is refused without a copy of it.
func TestForeignTypesThatAreLong(t *testing.T) {
	data := withTypes(t, func(text string) string { return text + strings.Repeat("\n", 8<<20) })
	scratch := make([]byte, blob.ScratchSize(data))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := rooms.Verify(data, scratch)
	runtime.ReadMemStats(&after)
	assert.ErrorContains(t, err, "blob: of other types: ")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func withTypes(t testing.TB, change func(text string) string) []byte {
	good := made(t)
	header := unsafe.Slice((*uint32)(unsafe.Pointer(&good[0])), 8)
	text := change(string(good[header[5]:]))
	data := aligned(int(header[5]) + len(text))
	copy(data[copy(data, good[:header[5]]):], text)
	(*[8]uint32)(unsafe.Pointer(&data[0]))[1] = uint32(len(data))
	resum(data)
	return data
}

func TestRootsThatAreNoStructs(t *testing.T) {
	w := blob.Of[[4]int32]().Writer(aligned(256))
	data, err := w.Finish(blob.Put(w, [4]int32{1}))
	require.NoError(t, err)
	_, _, err = blob.Of[[2]float64]().Verify(data, make([]byte, 64))
	assert.ErrorContains(t, err, `here "[2]float64", there "[4]int32"`)
}

type nothing struct{}

func (nothing) Variants() []any { return nil }

type small struct{ Tag blob.Tag }

func (small) Variants() []any { return []any{large{}} }

type large struct {
	small
	Lit [1 << 16]bool
}

// A size that doesn't fit in 32 bits isn't negative.
func TestScratchSizeOfMany(t *testing.T) {
	data := aligned(400 << 20)
	copy(data[24:], "\xff\xff\xff\xff")
	want := 8 + 100<<20*12 + uint64(4<<28)
	if want > math.MaxInt {
		want = 0
	}
	assert.Equal(t, want, uint64(blob.ScratchSize(data)))
}

func TestOverlapOfVariants(t *testing.T) {
	type list struct {
		Of blob.Array[blob.Link[small]]
	}
	w := blob.Of[list]().Writer(aligned(1 << 18))
	larges := blob.VariantOf[small, large]()
	links := make([]blob.Link[small], 10000)
	first := blob.PutAs(w, larges, large{})
	blob.Put(w, large{})
	for i := range links {
		links[i] = first
		*(*uint32)(unsafe.Pointer(&links[i])) += 4 * uint32(i)
	}
	_, err := w.Finish(blob.Put(w, list{blob.PutAll(w, links...)}))
	assert.ErrorContains(t, err, "overlaps other nodes")
}

// A writer that computes the places in Verify's table could make each search long.
func TestPlacedToCollide(t *testing.T) {
	type lit struct {
		Lit bool
		_   [3]byte
	}
	type list struct {
		Of blob.Array[blob.Link[lit]]
	}
	lists := blob.Of[list]()
	const most, turns = 300, 10
	for _, c := range []struct {
		nodes int
		err   string
	}{{200, ""}, {most, "nodes that were placed to collide"}} {
		w := lists.Writer(aligned(4 << 20))
		all := blob.PutAll(w, make([]lit, 1<<19)...)
		var links []blob.Link[lit]
		for i := 0; len(links) < c.nodes; i++ {
			link := blob.At(all, i)
			if offset := *(*uint32)(unsafe.Pointer(&link)); blob.Place(offset, turns) == 0 {
				links = append(links, link)
			}
		}
		for range 1 << 18 {
			links = append(links, links[c.nodes-1])
		}
		data, err := w.Finish(blob.Put(w, list{blob.PutAll(w, links...)}))
		if c.err == "" {
			require.NoError(t, err)
			_, _, err = lists.Verify(data, make([]byte, blob.ScratchSize(data)))
			require.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, c.err)
		}
	}
}

func bare(t testing.TB) []byte { return withTypes(t, func(string) string { return "" }) }

// TestBare: a bare blob is the full one without the text of its types, and is checked like it.
// Other types are refused by the fingerprint.
func TestBare(t *testing.T) {
	full := made(t)
	assert.False(t, blob.IsBare(full))
	assert.False(t, blob.IsBare(full[:31]))
	bare := bare(t)
	assert.True(t, blob.IsBare(bare))
	assert.Len(t, bare, int((*[8]uint32)(unsafe.Pointer(&full[0]))[5]))
	hall, b, err := verify(bare)
	require.NoError(t, err)
	assert.Equal(t, "hall", hall.Name.Get(b))

	print := &(*[4]uint64)(unsafe.Pointer(&bare[0]))[1]
	*print++
	resum(bare)
	_, _, err = verify(bare)
	assert.ErrorContains(t, err, "blob: of other types: here Room has the fingerprint ")
	*print--
	for at := 32; at < len(bare); at += 4 { // its links are checked
		word := (*uint32)(unsafe.Pointer(&bare[at]))
		was := *word
		if *word = 1 << 31; was != 0 {
			resum(bare)
			_, _, err = verify(bare)
			other := aligned(len(full))
			copy(other[copy(other, full[:32]):], bare[32:])
			copy(other[len(bare):], full[len(bare):])
			resum(other)
			_, _, of := verify(other)
			assert.Equal(t, of == nil, err == nil, at)
		}
		*word = was
	}

	w := rooms.Writer(aligned(100))
	w.Bare()
	one, err := w.Finish(blob.Put(w, Room{}))
	require.NoError(t, err, "what would not fit with its types")
	assert.True(t, blob.IsBare(one))
	assert.Equal(t, len(one), w.Size())
	_, _, err = verify(one)
	require.NoError(t, err)
}
