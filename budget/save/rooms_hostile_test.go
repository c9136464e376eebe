package save

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope/stack"
	"github.com/upfront-mem/upfront/tests/step"
)

// guardSize is a multiple of every page size.
const guardSize = arena_c.Edge

// guarded returns memory between pages that fault.
func guarded(t testing.TB) []byte {
	r, err := platform.Reserve(0, 3*guardSize, platform.Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	require.NoError(t, r.Protect(0, guardSize))
	require.NoError(t, r.Protect(2*guardSize, guardSize))
	t.Cleanup(func() {
		arena_c.Unpoison(unsafe.Add(r.Base(), guardSize), guardSize)
		require.NoError(t, r.Release())
	})
	return unsafe.Slice((*byte)(unsafe.Add(r.Base(), guardSize)), guardSize)
}

// victim is an allocator of one kind as in a state. play uses it, and then checks and closes it.
type victim struct {
	name string
	kind arena_c.RoomKind
	init func(arena_c.Room) unsafe.Pointer
	play func(p unsafe.Pointer, r *rand.Rand, steps int)
	end  func(p unsafe.Pointer)
}

var victims = []victim{
	{"heap", arena_c.RoomHeap, func(r arena_c.Room) unsafe.Pointer { return keptHeap(r, 0) }, playHeap, endHeap},
	{"heap with front lists", arena_c.RoomHeap,
		func(r arena_c.Room) unsafe.Pointer { return keptHeap(r, 16) }, playHeap, endHeap},
	{"buddy", arena_c.RoomBuddy, func(r arena_c.Room) unsafe.Pointer { return keptBuddy(r) }, playBuddy, endBuddy},
	{"ring", arena_c.RoomRing, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.RingInit(r)) },
		playRing, endRing},
	{"linear", arena_c.RoomEnds, func(r arena_c.Room) unsafe.Pointer {
		return unsafe.Pointer(arena_c.EndsInit(r))
	}, playEnds,
		func(p unsafe.Pointer) { (*arena_c.Ends)(p).Reset() }},
	{"stack", arena_c.RoomStack, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.StackInit(r)) },
		playStack, endStack},
	{"frame", arena_c.RoomFrame, func(r arena_c.Room) unsafe.Pointer {
		return unsafe.Pointer(arena_c.FrameInit(r, 3))
	}, playFrame,
		func(p unsafe.Pointer) { (*arena_c.Frame)(p).Next() }},
	{"pool", arena_c.RoomPool,
		func(r arena_c.Room) unsafe.Pointer {
			return unsafe.Pointer(arena_c.PoolMake(r, 24, 8,
				false))
		}, playPool, endPool},
	{"handles", arena_c.RoomPool,
		func(r arena_c.Room) unsafe.Pointer {
			return unsafe.Pointer(arena_c.PoolMake(r, 40, 8,
				true))
		}, playPool, endPool},
}

func keptHeap(r arena_c.Room, parked uint64) unsafe.Pointer {
	h := arena_c.HeapInit(r, parked)
	h.SetPlain()
	return unsafe.Pointer(h)
}

func keptBuddy(r arena_c.Room) unsafe.Pointer {
	b := arena_c.BuddyInit(r, 64)
	b.SetPlain()
	return unsafe.Pointer(b)
}

// write fills an allocation, at times with words that look like an allocator's.
func write(p unsafe.Pointer, size uint64) {
	b := unsafe.Slice((*byte)(p), size)
	for i := range b {
		b[i] = byte(i)
	}
}

func playHeap(p unsafe.Pointer, r *rand.Rand, steps int) {
	h := (*arena_c.Heap)(p)
	ranges := make([]arena_c.Block, 1<<12)
	var live []unsafe.Pointer
	n, _ := h.Walk(ranges)
	for _, b := range ranges[:min(n, uint64(len(ranges)))] {
		if b.Live == 1 {
			live = append(live, unsafe.Add(p, b.Offset+arena_c.HeapAlign))
		}
	}
	for range steps {
		i := r.IntN(len(live) + 1)
		size := uint64(r.IntN(1 << r.IntN(12)))
		switch {
		case i == len(live) || r.IntN(3) == 0:
			if q := h.Alloc(size, 16<<r.IntN(3)); q != nil {
				write(q, size)
				live = append(live, q)
			}
		case r.IntN(2) == 0:
			if q := h.Realloc(live[i], size); q != nil {
				write(q, size)
				live[i] = q
			}
		default:
			_ = h.Free(live[i])
			_ = h.Free(live[i])
			live = append(live[:i], live[i+1:]...)
		}
		if r.IntN(64) == 0 {
			h.Flush()
			_ = h.Largest()
			_ = h.TakePhase()
		}
	}
}

