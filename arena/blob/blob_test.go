package blob_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
)

type Vec struct{ X, Y float32 }

type Room struct {
	Name   blob.Str
	Exits  blob.Array[blob.Link[Room]]
	Things blob.Array[Thing]
	First  blob.Link[Step]
	At     Vec
	Gates  [2]Gate
	Depth  int32
	Lit    bool
	_      [3]byte
}

type Gate struct {
	To   blob.Link[Room]
	Open bool
	_    [3]byte
}

type Thing struct {
	ID   uint64
	Kind uint32
	In   blob.Link[Room]
}

// Step is a union of Say and Go.
type Step struct {
	Tag  blob.Tag
	Next blob.Link[Step]
}

func (Step) Variants() []any { return []any{Say{}, Go{}} }

type Say struct {
	Step
	What blob.Str
}

type Go struct {
	Step
	To    blob.Link[Room]
	Ticks [3]int16
	_     [2]byte
}

var (
	rooms = blob.Of[Room]()
	says  = blob.VariantOf[Step, Say]()
	goes  = blob.VariantOf[Step, Go]()
)

func aligned(n int) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// pond writes a small world: two rooms that lead to each other, items, and steps of both kinds.
func pond(block []byte) ([]byte, error) {
	w := rooms.Writer(block)
	hall := blob.Put(w, Room{})
	cellar := blob.Put(w, Room{Name: w.Str("cellar"), Depth: -1, At: Vec{3, 4}, Exits: blob.PutAll(w, hall)})
	say := blob.PutAs(w, says, Say{What: w.Str("it is dark")})
	walk := blob.PutAs(w, goes, Go{Step: Step{Next: say}, To: cellar, Ticks: [3]int16{1, 2, 3}})
	things := blob.PutAll(w, Thing{ID: 7, In: hall}, Thing{ID: 8, Kind: 2, In: cellar})
	blob.Set(w, hall, Room{
		Name: w.Str("hall"), Exits: blob.PutAll(w, cellar, hall, cellar), Things: things, First: walk,
		Gates: [2]Gate{{To: cellar, Open: true}, {To: hall}}, Lit: true,
	})
	return w.Finish(hall)
}

func made(t testing.TB) []byte {
	data, err := pond(aligned(4096))
	require.NoError(t, err)
	return data
}

func verify(data []byte) (*Room, blob.Blob, error) {
	return rooms.Verify(data, make([]byte, blob.ScratchSize(data)))
}

func TestRoundTrip(t *testing.T) {
	data := made(t)
	moved := aligned(len(data)) // a blob works at any multiple of 8
	copy(moved, data)
	hall, b, err := verify(moved)
	require.NoError(t, err)
	assert.Equal(t, "hall", hall.Name.Get(b))
	require.Equal(t, 3, hall.Exits.Len())
	cellar := hall.Exits.Get(b)[0].Get(b)
	assert.Equal(t, "cellar", cellar.Name.Get(b))
	assert.Equal(t, Vec{3, 4}, cellar.At)
	assert.Same(t, hall, cellar.Exits.Get(b)[0].Get(b), "a circle")
	assert.Same(t, cellar, hall.Gates[0].To.Get(b))
	assert.True(t, hall.Gates[0].Open)
	assert.Equal(t, uint64(8), hall.Things.Get(b)[1].ID)
	walk := hall.First.Get(b)
	require.Nil(t, says.Of(walk))
	assert.Same(t, cellar, goes.Of(walk).To.Get(b))
	say := walk.Next.Get(b)
	assert.Equal(t, "it is dark", says.Of(say).What.Get(b))
	assert.Nil(t, goes.Of(nil))
	assert.Nil(t, say.Next.Get(b))
	assert.Empty(t, cellar.Things.Get(b))
	assert.Empty(t, blob.Str{}.Get(b))
	assert.Equal(t, 4, hall.Name.Len())
	assert.Zero(t, blob.ScratchSize(nil))
}

// The bytes are the same on every target: this sum was computed on amd64.
func TestSameBytesEverywhere(t *testing.T) {
	assert.Equal(t, uint32(0x7a331b03), crc32.ChecksumIEEE(made(t)))
}

func TestSizeIsEnough(t *testing.T) {
	whole := len(made(t))
	for n := range whole {
		_, err := pond(aligned(n))
		require.ErrorContains(t, err, fmt.Sprintf("needs %d bytes, the block has %d", whole, n),
			"exact, however little there was")
	}
	_, err := pond(aligned(whole))
	require.NoError(t, err)
}

