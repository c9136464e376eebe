package save

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// guardSize is a multiple of every page.
const guardSize = arena_c.Edge

// guarded is memory between pages that fault.
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

// victim is an allocator of a kind, and what play does with it.
type victim struct {
	name string
	kind arena_c.RoomKind
	init func(arena_c.Room) unsafe.Pointer
	play func(p unsafe.Pointer, r *rand.Rand, steps int)
}

var victims = []victim{
	{"heap", arena_c.RoomHeap, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.HeapInit(r, 0)) }, playHeap},
	{"heap with front lists", arena_c.RoomHeap,
		func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.HeapInit(r, 16)) }, playHeap},
	{"buddy", arena_c.RoomBuddy, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.BuddyInit(r, 64)) }, playBuddy},
	{"ring", arena_c.RoomRing, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.RingInit(r)) }, playRing},
	{"linear", arena_c.RoomEnds, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.EndsInit(r)) }, playEnds},
	{"stack", arena_c.RoomStack, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.StackInit(r)) }, playStack},
	{"frame", arena_c.RoomFrame, func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.FrameInit(r, 3)) }, playFrame},
	{"pool", arena_c.RoomPool,
		func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.PoolMake(r, 24, 8, false)) }, playPool},
	{"handles", arena_c.RoomPool,
		func(r arena_c.Room) unsafe.Pointer { return unsafe.Pointer(arena_c.PoolMake(r, 40, 8, true)) }, playPool},
}

// write writes all of what was given, and perhaps words that look like what an allocator has.
func write(p unsafe.Pointer, size uint64) {
	b := unsafe.Slice((*byte)(p), size)
	for i := range b {
		b[i] = byte(i)
	}
}

func playHeap(p unsafe.Pointer, r *rand.Rand, steps int) {
	h := (*arena_c.Heap)(p)
	ranges := make([]arena_c.HeapRange, 1<<12)
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
			_ = h.Phase()
		}
	}
	if _, code := h.Walk(nil); code != arena_c.OK {
		panic("the heap's walk afterwards")
	}
	h.Reset()
	_ = h.Alloc(64, 16)
}

func playBuddy(p unsafe.Pointer, r *rand.Rand, steps int) {
	b := (*arena_c.Buddy)(p)
	ranges := make([]arena_c.BuddyRange, 1<<12)
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
	if b.Check() != arena_c.OK {
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
	e.Reset()
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
	_ = h.Next(0)
	_ = h.Peak()
}

// hostileWords is where an image is changed: what a header has, and what words of a block may say.
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

// forgeHeap writes a header with a seal that holds, where any may be, and has a list lead there at times.
func forgeHeap(image, good []byte, r *rand.Rand) {
	h := headerOf[arena_c.Heap](good)
	at := h.First + r.Uint64N((h.End-h.First)/16+1)*16
	if at+32 > uint64(len(image)) {
		at = h.End
	}
	body := r.Uint64N(256) * 16
	if r.IntN(2) == 0 { // what is there, changed
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

// TestHostileRooms: the block of each kind of allocator, with anything in it, is refused, or no call leaves it, hangs or
// faults: it lies between pages that do.
func TestHostileRooms(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	const size = 8192
	for i := range victims {
		v := &victims[i]
		t.Run(v.name, func(t *testing.T) {
			all, copied := guarded(t), guarded(t)
			for _, at := range []int{0, guardSize - size} { // at either edge
				block, image := all[at:][:size], copied[at:][:size]
				r := rand.New(rand.NewPCG(uint64(at), 39))
				taken, rounds := 0, step.Pick(1000, 20_000, 500_000)
				for round := range rounds {
					if round%100 == 0 { // another that play left
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

// playFrom leaves something live.
func (v *victim) playFrom(p unsafe.Pointer, r *rand.Rand) {
	v.play(p, r, r.IntN(200))
}

// round has an image that was changed checked, and plays from it if it is taken. The block is as it was afterwards.
func (v *victim) round(t *testing.T, block, image []byte, r *rand.Rand) bool {
	room := &room{Room: scope.Room{Kind: v.kind, Size: uint64(len(block))}}
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
		}()
	}
	arena_c.Unpoison(unsafe.Pointer(&block[0]), room.Size)
	copy(block, good)
	return err == nil
}

// differences are the words in which two blocks differ.
func differences(good, hostile []byte) (text string) {
	for at := uint64(0); at < uint64(len(good)); at += 8 {
		if a, b := *wordAt(good, at), *wordAt(hostile, at); a != b {
			text += fmt.Sprintf("at %#x was %#x and is %#x; ", at, a, b)
		}
	}
	return text
}

// TestRoomWords: each word of each header is said to be fixed, or checked, or any.
func TestRoomWords(t *testing.T) {
	for i := range victims {
		v := &victims[i]
		t.Run(fmt.Sprint(v.name), func(t *testing.T) {
			block := guarded(t)[:8192]
			v.playFrom(v.init(arena_c.RoomOf(v.kind, unsafe.Pointer(&block[0]), 8192)), rand.New(rand.NewPCG(1, 2)))
			room := &room{Room: scope.Room{Kind: v.kind, Size: 8192}}
			arena_c.Unpoison(unsafe.Pointer(&block[0]), room.Size)
			require.True(t, room.learn(block))
			require.NoError(t, room.check(block))
			for _, at := range roomKinds[v.kind].fixed {
				*wordAt(block, uint64(at)) ^= 8
				assert.ErrorContains(t, room.check(block), "here for good", "%d", at)
				*wordAt(block, uint64(at)) ^= 8
			}
		})
	}
}

// TestForgedHeapList: a block in a list of free ones is a block, not bytes of a live one that look like it.
func TestForgedHeapList(t *testing.T) {
	block := guarded(t)[:8192]
	h := arena_c.HeapInit(arena_c.RoomOf(arena_c.RoomHeap, unsafe.Pointer(&block[0]), 8192), 0)
	live := h.Alloc(1000, 16)
	hole, _ := h.Alloc(512, 16), h.Alloc(16, 16)
	require.Equal(t, arena_c.OK, h.Free(hole))
	arena_c.Unpoison(unsafe.Pointer(&block[0]), 8192)
	room := &room{Room: scope.Room{Kind: arena_c.RoomHeap, Size: 8192}}
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