func endHeap(p unsafe.Pointer) {
	h := (*arena_c.Heap)(p)
	if _, code := h.Walk(nil); code != arena_c.OK {
		panic("the heap's walk afterwards")
	}
	h.Reset()
	_ = h.Alloc(64, 16)
}

func playBuddy(p unsafe.Pointer, r *rand.Rand, steps int) {
	b := (*arena_c.Buddy)(p)
	ranges := make([]arena_c.Block, 1<<12)
	var live []unsafe.Pointer
	n, _ := b.Walk(ranges)
	for _, x := range ranges[:n] {
		if x.Live == 1 {
			live = append(live, unsafe.Add(p, x.Offset))
		}
	}
	for range steps {
		i := r.IntN(len(live) + 1)
		size := uint64(r.IntN(1 << r.IntN(13)))
		switch {
		case i == len(live) || r.IntN(3) == 0:
			if q := b.Alloc(size, 1); q != nil {
				write(q, size)
				live = append(live, q)
			}
		case r.IntN(2) == 0:
			if q := b.Realloc(live[i], size); q != nil {
				write(q, size)
				live[i] = q
			}
		default:
			_ = b.Free(live[i])
			live = append(live[:i], live[i+1:]...)
		}
	}
}

func endBuddy(p unsafe.Pointer) {
	b := (*arena_c.Buddy)(p)
	if b.CheckAll() != arena_c.OK {
		panic("the buddy's walk afterwards")
	}
	b.Reset()
	_ = b.Largest()
}

func playRing(p unsafe.Pointer, r *rand.Rand, steps int) {
	h := (*arena_c.Ring)(p)
	for range steps {
		size, mask := uint64(r.IntN(1<<r.IntN(12))), uint64(8<<r.IntN(4)-1)
		switch r.IntN(8) {
		case 0, 1, 2:
			if q := h.Alloc(1, size, mask); q != nil {
				write(q, size)
			}
		case 3:
			if q := h.Overwrite(1, size, mask); q != nil {
				write(q, size)
			}
		case 4:
			_ = h.Room()
		default:
			if q, size := h.Front(); q != nil {
				write(q, size)
				h.Pop(1, q)
			}
		}
	}
}

func endRing(p unsafe.Pointer) {
	h := (*arena_c.Ring)(p)
	if _, code := h.Walk(nil); code != arena_c.OK {
		panic("the ring's walk afterwards")
	}
	h.Reset(1)
}

func playEnds(p unsafe.Pointer, r *rand.Rand, steps int) {
	e := (*arena_c.Ends)(p)
	var last unsafe.Pointer
	var size uint64
	for range steps {
		mask := uint64(1<<r.IntN(7) - 1)
		switch r.IntN(8) {
		case 0, 1:
			size = uint64(r.IntN(1 << r.IntN(12)))
			if last = e.PushNear(1, size, mask); last != nil {
				write(last, size)
			}
		case 2:
			n := uint64(r.IntN(1 << r.IntN(12)))
			if q := e.BumpFar(1, n, mask); q != nil {
				write(q, n)
			}
		case 3:
			if n := uint64(r.IntN(500)); last != nil && e.Resize(1, last, size, n) == arena_c.OK {
				size = n
				write(last, size)
			}
		case 4:
			e.MarkNear()
			e.MarkFar()
		case 5:
			_ = e.Rewind(1, e.Mark-uint64(r.IntN(3)))
		case 6:
			_ = e.RewindFar(1, e.FarMark+uint64(r.IntN(3)))
		default:
			_ = e.Rewind(1, r.Uint64N(guardSize))
		}
	}
}