type (
	gap    struct{ List blob.Array[gapped] }
	gapped struct {
		A int32
		B int64
	}
	short struct {
		A int64
		B int8
	}
	word     struct{ In [2]struct{ N int } }
	pointer  struct{ Name string }
	empty    struct{}
	noTag    struct{ N int32 }
	headless struct{ Tag blob.Tag }
	bodies   struct{ All blob.Array[Step] }
	grid     struct{ All [2][2]blob.Str }
)

func (noTag) Variants() []any    { return nil }
func (headless) Variants() []any { return []any{Vec{}} }

func TestRefusedTypes(t *testing.T) {
	const padding = " has padding before it, which isn't the same on every target: put the larger fields first, or " +
		"a field _ [n]byte there"
	for want, of := range map[string]func(){
		"gapped.B" + padding: func() { blob.Of[gap]() },
		"short has padding at its end: add a field _ [n]byte": func() {
			blob.Of[short]()
		},
		"struct { N int }.N is an int, whose size isn't the same on every target: use int32 or int64": func() {
			blob.Of[word]()
		},
		"pointer.Name (string) holds a Go pointer; use blob.Link, blob.Array or blob.Str": func() {
			blob.Of[pointer]()
		},
		"empty has 0 bytes; a node has 1 at least, and less than 2 GiB": func() {
			blob.Of[empty]()
		},
		"noTag has variants: its first field must be a blob.Tag": func() {
			blob.Of[noTag]()
		},
		"blob_test.Vec is a variant of headless: its first field must be a headless": func() {
			blob.Of[headless]()
		},
		"bodies.All: an Array of blob_test.Step, whose variants differ in size; use one of Links": func() {
			blob.Of[bodies]()
		},
		"grid.All is an array of arrays whose elements must be checked: make the inner array a struct": func() {
			blob.Of[grid]()
		},
	} {
		assert.PanicsWithValue(t, "blob: "+want, of)
	}
}

func TestBugs(t *testing.T) {
	assert.PanicsWithValue(t, "blob: blob_test.Vec is no variant of blob_test.Step", func() {
		blob.VariantOf[Step, Vec]()
	})
	w := rooms.Writer(aligned(64))
	for want, bug := range map[string]func(){
		"Put of a int16, which no field of Room leads to": func() { blob.Put(w, int16(1)) },
		"a zero Variant of blob_test.Say; VariantOf makes one": func() {
			blob.PutAs(w, blob.Variant[Step, Say]{}, Say{})
		},
		"Set of a blob_test.Room that wasn't put here": func() {
			blob.Set(w, blob.Link[Room]{}, Room{})
		},
		"the block must begin at a multiple of 8, and this one begins 4 past one": func() {
			rooms.Writer(aligned(64)[4:])
		},
		"a zero Format of blob_test.Room; Of makes one": func() { blob.Format[Room]{}.Writer(nil) },
		"At 2 of an Array of 2":                         func() { blob.At(blob.PutAll(w, Vec{}, Vec{}), 2) },
	} {
		assert.PanicsWithValue(t, "blob: BUG: "+want, bug)
	}
}

func TestRefusedBytes(t *testing.T) {
	type Room struct{ Name, Title blob.Str }
	other := blob.Of[Room]()
	w := other.Writer(aligned(256))
	foreign, err := w.Finish(blob.Put(w, Room{Name: w.Str("x")}))
	require.NoError(t, err)
	good := made(t)
	changed := func(at int, with byte) []byte {
		data := aligned(len(good))
		copy(data, good)
		data[at] = with
		return data
	}
	swapped := changed(0, good[3])
	copy(swapped[1:], []byte{good[2], good[1], good[0]})
	for want, data := range map[string][]byte{
		"31 bytes are no blob: its header alone has 32":                            good[:31],
		"cut off: 500 bytes of 604 are there":                                      good[:500],
		"not a blob: it begins with \"\\x00LB1\"":                                  changed(0, 0),
		"of the other byte order; blobs are little-endian":                         swapped,
		"damaged: its types begin at byte 65288 of 604":                            changed(21, 0xff),
		"the bytes begin 4 past a multiple of 8; read them to a block":             good[4:],
		"of other types: here \"Exits []*Room\", there \"Title str\", in \"Room\"": foreign,
	} {
		_, _, err := rooms.Verify(data, make([]byte, 1<<16))
		assert.EqualError(t, err, "blob: "+want)
	}
	_, _, err = rooms.Verify(good, nil)
	assert.ErrorContains(t, err, "bytes of scratch, as ScratchSize says, and has 0")
}