func playStack(p unsafe.Pointer, r *rand.Rand, steps int) {
	s := (*arena_c.Stack)(p)
	for range steps {
		size, mask := uint64(r.IntN(1<<r.IntN(12))), uint64(16<<r.IntN(3)-1)
		switch r.IntN(9) {
		case 0, 1:
			if q := s.Push(1, size, mask); q != nil {
				write(q, size)
			}
		case 2, 3:
			if q := s.PushFar(1, size, mask); q != nil {
				write(q, size)
			}
		case 4:
			_ = s.Free(unsafe.Add(p, s.Last))
		case 5:
			_ = s.FreeFar(unsafe.Add(p, s.FarLast))
		case 6:
			_ = s.Padding()
		case 7:
			_ = s.Rewind(s.Cursor - min(s.Cursor, r.Uint64N(512)))
		default:
			_ = s.RewindFar(s.Limit + r.Uint64N(512))
		}
	}
}

func endStack(p unsafe.Pointer) {
	s := (*arena_c.Stack)(p)
	s.ResetFar()
	s.Reset()
}

func playFrame(p unsafe.Pointer, r *rand.Rand, steps int) {
	f := (*arena_c.Frame)(p)
	for range steps {
		if r.IntN(8) == 0 {
			f.Next()
			continue
		}
		size := uint64(r.IntN(1 << r.IntN(12)))
		if q := f.Push(f.Gen, size, 15); q != nil {
			write(q, size)
		}
	}
}

func playPool(p unsafe.Pointer, r *rand.Rand, steps int) {
	h := (*arena_c.Pool)(p)
	first, numbers := h.Bases()
	for range steps {
		i := r.Uint64N(uint64(h.Count))
		switch {
		case h.Handles != 0 && r.IntN(2) == 0:
			if q, _ := h.TakeHandle(1); q != nil {
				write(q, h.Stride)
			}
		case h.Handles != 0:
			if q := h.At(1, h.Handle(i)); q != nil {
				write(q, h.Stride)
			}
			_ = h.PutHandle(1, h.Handle(i))
		case r.IntN(2) == 0:
			if q := arena_c.Get[[24]byte](h, 1, first, numbers); q != nil {
				write(unsafe.Pointer(q), h.Stride)
			}
		default:
			_ = arena_c.Put(h, 1, first, numbers, (*[24]byte)(h.Chunk(i)))
		}
	}
}

func endPool(p unsafe.Pointer) {
	h := (*arena_c.Pool)(p)
	_ = h.Next(0)
	_ = h.Peak()
}

// hostileWord returns a position to change: a word of a header or of a block.
func hostileWord(image []byte, r *rand.Rand) uint64 {
	size := uint64(len(image))
	switch r.IntN(8) {
	case 0:
		return r.Uint64N(3)
	case 1:
		return ^r.Uint64N(3)
	case 2:
		return r.Uint64N(size) &^ 15
	case 3:
		return size + r.Uint64N(64) - 32
	case 4:
		return binary.NativeEndian.Uint64(image[r.Uint64N(size/8)*8:])
	case 5:
		return 1 << r.IntN(64)
	case 6:
		return r.Uint64N(size)
	}
	return r.Uint64()
}

// forgeHeap writes a header with a valid seal at a possible place, and at times links a list to it.
func forgeHeap(image, good []byte, r *rand.Rand) {
	h := headerOf[arena_c.Heap](good)
	at := h.First + r.Uint64N((h.End-h.First)/16+1)*16
	if at+32 > uint64(len(image)) {
		at = h.End
	}
	body := r.Uint64N(256) * 16
	if r.IntN(2) == 0 { // the existing word, changed
		body = *wordAt(image, at+8) & (1<<arena_c.HeapSealBits - 1)
	}
	if r.IntN(2) == 0 {
		body ^= 1 | r.Uint64N(64)<<38 | r.Uint64N(32)<<44
	}
	before := *wordAt(image, at) & (1<<38 - 1)
	if r.IntN(2) == 0 {
		before = r.Uint64N(256)*16 | r.Uint64N(2)
	}
	m := (at^h.Epoch)*0x9E3779B97F4A7C15 + body
	digest := (m ^ m>>32) * 0xBF58476D1CE4E5B9
	*wordAt(image, at) = before | digest&^(1<<38-1)
	*wordAt(image, at+8) = body | digest<<26&^(1<<arena_c.HeapSealBits-1)
	if r.IntN(2) == 0 && at != h.End {
		list := uint64(unsafe.Sizeof(*h)) + 8*r.Uint64N(h.Lists)
		if r.IntN(2) == 0 {
			*wordAt(image, at+16), *wordAt(image, at+24) = *wordAt(image, list), 0
		}
		if r.IntN(2) == 0 {
			*wordAt(image, list) = at
		}
	}
}

func change(v *victim, image, good []byte, r *rand.Rand) {
	header := roomKinds[v.kind].header
	for range 1 + r.IntN(3) {
		at := r.Uint64N(uint64(len(image))/8) * 8
		switch r.IntN(4) {
		case 0:
			at = r.Uint64N(header/8) * 8
		case 1:
			at = r.Uint64N((header+512)/8) * 8
		case 2:
			if v.kind == arena_c.RoomHeap {
				forgeHeap(image, good, r)
				continue
			}
			image[r.IntN(len(image))] ^= 1 << r.IntN(8)
			continue
		}
		*wordAt(image, at) = hostileWord(image, r)
	}
}

// TestHostileRooms: a block with any bytes is refused, or no call of its allocator leaves it, hangs
// or faults. The block is between pages that fault.
func TestHostileRooms(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	const size = 8192
	for i := range victims {
		v := &victims[i]
		t.Run(v.name, func(t *testing.T) {
			all, copied := guarded(t), guarded(t)
			for _, at := range []int{0, guardSize - size} { // at both edges
				block, image := all[at:][:size], copied[at:][:size]
				r := rand.New(rand.NewPCG(uint64(at), 39))
				taken, rounds := 0, step.Pick(1000, 20_000, 500_000)
				for round := range rounds {
					if round%100 == 0 { // another state that play left
						of := arena_c.RoomOf(v.kind, unsafe.Pointer(&block[0]), size)
						v.playFrom(v.init(of), r)
					}
					if v.round(t, block, image, r) {
						taken++
					}
				}
				assert.Positive(t, taken)
				assert.Less(t, taken, rounds)
			}
		})
	}
}

// playFrom leaves live blocks.
func (v *victim) playFrom(p unsafe.Pointer, r *rand.Rand) {
	v.play(p, r, r.IntN(200))
}

// round checks a changed image, and plays from it if it passes. It leaves the block as it was.
func (v *victim) round(t *testing.T, block, image []byte, r *rand.Rand) bool {
	room := &room{Room: stack.Room{Kind: v.kind, Size: uint64(len(block))}}
	arena_c.Unpoison(unsafe.Pointer(&block[0]), room.Size)
	good := append([]byte(nil), block...)
	copy(image, block)
	require.True(t, room.learn(image))
	require.NoError(t, room.check(image), "what play left")
	change(v, image, good, r)
	hostile := append([]byte(nil), image...)
	err := room.check(image)
	require.Equal(t, hostile, image, "the check changes nothing")
	if err == nil {
		copy(block, image)
		func() {
			defer func() {
				if e := recover(); e != nil {
					t.Fatalf("%s, in which %s: %v\n%s", v.name, differences(good, hostile), e, debug.Stack())
				}
			}()
			v.play(unsafe.Pointer(&block[0]), r, 60)
			v.end(unsafe.Pointer(&block[0]))
		}()
	}
	arena_c.Unpoison(unsafe.Pointer(&block[0]), room.Size)
	copy(block, good)
	return err == nil
}

// differences returns the words in which two blocks differ.
func differences(good, hostile []byte) (text string) {
	for at := uint64(0); at < uint64(len(good)); at += 8 {
		if a, b := *wordAt(good, at), *wordAt(hostile, at); a != b {
			text += fmt.Sprintf("at %#x was %#x and is %#x; ", at, a, b)
		}
	}
	return text
}