func TestRefusedFields(t *testing.T) {
	const between = "; nodes are between 32 and 264, these at multiples of "
	for want, spoil := range map[string]func(hall *Room, b blob.Blob, words []uint32){
		"Room.Lit at 88 is the bool 7": func(hall *Room, _ blob.Blob, _ []uint32) {
			*(*byte)(unsafe.Pointer(&hall.Lit)) = 7
		},
		"Room.First at 56 leads to 1 Step at 4" + between + "4": func(hall *Room, _ blob.Blob, _ []uint32) {
			*(*uint32)(unsafe.Pointer(&hall.First)) = 4
		},
		"Room.First at 56 leads to 1 Step at 2147483648" + between + "4": func(hall *Room, _ blob.Blob, _ []uint32) {
			*(*uint32)(unsafe.Pointer(&hall.First)) = 1 << 31
		},
		"Step at 192 is its variant 2; there are 2": func(hall *Room, b blob.Blob, _ []uint32) {
			hall.First.Get(b).Tag = 2
		},
		"Say.What at 200 leads to 131073 uint8 at 104" + between + "1": func(hall *Room, b blob.Blob, _ []uint32) {
			hall.First.Get(b).Tag = 0
		},
		"no root": func(_ *Room, _ blob.Blob, words []uint32) { words[4] = 0 },
		"Room.Exits at 112 leads to node 7, the header says that there are 6": func(_ *Room, _ blob.Blob, w []uint32) {
			w[6]--
		},
	} {
		data := made(t)
		hall, b, err := verify(data)
		require.NoError(t, err)
		spoil(hall, b, unsafe.Slice((*uint32)(unsafe.Pointer(&data[0])), len(data)/4))
		resum(data)
		_, _, err = verify(data)
		assert.EqualError(t, err, "blob: "+want)
	}
	type direct struct{ To blob.Link[Say] }
	w := blob.Of[direct]().Writer(aligned(512))
	_, err := w.Finish(blob.Put(w, direct{blob.Put(w, Say{Step: Step{Tag: 1}})}))
	assert.EqualError(t, err, "blob: Say at 32 has the tag 1, not its 0")
}

func TestArraysInNodes(t *testing.T) {
	type crowd struct {
		Few   [3]Gate
		Many  [100]Gate
		Names [100]blob.Str
		Lit   [100]bool
		Deep  [2]struct{ In [40]struct{ Ways [2]Gate } }
	}
	crowds := blob.Of[crowd]()
	w := crowds.Writer(aligned(1 << 14))
	data, err := w.Finish(blob.Put(w, crowd{}))
	require.NoError(t, err)
	root, _, err := crowds.Verify(data, make([]byte, blob.ScratchSize(data)))
	require.NoError(t, err)
	refused := func(field unsafe.Pointer, with []byte, want string) {
		at := uintptr(field) - uintptr(unsafe.Pointer(&data[0]))
		copy(data[at:], with)
		resum(data)
		_, _, err := crowds.Verify(data, make([]byte, blob.ScratchSize(data)))
		require.ErrorContains(t, err, fmt.Sprintf("blob: "+want, at))
		clear(data[at:][:len(with)])
	}
	for i := range len(root.Few) + len(root.Many) {
		gate := &root.Few[min(i, 2)]
		if i >= len(root.Few) {
			gate = &root.Many[i-len(root.Few)]
		}
		refused(unsafe.Pointer(&gate.To), []byte{4}, "Gate.To at %d leads to 1 Room at 4;")
		refused(unsafe.Pointer(&gate.Open), []byte{2}, "Gate.Open at %d is the bool 2")
	}
	for i := range root.Deep {
		for j := range root.Deep[i].In {
			gate := &root.Deep[i].In[j].Ways[1]
			refused(unsafe.Pointer(&gate.To), []byte{4}, "Gate.To at %d leads to 1 Room at 4;")
		}
	}
	for i := range root.Names {
		text := []byte{1, 0, 0, 0, 2}
		refused(unsafe.Pointer(&root.Names[i]), text, "crowd.Names at %d leads to 2 uint8 at 1;")
		refused(unsafe.Pointer(&root.Lit[i]), []byte{2}, "crowd.Lit at %d is the bool 2")
	}
}

// TestOverlap: a blob whose arrays overlap would take quadratic work, and is refused.
func TestOverlap(t *testing.T) {
	type list struct {
		Of blob.Array[blob.Array[blob.Link[Vec]]]
	}
	lists := blob.Of[list]()
	w := lists.Writer(aligned(1 << 16))
	many := make([]blob.Array[blob.Link[Vec]], 2000)
	all := blob.PutAll(w, many...)
	wide := blob.PutAll(w, make([]blob.Link[Vec], len(many))...)
	words := (*[2]uint32)(unsafe.Pointer(&wide))
	for i := range many {
		blob.Set(w, blob.At(all, i), wide)
		words[1]-- // a shorter array at the same offset
	}
	_, err := w.Finish(blob.Put(w, list{all}))
	assert.ErrorContains(t, err, "overlaps other nodes")
}