// TestRoomWords: each word of each header is fixed, checked, or free to have any value; a new word
// fails here until it is listed. A fixed or checked word refuses all other values. A free word
// accepts them, and no call leaves the block because of it.
func TestRoomWords(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	const size = 8192
	for i := range victims {
		v := &victims[i]
		t.Run(v.name, func(t *testing.T) {
			block := guarded(t)[guardSize-size:]
			r := rand.New(rand.NewPCG(1, 2))
			v.playFrom(v.init(arena_c.RoomOf(v.kind, unsafe.Pointer(&block[0]), size)), r)
			arena_c.Unpoison(unsafe.Pointer(&block[0]), size)
			room := &room{Room: stack.Room{Kind: v.kind, Size: size}}
			require.True(t, room.learn(block))
			require.NoError(t, room.check(block))
			good := append([]byte(nil), block...)
			known := map[string]bool{}
			for _, w := range wordsOf(headers[v.kind], "") {
				rule := roomWords[v.kind][w.name]
				require.NotEmpty(t, rule, "%s has no rule", w.name)
				known[w.name] = true
				for k := range 200 {
					word := hostileWord(good, r)
					if k < 64 {
						word = binary.NativeEndian.Uint64(good[w.at:]) ^ 1<<k
					}
					if w.size == 4 {
						binary.NativeEndian.PutUint32(block[w.at:], uint32(word))
					} else {
						binary.NativeEndian.PutUint64(block[w.at:], word)
					}
					isSame := bytes.Equal(good, block)
					switch err := room.check(block); {
					case isSame:
						assert.NoError(t, err)
					case rule == fixed:
						assert.ErrorContains(t, err, "always", "%s: %#x", w.name, word)
					case rule == checked && k >= 64:
						known["checked "+w.name] = known["checked "+w.name] || err != nil
					case rule != checked:
						assert.NoError(t, err, "%s may be any: %s", w.name, rule)
					}
					if room.check(block) == nil {
						v.play(unsafe.Pointer(&block[0]), r, 60)
						v.end(unsafe.Pointer(&block[0]))
					}
					arena_c.Unpoison(unsafe.Pointer(&block[0]), size)
					copy(block, good)
				}
				assert.True(t, rule != checked || known["checked "+w.name], "%s isn't checked", w.name)
			}
			for name := range roomWords[v.kind] {
				assert.True(t, known[name], "%s is no word of it", name)
			}
		})
	}
}

// Rules for words. Any other text says why a word may have any value.
const (
	fixed   = "fixed"
	checked = "checked"
)

const (
	counts = "a count, or the size of a refusal: it is told, and nothing is reckoned by it"
	places = "told, and nothing is read there"
	unused = "nobody reads it"
	nobody = "nobody reads it before it is written: it is of a call"
)

var (
	headerWords = map[string]string{"Cursor": checked, "Limit": checked, "Gen": fixed, "Asked": nobody,
		"Misused": nobody,
		"Least":   checked, "Next": fixed, "Start": fixed}
	endsWords = with(headerWords, map[string]string{"End": fixed, "High": checked, "Low": checked, "Mark": checked,
		"FarMark": checked, "Last": checked, "FarLast": checked, "Lost": counts})
)

var headers = [arena_c.RoomKinds]reflect.Type{
	arena_c.RoomHeap: reflect.TypeFor[arena_c.Heap](), arena_c.RoomBuddy: reflect.TypeFor[arena_c.Buddy](),
	arena_c.RoomRing: reflect.TypeFor[arena_c.Ring](), arena_c.RoomEnds: reflect.TypeFor[arena_c.Ends](),
	arena_c.RoomStack: reflect.TypeFor[arena_c.Stack](), arena_c.RoomFrame: reflect.TypeFor[arena_c.Frame](),
	arena_c.RoomPool: reflect.TypeFor[arena_c.Pool](),
}

var roomWords = [arena_c.RoomKinds]map[string]string{
	arena_c.RoomHeap: {
		"First": fixed, "End": fixed, "Parks": fixed, "Fronts": fixed, "Lists": fixed, "Plain": fixed,
		"Nowhere": "the links of the end of a list, which are written alone",
		"Epoch":   checked, "Used": checked, "Most": checked, "Phase": checked, "Live": checked, "Parked": checked,
		"Sizes": checked, "Map": checked, "Bits": checked, "Past": checked, "Failed": checked, "Lost": checked,
		"LostBytes": checked, "Rest": checked, "Busy": checked,
		"Hand":    "which front list gives way next, modulo their number",
		"Bounded": counts, "Refused": counts, "Damaged": counts, "Raced": counts, "Where": places,
		"Look": "when a look at all is worth its time again: a damage is told later, by a call that meets it"},
	arena_c.RoomBuddy: {
		"First": fixed, "End": fixed, "Smallest": fixed, "Low": fixed, "Root": fixed, "Plain": fixed,
		"Used": checked, "Peak": checked, "Phase": checked, "Live": checked, "Failed": checked, "Scattered": checked,
		"Padded": checked, "Rest": checked, "Busy": checked,
		"Reserve": "more than there is keeps all back",
		"Given":   counts, "Asked": counts, "Refused": counts, "Damaged": counts, "Raced": counts, "Where": places,
		"Look": "as a heap's"},
	arena_c.RoomRing: with(headerWords, map[string]string{"Count": checked, "End": fixed, "Oldest": checked,
		"Seam": checked,
		"_":    unused}),
	arena_c.RoomEnds:  endsWords,
	arena_c.RoomStack: endsWords,
	arena_c.RoomFrame: with(headerWords, map[string]string{"Gen": checked, "Next": checked, "Start": checked,
		"Buffers": fixed,
		"Current": checked, "Size": fixed, "Count": checked, "_": unused}),
	arena_c.RoomPool: {"Gen": fixed, "Chunks": fixed, "Numbers": fixed, "Stride": fixed, "Inverse": fixed,
		"Count": fixed,
		"Kind":  fixed, "Handles": fixed, "Free": checked, "Retired": checked},
}

// with returns the rules of two, preferring those of b.
func with(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// headerWord is a word of a header, with the name of its field.
type headerWord struct {
	name     string
	at, size uintptr
}

// wordsOf returns the words of a type. The words of an array, or of a struct in a named field,
// share its name.
func wordsOf(t reflect.Type, name string) (words []headerWord) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			of := name
			if of == "" && !f.Anonymous && (t.NumField() != 1) {
				of = strings.ToUpper(f.Name[:1]) + f.Name[1:]
			}
			for _, w := range wordsOf(f.Type, of) {
				words = append(words, headerWord{w.name, f.Offset + w.at, w.size})
			}
		}
	case reflect.Array:
		for i := range uintptr(t.Len()) {
			for _, w := range wordsOf(t.Elem(), name) {
				words = append(words, headerWord{w.name, i*t.Elem().Size() + w.at, w.size})
			}
		}
	default:
		words = []headerWord{{name, 0, t.Size()}}
	}
	return words
}

// TestRoomHosts: an allocator in a block of another stays in that block. Otherwise freeing a block
// that begins before it would hand its words to another allocation.
func TestRoomHosts(t *testing.T) {
	const size, inside = 8192, 1024
	at := func(p, q unsafe.Pointer) uint64 { return uint64(uintptr(q) - uintptr(p)) }
	for _, test := range []struct {
		name string
		kind arena_c.RoomKind
		// make makes an allocator with a block for a room, and returns both. other makes one in
		// which another block has those bytes.
		make  func(r arena_c.Room) (p, host unsafe.Pointer)
		other func(r arena_c.Room, host uint64)
	}{
		{"heap", arena_c.RoomHeap, func(r arena_c.Room) (p, host unsafe.Pointer) {
			h := arena_c.HeapInit(r, 0)
			h.Alloc(100, 16)
			return unsafe.Pointer(h), h.Alloc(2048, 64)
		}, func(r arena_c.Room, _ uint64) { arena_c.HeapInit(r, 0).Alloc(5000, 16) }},
		{"buddy", arena_c.RoomBuddy, func(r arena_c.Room) (p, host unsafe.Pointer) {
			b := arena_c.BuddyInit(r, 64)
			b.SetPlain()
			b.Alloc(2048, 64)
			b.Alloc(2048, 64)
			return unsafe.Pointer(b), b.Alloc(2048, 64) // the upper half of 4096
		}, func(r arena_c.Room, _ uint64) {
			b := arena_c.BuddyInit(r, 64)
			b.SetPlain()
			b.Alloc(4096, 64)
		}},
		{"ring", arena_c.RoomRing, func(r arena_c.Room) (p, host unsafe.Pointer) {
			h := arena_c.RingInit(r)
			h.Alloc(1, 100, 7)
			return unsafe.Pointer(h), h.Alloc(1, 2048, 63)
		}, func(r arena_c.Room, _ uint64) { arena_c.RingInit(r).Alloc(1, 5000, 7) }},
		{"linear", arena_c.RoomEnds, func(r arena_c.Room) (p, host unsafe.Pointer) {
			e := arena_c.EndsInit(r)
			return unsafe.Pointer(e), e.PushNear(1, 2048, 63)
		}, func(r arena_c.Room, _ uint64) { arena_c.EndsInit(r).BumpFar(1, 8000, 15) }},
		{"stack", arena_c.RoomStack, func(r arena_c.Room) (p, host unsafe.Pointer) {
			s := arena_c.StackInit(r)
			s.Push(1, 100, 15)
			return unsafe.Pointer(s), s.Push(1, 2048, 63)
		}, func(r arena_c.Room, _ uint64) { arena_c.StackInit(r).Push(1, 5000, 15) }},
		{"stack's other end", arena_c.RoomStack, func(r arena_c.Room) (p, host unsafe.Pointer) {
			s := arena_c.StackInit(r)
			s.Push(1, 100, 15)
			return unsafe.Pointer(s), s.Push(1, 2048, 63)
		}, func(r arena_c.Room, host uint64) { arena_c.StackInit(r).PushFar(1, size-host, 15) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			block, other := guarded(t)[:size], guarded(t)[:size]
			p, q := test.make(arena_c.RoomOf(test.kind, unsafe.Pointer(&block[0]), size))
			host := at(p, q)
			inner := (host + 127) &^ 63 // other bytes precede it in the block
			arena_c.Unpoison(unsafe.Pointer(&block[0]), size)
			arena_c.PoolMake(arena_c.RoomOf(arena_c.RoomPool, unsafe.Pointer(&block[inner]), inside), 24, 8, false)
			test.other(arena_c.RoomOf(test.kind, unsafe.Pointer(&other[0]), size), host)
			for _, b := range [][]byte{block, other} {
				arena_c.Unpoison(unsafe.Pointer(&b[0]), size)
			}
			copy(other[inner:], block[inner:][:inside])
			r := &room{Room: stack.Room{Kind: test.kind, Size: size}}
			r.adopt(&room{Room: stack.Room{Kind: arena_c.RoomPool, Size: inside}, at: inner})
			require.True(t, r.learn(block))
			require.NoError(t, r.check(other), "what no room settled in")
			require.NoError(t, r.check(block))
			r.settle(block)
			require.NoError(t, r.check(block))
			assert.ErrorContains(t, r.check(other), "always in that at")
			require.NoError(t, r.check(block))
			if test.kind != arena_c.RoomEnds {
				assert.False(t, r.live(block, host, host+16), "the address by which the block is freed")
			}
			assert.True(t, r.live(block, host+16, host+32))
		})
	}
}