// resum updates the header after a change, so that Verify reaches the links.
func resum(data []byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, data[:28])
	binary.LittleEndian.PutUint32(data[28:], crc32.Update(sum, table, data[32:]))
}

// follower reads all nodes and texts of a blob, and checks that they are inside its bytes.
type follower struct {
	t    testing.TB
	data []byte
	b    blob.Blob
	seen map[unsafe.Pointer]bool
	sum  uint64
}

func (f *follower) inside(p unsafe.Pointer, size uintptr) bool {
	from := uintptr(p) - uintptr(unsafe.Pointer(&f.data[0]))
	require.True(f.t, from <= uintptr(len(f.data)) && size <= uintptr(len(f.data))-from, "%d bytes at %d", size, from)
	first := !f.seen[p]
	f.seen[p] = true
	return first
}

func (f *follower) text(s blob.Str) {
	for _, c := range []byte(s.Get(f.b)) {
		f.sum += uint64(c)
	}
}

func (f *follower) room(r *Room) {
	if r == nil || !f.inside(unsafe.Pointer(r), unsafe.Sizeof(*r)) {
		return
	}
	f.text(r.Name)
	for _, e := range r.Exits.Get(f.b) {
		f.room(e.Get(f.b))
	}
	for _, thing := range r.Things.Get(f.b) {
		f.sum += thing.ID
		f.room(thing.In.Get(f.b))
	}
	for _, d := range r.Gates {
		if d.Open {
			f.sum++
		}
		f.room(d.To.Get(f.b))
	}
	f.step(r.First.Get(f.b))
}

func (f *follower) step(s *Step) {
	if s == nil || !f.inside(unsafe.Pointer(s), unsafe.Sizeof(*s)) {
		return
	}
	f.step(s.Next.Get(f.b))
	say, walk := says.Of(s), goes.Of(s)
	switch {
	case say != nil:
		f.inside(unsafe.Pointer(say), unsafe.Sizeof(*say))
		f.text(say.What)
	case walk != nil:
		f.inside(unsafe.Pointer(walk), unsafe.Sizeof(*walk))
		f.room(walk.To.Get(f.b))
	default:
		f.t.Fatal("a tag that no variant has", s.Tag)
	}
}

func followAll(t testing.TB, data []byte) error {
	root, b, err := verify(data)
	if err == nil {
		f := follower{t: t, data: data, b: b, seen: map[unsafe.Pointer]bool{}}
		f.room(root)
	}
	return err
}

// TestEachByteChanged gives each byte some other values: Verify refuses the blob, or all its links
// are safe.
func TestEachByteChanged(t *testing.T) {
	good := made(t)
	data := aligned(len(good))
	refused := 0
	for i := range good {
		for _, with := range []byte{0, 1, 2, 3, 7, 8, 16, 24, 0x7f, 0x80, 0xff, good[i] + 1, good[i] + 4, good[i] - 8} {
			copy(data, good)
			data[i] = with
			if with != good[i] {
				_, _, err := verify(data)
				require.Error(t, err, "the checksum sees it")
			}
			resum(data)
			if err := followAll(t, data); err != nil {
				require.True(t, strings.HasPrefix(err.Error(), "blob: "), err)
				refused++
			}
		}
	}
	assert.Greater(t, refused, 1000)
}

func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := rooms.Writer(aligned(1 << 16))
		n := 1 + r.IntN(40)
		all := make([]blob.Link[Room], n)
		for i := range all {
			all[i] = blob.Put(w, Room{})
		}
		for i, at := range all {
			var exits []blob.Link[Room]
			for range r.IntN(5) {
				exits = append(exits, all[r.IntN(n)])
			}
			blob.Set(w, at, Room{Name: w.Str(fmt.Sprint("room ", i)), Exits: blob.PutAll(w, exits...), Depth: int32(i)})
		}
		data, err := w.Finish(all[0])
		require.NoError(t, err)
		require.NoError(t, followAll(t, data))
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(made(f))
	f.Add(bare(f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		data := aligned(len(raw))
		copy(data, raw)
		good := made(t)
		if len(data) >= 32 { // types and sum are right, so that more inputs pass the first checks
			binary.LittleEndian.PutUint32(data[4:], uint32(len(data)))
			copy(data[8:16], good[8:16])
			resum(data)
		}
		_ = followAll(t, data)
	})
}

func TestNoGoAllocation(t *testing.T) {
	data := made(t)
	scratch := make([]byte, blob.ScratchSize(data))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, _, err := rooms.Verify(data, scratch); err != nil {
			t.Error(err)
		}
	}))
}