// TestLiveToTheEnd: a block is live up to the end of an allocator that is on another one's bytes.
func TestLiveToTheEnd(t *testing.T) {
	const size, inner, inside = 8192, 4096, 1024
	block := guarded(t)[:size]
	arena_c.EndsInit(arena_c.RoomOf(arena_c.RoomEnds, unsafe.Pointer(&block[0]), size)).PushNear(1, 7000, 63)
	arena_c.EndsInit(arena_c.RoomOf(arena_c.RoomEnds, unsafe.Pointer(&block[inner]), inside)).BumpFar(1, 64, 15)
	r := &room{Room: stack.Room{Kind: arena_c.RoomEnds, Size: size}}
	r.adopt(&room{Room: stack.Room{Kind: arena_c.RoomEnds, Size: inside}, at: inner})
	require.True(t, r.learn(block))
	require.NoError(t, r.check(block))
	const end = inner + inside
	assert.True(t, r.live(block, end-64, end))
	assert.False(t, r.live(block, end-64, end+1), "over the end of the inner one")
	assert.False(t, r.live(block, end-65, end))
	assert.True(t, r.live(block, end, end+1), "the outer one's")
}

// TestManyBlocks: as many links as a ring or a stack has blocks don't cost a linear search each.
func TestManyBlocks(t *testing.T) {
	const size, count = 8 << 20, 250_000
	for _, kind := range []arena_c.RoomKind{arena_c.RoomRing, arena_c.RoomStack} {
		all := make([]byte, size+64)
		block := all[-uintptr(unsafe.Pointer(&all[0]))%64:][:size]
		of := arena_c.RoomOf(kind, unsafe.Pointer(&block[0]), size)
		at := make([]uint64, 0, count)
		var give func() unsafe.Pointer
		if kind == arena_c.RoomRing {
			give = func() unsafe.Pointer { return (*arena_c.Ring)(unsafe.Pointer(&block[0])).Alloc(1, 8, 7) }
			arena_c.RingInit(of)
		} else {
			give = func() unsafe.Pointer { return (*arena_c.Stack)(unsafe.Pointer(&block[0])).Push(1, 8, 15) }
			arena_c.StackInit(of)
		}
		for range count {
			at = append(at, uint64(uintptr(give())-uintptr(unsafe.Pointer(&block[0]))))
		}
		arena_c.Unpoison(unsafe.Pointer(&block[0]), size)
		r := &room{Room: stack.Room{Kind: kind, Size: size}}
		require.True(t, r.learn(block))
		require.NoError(t, r.check(block))
		for _, from := range at {
			if !r.live(block, from, from+8) || r.live(block, from-8, from) || r.live(block, from, from+9) {
				t.Fatalf("%s at %#x", kind, from)
			}
		}
	}
}

// TestRoomsThatHostNone: blocks that a turn frees, or that any valid handle frees, can't host an
// allocator.
func TestRoomsThatHostNone(t *testing.T) {
	for _, test := range []struct {
		kind arena_c.RoomKind
		says string
		make func(r arena_c.Room) uint64
	}{
		{arena_c.RoomFrame, "which the next turn frees", func(r arena_c.Room) uint64 {
			return arena_c.FrameInit(r, 2).Start
		}},
		{arena_c.RoomPool, "which the game may free", func(r arena_c.Room) uint64 {
			h := arena_c.PoolMake(r, 2048, 64, true)
			h.TakeHandle(1)
			return h.Chunks
		}},
	} {
		block := guarded(t)[:8192]
		at := test.make(arena_c.RoomOf(test.kind, unsafe.Pointer(&block[0]), 8192))
		arena_c.Unpoison(unsafe.Pointer(&block[0]), 8192)
		r := &room{Room: stack.Room{Kind: test.kind, Size: 8192}}
		require.True(t, r.learn(block))
		require.NoError(t, r.check(block))
		arena_c.RingInit(arena_c.RoomOf(arena_c.RoomRing, unsafe.Pointer(&block[at]), 1024))
		arena_c.Unpoison(unsafe.Pointer(&block[0]), 8192)
		r = &room{Room: stack.Room{Kind: test.kind, Size: 8192}}
		r.adopt(&room{Room: stack.Room{Kind: arena_c.RoomRing, Size: 1024}, at: at})
		require.True(t, r.learn(block))
		assert.ErrorContains(t, r.check(block), test.says)
	}
}

// TestForgedHeapList: an entry of a list of free blocks is a block, not bytes of a live one that
// look like it.
func TestForgedHeapList(t *testing.T) {
	block := guarded(t)[:8192]
	h := arena_c.HeapInit(arena_c.RoomOf(arena_c.RoomHeap, unsafe.Pointer(&block[0]), 8192), 0)
	live := h.Alloc(1000, 16)
	hole, _ := h.Alloc(512, 16), h.Alloc(16, 16)
	require.Equal(t, arena_c.OK, h.Free(hole))
	arena_c.Unpoison(unsafe.Pointer(&block[0]), 8192)
	room := &room{Room: stack.Room{Kind: arena_c.RoomHeap, Size: 8192}}
	require.True(t, room.learn(block))
	require.NoError(t, room.check(block))
	at := uint64(uintptr(live)-uintptr(unsafe.Pointer(&block[0]))) + 64
	real := uint64(uintptr(hole)-uintptr(unsafe.Pointer(&block[0]))) - arena_c.HeapAlign
	body := uint64(512 + arena_c.HeapAlign)
	m := (at^h.Epoch)*0x9E3779B97F4A7C15 + body
	digest := (m ^ m>>32) * 0xBF58476D1CE4E5B9
	*wordAt(block, at) = digest &^ (1<<38 - 1)
	*wordAt(block, at+8) = body | digest<<26&^(1<<arena_c.HeapSealBits-1)
	*wordAt(block, at+16), *wordAt(block, at+24) = 0, 0
	for list := range h.Lists {
		if place := uint64(unsafe.Sizeof(*h)) + 8*list; *wordAt(block, place) == real {
			*wordAt(block, place) = at
		}
	}
	_, code := h.Walk(nil)
	require.Equal(t, arena_c.OK, code, "the walk can't tell")
	assert.ErrorContains(t, room.check(block), "a list of free blocks has byte")
}
