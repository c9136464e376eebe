package save

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// room is an allocator on bytes of a state, made by package arena or by C. The words in fixed never
// change, so an image from outside must contain the same; check compares the other words with them.
// Then no call of the allocator accesses memory outside its block, or loops forever.
type room struct {
	stack.Room
	at uint64 // from the state's first byte, or from the first byte of the outer room
	// host is the block in the outer room, as roomKind.live returns it; 0 if not known.
	host  uint64
	fixed []uint64
	own   uint32   // of a pool with handles: the bits common to its generations
	heads []uint64 // of a checked heap: a bit for each 16 bytes, set for a header
	spans []span   // of a checked ring or stack: its blocks, by offset
	inner []*room  // rooms in its blocks
}

type roomKind struct {
	header uint64    // bytes
	fixed  []uintptr // offsets of words that never change
	// fits reports whether the fixed words describe a layout within the block.
	fits  func(image []byte) bool
	check func(r *room, image []byte) error
	// live reports whether [from, to) is in one live block of a checked image. It returns the
	// block's start, with the bit farEnd for a block of the far end.
	live func(r *room, image []byte, from, to uint64) (block uint64, live bool)
}

// wholeEnd stands for an end whose blocks aren't freed one by one. farEnd marks a block of the far
// end, which is freed independently.
const (
	wholeEnd = 1
	farEnd   = 1 << 63
)

// headerFixed are the words of an arena.h header that never change, except in a frame.
var headerFixed = []uintptr{unsafe.Offsetof(arena_c.Header{}.Gen), unsafe.Offsetof(arena_c.Header{}.Next),
	unsafe.Offsetof(arena_c.Header{}.Start)}

var roomKinds = [...]roomKind{
	{}, // 0 is no kind
	{ // arena_c.RoomHeap
		header: uint64(unsafe.Sizeof(arena_c.Heap{})),
		fixed: []uintptr{unsafe.Offsetof(arena_c.Heap{}.First), unsafe.Offsetof(arena_c.Heap{}.End),
			unsafe.Offsetof(arena_c.Heap{}.Parks), unsafe.Offsetof(arena_c.Heap{}.Fronts),
			unsafe.Offsetof(arena_c.Heap{}.Lists), unsafe.Offsetof(arena_c.Heap{}.Plain)},
		fits: fitsHeap, check: checkHeap, live: liveInHeap},
	{ // arena_c.RoomBuddy
		header: uint64(unsafe.Sizeof(arena_c.Buddy{})),
		fixed: []uintptr{unsafe.Offsetof(arena_c.Buddy{}.First), unsafe.Offsetof(arena_c.Buddy{}.End),
			unsafe.Offsetof(arena_c.Buddy{}.Smallest), unsafe.Offsetof(arena_c.Buddy{}.Low),
			unsafe.Offsetof(arena_c.Buddy{}.Root), unsafe.Offsetof(arena_c.Buddy{}.Plain)},
		fits: fitsBuddy, check: checkBuddy, live: liveInBuddy},
	{ // arena_c.RoomRing
		header: uint64(unsafe.Sizeof(arena_c.Ring{})),
		fixed:  append([]uintptr{unsafe.Offsetof(arena_c.Ring{}.End)}, headerFixed...),
		fits:   fitsRing, check: checkRing, live: inSpan},
	{ // arena_c.RoomEnds
		header: uint64(unsafe.Sizeof(arena_c.Ends{})),
		fixed:  append([]uintptr{unsafe.Offsetof(arena_c.Ends{}.End)}, headerFixed...),
		fits:   fitsEnds, check: checkEnds, live: liveInEnds},
	{ // arena_c.RoomStack
		header: uint64(unsafe.Sizeof(arena_c.Stack{})),
		fixed:  append([]uintptr{unsafe.Offsetof(arena_c.Stack{}.End)}, headerFixed...),
		fits:   fitsEnds, check: checkStack, live: liveInStack},
	{ // arena_c.RoomFrame
		header: uint64(unsafe.Sizeof(arena_c.Frame{})),
		fixed:  []uintptr{unsafe.Offsetof(arena_c.Frame{}.Buffers), unsafe.Offsetof(arena_c.Frame{}.Size)},
		fits:   fitsFrame, check: checkFrame, live: liveInFrame},
	{ // arena_c.RoomPool
		header: uint64(unsafe.Sizeof(arena_c.Pool{})),
		fixed: []uintptr{unsafe.Offsetof(arena_c.Pool{}.Gen), unsafe.Offsetof(arena_c.Pool{}.Chunks),
			unsafe.Offsetof(arena_c.Pool{}.Numbers), unsafe.Offsetof(arena_c.Pool{}.Stride),
			// checkRoomPool checks the 32-bit words after it.
			unsafe.Offsetof(arena_c.Pool{}.Inverse)},
		fits: fitsPool, check: checkRoomPool, live: liveInPool},
	{ // arena_c.RoomShared: its contents belong to a library
		check: func(*room, []byte) error { return nil },
		live:  func(*room, []byte, uint64, uint64) (uint64, bool) { return 0, false }},
}

var _ [arena_c.RoomKinds]struct{} = [len(roomKinds)]struct{}{}

func (r *room) kind() *roomKind { return &roomKinds[r.Kind] }

// wordAt returns the word at an offset. pre: the image's first byte and the offset are aligned to
// 8.
func wordAt(image []byte, at uint64) *uint64 { return (*uint64)(unsafe.Pointer(&image[at : at+8][0])) }

func headerOf[H any](image []byte) *H { return (*H)(unsafe.Pointer(unsafe.SliceData(image))) }

// findRooms adds the state's allocators as tenants. It returns an error for a damaged allocator.
func (st *State) findRooms() error {
	list, err := st.saved.Stack.WatchedRooms(st.mark, st.end)
	if err != nil {
		return fmt.Errorf("save: BUG: the state of region %s: %w", st.saved.Name, err)
	}
	state := st.bytes()
	arena_c.Gather(startOf(state), uint64(len(state)))
	var outer []*room
	for _, of := range list {
		r := &room{Room: of, at: of.Offset - st.mark}
		if r.at+r.Size > uint64(len(state)) || r.Kind != arena_c.RoomShared && r.Size < r.kind().header {
			return st.badRoom(r, fmt.Errorf("code in C registered %d bytes, which aren't all in the state", r.Size))
		}
		if st.library == nil && (r.C || r.Kind == arena_c.RoomShared) {
			st.library = r
		}
		// r is inside the last room: rooms never overlap partly
		if n := len(outer) - 1; n >= 0 && outer[n].at+outer[n].Size > r.at {
			outer[n].adopt(r)
		} else {
			outer = append(outer, r)
		}
	}
	for _, r := range outer {
		image := state[r.at:][:r.Size]
		if !r.learn(image) {
			return st.badRoom(r, fmt.Errorf("its words contradict its size of %d bytes", r.Size))
		}
		if err := r.check(image); err != nil {
			return st.badRoom(r, err)
		}
		r.settle(image)
		st.tenants = append(st.tenants, tenant{at: r.at, size: r.Size, name: r.Kind.String(), check: r.check,
			live: r.live, values: r.chunks(state, r.at)})
	}
	slices.SortFunc(st.tenants, func(a, b tenant) int { return int(int64(a.at - b.at)) })
	return nil
}

func (st *State) badRoom(r *room, err error) error {
	return fmt.Errorf("save: BUG: the state of region %s, at byte %#x: the %s is damaged: %w%s", st.saved.Name, r.at,
		r.Kind, err, r.Site.Tell("made"))
}

// chunks returns the chunks of r and of the rooms in it; r begins at `at` in the state.
func (r *room) chunks(state []byte, at uint64) (list []values) {
	if r.Kind == arena_c.RoomPool && r.Of != nil {
		h := headerOf[arena_c.Pool](state[at:])
		list = append(list, values{at: at + h.Chunks, count: uint64(h.Count), stride: h.Stride, of: r.Of})
	}
	for _, in := range r.inner {
		list = append(list, in.chunks(state, at+in.at)...)
	}
	return list
}

// adopt adds a room in a block of r, or of a room in r.
func (r *room) adopt(inner *room) {
	inner.at -= r.at
	if n := len(r.inner) - 1; n >= 0 && r.inner[n].at+r.inner[n].Size >= inner.at+inner.Size {
		r.inner[n].adopt(inner)
		return
	}
	r.inner = append(r.inner, inner)
}

// learn copies the words that never change. It returns false if they describe a layout beyond the
// block: C may have registered another size than it made.
func (r *room) learn(image []byte) bool {
	if fits := r.kind().fits; fits != nil && !fits(image) {
		return false
	}
	for _, at := range r.kind().fixed {
		r.fixed = append(r.fixed, *wordAt(image, uint64(at)))
	}
	if r.Kind == arena_c.RoomPool {
		h := headerOf[arena_c.Pool](image)
		r.fixed = append(r.fixed, uint64(h.Count), uint64(h.Kind), uint64(h.Handles))
		if numbers := h.Numbers + 4*uint64(h.Count); h.Handles != 0 && numbers+4 <= uint64(len(image)) {
			r.own = binary.NativeEndian.Uint32(image[numbers:]) &^ h.Handles
		}
	}
	for _, in := range r.inner {
		if !in.learn(image[in.at:][:in.Size]) {
			return false
		}
	}
	return true
}

// settle records in which block of r each inner room is. pre: the image was checked.
func (r *room) settle(image []byte) {
	for _, in := range r.inner {
		in.host, _ = r.kind().live(r, image, in.at, in.at+in.Size)
		in.settle(image[in.at:][:in.Size])
	}
}

// mayHost returns an error if a frame's turn, or a forged handle, could free r's blocks.
func (r *room) mayHost() error {
	switch r.Kind {
	case arena_c.RoomFrame:
		return fmt.Errorf("it has an allocator in a buffer, which the next turn frees: make that elsewhere")
	case arena_c.RoomPool:
		return errInChunk
	}
	return nil
}

var errInChunk = fmt.Errorf("it has an allocator in a chunk, which the game may free: make that elsewhere")

func (st *State) roomsInChunks() error {
	for i := range st.tenants {
		for _, p := range st.pools {
			t, end := &st.tenants[i], p.first+uint64(p.header.Count)*p.header.Stride
			if !t.kept && t.at < end && p.first < t.at+t.size {
				return fmt.Errorf("save: BUG: the state of region %s, at byte %#x: %s: a pool of %d chunks of %d "+
					"bytes: %w", st.saved.Name, t.at, t.name, p.header.Count, p.header.Stride, errInChunk)
			}
		}
	}
	return nil
}

// check returns an error for an image that play couldn't have left, of r or of an inner room. Each
// inner room must be in the same block as in this process. If the block began elsewhere, freeing
// that start would let another allocation use the room's words.
func (r *room) check(image []byte) error {
	for i, at := range r.kind().fixed {
		if word := *wordAt(image, uint64(at)); word != r.fixed[i] {
			return fmt.Errorf("word %d of its header is %#x, and always %#x here", at/8, word, r.fixed[i])
		}
	}
	if err := r.kind().check(r, image); err != nil {
		return err
	}
	if len(r.inner) != 0 {
		if err := r.mayHost(); err != nil {
			return err
		}
	}
	for _, in := range r.inner {
		block, live := r.kind().live(r, image, in.at, in.at+in.Size)
		switch {
		case !live:
			return fmt.Errorf("the %s at its byte %#x isn't in one live block of it, and must be", in.Kind, in.at)
		case block != in.host && in.host != 0:
			return fmt.Errorf("the %s at its byte %#x is in the block at %#x, and always in that at %#x here", in.Kind,
				in.at, block&^farEnd, in.host&^farEnd)
		}
		if err := in.check(image[in.at:][:in.Size]); err != nil {
			return fmt.Errorf("at its byte %#x: %s: %w", in.at, in.Kind, err)
		}
	}
	return nil
}

// live reports whether a range is in one live block and not over an inner room's words. The start
// of a block that hosts a room is refused: code with that address could free it.
func (r *room) live(image []byte, from, to uint64) bool {
	if from > to || to > r.Size {
		return false
	}
	for _, in := range r.inner {
		if from < in.at+in.Size && in.at < to {
			return in.at <= from && to <= in.at+in.Size && in.live(image[in.at:][:in.Size], from-in.at, to-in.at)
		}
	}
	block, live := r.kind().live(r, image, from, to)
	return live && (block&^farEnd != from || !slices.ContainsFunc(r.inner,
		func(in *room) bool { return in.host == block }))
}

var (
	errInside = fmt.Errorf("its words say that a call is running")
	errRests  = fmt.Errorf("its words say that freed blocks rest, or that it has redzones")
)

func fitsHeap(image []byte) bool {
	h := headerOf[arena_c.Heap](image)
	first := uint64(unsafe.Sizeof(*h)) + 8*h.Lists
	if h.Fronts != 0 {
		first += arena_c.HeapFrontBytes
	}
	return h.Lists >= 1 && h.Lists <= 512 && h.First == first && h.First < h.End &&
		h.End == uint64(len(image))&^15-heapUnit
}

func fitsBuddy(image []byte) bool {
	b := headerOf[arena_c.Buddy](image)
	return b.Smallest != 0 && b.First < b.End && b.End <= uint64(len(image)) &&
		uint64(unsafe.Sizeof(*b))+(b.End-b.First)/b.Smallest <= b.First+1
}

func fitsRing(image []byte) bool { return fitsEnd(image, headerOf[arena_c.Ring](image).End) }
func fitsEnds(image []byte) bool { return fitsEnd(image, headerOf[arena_c.Ends](image).End) }

func fitsEnd(image []byte, end uint64) bool {
	h := headerOf[arena_c.Header](image)
	return h.Start == 2*arena_c.LineSize && end == uint64(len(image))
}

func fitsFrame(image []byte) bool {
	f := headerOf[arena_c.Frame](image)
	return f.Buffers >= arena_c.FrameMin && f.Buffers <= arena_c.FrameMax && f.Size < uint64(len(image)) &&
		uint64(unsafe.Sizeof(*f))+f.Buffers*f.Size <= uint64(len(image))
}

func fitsPool(image []byte) bool {
	h, size := headerOf[arena_c.Pool](image), uint64(len(image))
	count := uint64(h.Count)
	return h.Stride != 0 && h.Stride <= size && h.Chunks <= size && count*h.Stride <= size-h.Chunks &&
		h.Numbers >= uint64(unsafe.Sizeof(*h)) && h.Numbers <= h.Chunks && h.Numbers%4 == 0 &&
		count*uint64(5+4*min(h.Handles, 1)) <= h.Chunks-h.Numbers
}

// countMax is larger than any real count.
const countMax = 1 << 48

// The walk of the C core checks that a heap's headers, counts, bits and lists agree. But an entry
// of a list may be bytes of a live block that look like a free block; checkHeap finds those.

const heapUnit = arena_c.HeapAlign

func checkHeap(r *room, image []byte) error {
	h := headerOf[arena_c.Heap](image)
	room := h.End - h.First
	switch {
	case h.Busy != 0:
		return errInside
	case h.Rest != arena_c.Heap{}.Rest:
		return errRests
	case h.Epoch%(1<<43) != 0:
		return fmt.Errorf("epoch %#x", h.Epoch)
	case h.Failed > countMax || h.LostBytes > room:
		return fmt.Errorf("%d failed requests and %d lost bytes, which is impossible", h.Failed, h.LostBytes)
	case h.Most > room-h.LostBytes || h.Phase > room || h.Past > room || h.Parked > h.Parks:
		return fmt.Errorf("impossible figures for %d bytes: most %d, peaks %d and %d, %d of %d blocks parked", room,
			h.Most, h.Phase, h.Past, h.Parked, h.Parks)
	}
	if _, code := h.Walk(nil); code != arena_c.OK {
		return fmt.Errorf("its blocks, lists and counts contradict each other")
	}
	if last := *wordAt(image, h.End+8) & (1<<arena_c.HeapSealBits - 1); last != 1 {
		return fmt.Errorf("its last header, which has no bytes, says %#x", last)
	}
	if r.heads == nil {
		r.heads = make([]uint64, h.End/heapUnit/64+1)
	}
	clear(r.heads)
	for at := h.First; at != h.End; at += *wordAt(image, at+8) & arena_c.HeapSizeBits {
		r.heads[at/heapUnit/64] |= 1 << (at / heapUnit % 64)
	}
	header := uint64(unsafe.Sizeof(*h))
	for list := range h.Lists + arena_c.HeapFrontLists {
		place := header + 8*list
		if list >= h.Lists {
			if h.Fronts == 0 {
				break
			}
			place = h.Fronts + 8*(list-h.Lists)
		}
		for at := *wordAt(image, place); at != 0; at = *wordAt(image, at+heapUnit) {
			if r.heads[at/heapUnit/64]>>(at/heapUnit%64)&1 == 0 {
				return fmt.Errorf("a list of free blocks has byte %#x, which isn't the start of a block", at)
			}
		}
	}
	return nil
}

func liveInHeap(r *room, image []byte, from, to uint64) (block uint64, live bool) {
	h := headerOf[arena_c.Heap](image)
	if from < h.First+heapUnit || to > h.End || r.heads == nil {
		return 0, false
	}
	at := (from - heapUnit) / heapUnit // the last unit where its header can be
	for r.heads[at/64]<<(63-at%64) == 0 {
		at = at/64*64 - 1
	}
	for r.heads[at/64]>>(at%64)&1 == 0 {
		at--
	}
	block = (at + 1) * heapUnit
	asked, code := h.SizeOf(unsafe.Pointer(&image[block]))
	return block, code == arena_c.OK && to <= block+asked
}

func checkBuddy(_ *room, image []byte) error {
	b := headerOf[arena_c.Buddy](image)
	switch {
	case b.Busy != 0:
		return errInside
	case b.Rest != arena_c.Buddy{}.Rest || b.Padded != 0:
		return errRests
	case b.Failed > countMax:
		return fmt.Errorf("%d failed requests, which is impossible", b.Failed)
	case b.Peak > b.End-b.First:
		return fmt.Errorf("impossible figures for %d bytes: peak %d", b.End-b.First, b.Peak)
	case b.CheckAll() != arena_c.OK || !b.EdgesHold():
		return fmt.Errorf("its blocks and counts contradict each other")
	}
	return nil
}

func liveInBuddy(_ *room, image []byte, from, to uint64) (block uint64, live bool) {
	b := headerOf[arena_c.Buddy](image)
	if from < b.First || from >= b.End {
		return 0, false
	}
	block, size, live := b.BlockOf(from)
	return block, live && to <= block+size
}

// eachInRing calls yield with each block of a ring. It returns false if the words before the blocks
// contradict the header.
func eachInRing(image []byte, yield func(from, to uint64)) bool {
	h := headerOf[arena_c.Ring](image)
	run := func(at, stop uint64) bool {
		for at < stop {
			if stop-at < 8 {
				return false
			}
			word := *wordAt(image, at)
			from := at + 8 + word/arena_c.RingPadding
			to := from + word%arena_c.RingPadding
			if to > stop {
				return false
			}
			yield(from, to)
			at = (to + 7) &^ 7
			if at >= stop {
				return to == stop
			}
		}
		return true
	}
	if h.Seam != 0 {
		return run(h.Oldest, h.Seam) && run(h.Start, h.Cursor)
	}
	return run(h.Oldest, h.Cursor)
}

func checkRing(r *room, image []byte) error {
	h := headerOf[arena_c.Ring](image)
	in := func(at uint64) bool { return at >= h.Start && at <= h.End }
	bad := fmt.Errorf("its blocks and words contradict each other")
	switch {
	case !in(h.Oldest) || !in(h.Cursor) || h.Oldest%8 != 0 || h.Least > h.End-h.Start:
		return bad
	case h.Seam == 0 && (h.Limit != h.End || h.Oldest > h.Cursor || h.Count == 0 && h.Cursor != h.Start),
		h.Seam != 0 && (h.Limit != h.Oldest || !in(h.Seam) || h.Oldest >= h.Seam || h.Cursor > h.Oldest ||
			h.Cursor == h.Start):
		return bad
	}
	if !r.keepSpans(eachInRing, image) || uint64(len(r.spans)) != h.Count {
		return bad
	}
	return nil
}

// keepSpans sets r.spans to the blocks that each yields, sorted by offset, and returns the result
// of each. A linear search for each link into the blocks could take hours.
func (r *room) keepSpans(each func(image []byte, yield func(from, to uint64)) bool, image []byte) bool {
	r.spans = r.spans[:0]
	ok := each(image, func(from, to uint64) { r.spans = append(r.spans, span{from, to}) })
	slices.SortFunc(r.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return ok
}

// inSpan is roomKind.live for a ring and a stack.
func inSpan(r *room, _ []byte, from, to uint64) (block uint64, live bool) {
	behind, _ := slices.BinarySearchFunc(r.spans, from+1, func(s span, at uint64) int {
		return cmp.Compare(s.from, at)
	})
	if behind == 0 {
		return 0, false
	}
	s := r.spans[behind-1]
	return s.from, to <= s.to
}

// checkBounds checks the words that an arena with two ends shares with a stack.
func checkBounds(e *arena_c.Ends) error {
	size := e.End - e.Start
	if e.Cursor < e.Start || e.Cursor > e.Limit || e.Limit > e.End ||
		e.High < e.Start || e.High > e.End || e.Low < e.Start || e.Low > e.End ||
		e.Mark < e.Start || e.Mark > e.Cursor || e.FarMark < e.Limit || e.FarMark > e.End || e.Least > size {
		return fmt.Errorf("its ends or marks are outside of its %d bytes, or cross", size)
	}
	return nil
}

func checkEnds(_ *room, image []byte) error {
	e := headerOf[arena_c.Ends](image)
	if e.Last != 0 || e.FarLast != 0 {
		return fmt.Errorf("it has a last block, as only a Stack has")
	}
	return checkBounds(e)
}

func liveInEnds(_ *room, image []byte, from, to uint64) (block uint64, live bool) {
	e := headerOf[arena_c.Ends](image)
	if from >= e.Limit {
		return wholeEnd | farEnd, to <= e.End
	}
	return wholeEnd, from >= e.Start && to <= e.Cursor
}

// stackWords is the size in bytes of the two words before a block of a stack: the earlier end, and
// the earlier last block.
const stackWords = arena_c.StackMask + 1

// eachInStack calls yield with each block of a stack, newest first, the near end before the far. It
// returns false if the words before a block are impossible.
func eachInStack(image []byte, yield func(from, to uint64)) bool {
	s := headerOf[arena_c.Stack](image)
	at, last := s.Cursor, s.Last
	for last != 0 {
		if last%stackWords != 0 || last > at || last < s.Start+stackWords {
			return false
		}
		yield(last, at)
		was := *wordAt(image, last-stackWords)
		if was > last-stackWords || was < s.Start {
			return false
		}
		at, last = was, *wordAt(image, last-stackWords+8)
	}
	if at != s.Start {
		return false
	}
	at, last = s.Limit, s.FarLast
	for last != 0 {
		if last%stackWords != 0 || last != at+stackWords || last > s.End {
			return false
		}
		was := *wordAt(image, at)
		if was < last || was > s.End {
			return false
		}
		yield(last, was)
		at, last = was, *wordAt(image, at+8)
	}
	return at == s.End
}

func checkStack(r *room, image []byte) error {
	s := headerOf[arena_c.Stack](image)
	if err := checkBounds((*arena_c.Ends)(s)); err != nil {
		return err
	}
	if s.Mark != s.Start || s.FarMark != s.End {
		return fmt.Errorf("it has a mark, as only a Linear has")
	}
	if !r.keepSpans(eachInStack, image) {
		return fmt.Errorf("the words before its blocks contradict each other")
	}
	return nil
}

func liveInStack(r *room, image []byte, from, to uint64) (block uint64, live bool) {
	block, live = inSpan(r, image, from, to)
	if block > headerOf[arena_c.Stack](image).Limit {
		block |= farEnd
	}
	return block, live
}

func checkFrame(_ *room, image []byte) error {
	f := headerOf[arena_c.Frame](image)
	header := uint64(unsafe.Sizeof(*f))
	if f.Current >= f.Buffers || f.Start != header+f.Current*f.Size || f.Limit != f.Start+f.Size ||
		f.Cursor < f.Start ||
		f.Cursor > f.Limit || f.Gen != f.Header.Next || f.Gen == 0 || f.Least > f.Size || f.Count > f.Cursor-f.Start {
		return fmt.Errorf("its current buffer, cursor and generation contradict each other")
	}
	return nil
}

func liveInFrame(_ *room, image []byte, from, to uint64) (block uint64, live bool) {
	f := headerOf[arena_c.Frame](image)
	header := uint64(unsafe.Sizeof(*f))
	return wholeEnd, from >= header && to <= header+f.Buffers*f.Size &&
		(from-header)/f.Size == (max(to, from+1)-1-header)/f.Size
}

func checkRoomPool(r *room, image []byte) error {
	h := headerOf[arena_c.Pool](image)
	for i, word := range []uint32{h.Count, h.Kind, h.Handles} {
		if here := r.fixed[len(r.fixed)-3+i]; uint64(word) != here {
			return fmt.Errorf("its count, kind or handles is %#x, and always %#x here", word, here)
		}
	}
	if h.Free > uint64(h.Count) {
		return fmt.Errorf("%d free chunks of %d", h.Free, h.Count)
	}
	c := poolChunks{states: image[h.Chunks-uint64(h.Count) : h.Chunks], numbers: image[h.Numbers:],
		free: uint32(h.Free), retired: h.Retired, handles: h.Handles, own: r.own}
	if at, err := c.check(h.Chunks, h.Numbers); err != nil {
		return fmt.Errorf("at its byte %#x: %w", at, err)
	}
	if r.Check == nil {
		return nil
	}
	for i := range uint64(h.Count) {
		if *h.State(i) == arena_c.ChunkLive {
			if err := r.Check(image[h.Chunks+i*h.Stride:][:h.Stride:h.Stride]); err != nil {
				return fmt.Errorf("chunk %d: %w", i, err)
			}
		}
	}
	return nil
}

func liveInPool(_ *room, image []byte, from, to uint64) (block uint64, live bool) {
	h := headerOf[arena_c.Pool](image)
	if from < h.Chunks {
		return 0, false
	}
	i := (from - h.Chunks) / h.Stride
	block = h.Chunks + i*h.Stride
	return block, i < uint64(h.Count) && *h.State(i) == arena_c.ChunkLive && to <= block+h.Stride
}

// poolChunks is the range of an image that says which chunks are free.
type poolChunks struct {
	states, numbers []byte // in states, the last chunk's comes first
	free, retired   uint32
	// handles is the mask of the counting bits in a generation, or 0; own is the other bits
	handles, own uint32
}

// check returns the first error and its byte. The states end, and the numbers begin, at these
// positions.
func (c *poolChunks) check(statesEnd, numbersBegin uint64) (at uint64, err error) {
	count := uint32(len(c.states))
	var of [256]uint32 // chunks in each state
	for _, s := range c.states {
		of[s]++
	}
	fresh, over := of[arena_c.ChunkFresh], of[arena_c.ChunkRetired]
	gets := fresh + of[arena_c.ChunkFree]
	switch at = statesEnd - uint64(count); {
	case gets+over+of[arena_c.ChunkLive] != count:
		return at, fmt.Errorf("%d chunks of unknown state", count-gets-over-of[arena_c.ChunkLive])
	case c.free != gets || c.retired != over:
		return at, fmt.Errorf("%d free and %d retired by its words, but %d and %d by the states of its chunks",
			c.free, c.retired, gets, over)
	case c.retired != 0 && c.handles == 0:
		return at, fmt.Errorf("%d chunks retired, but it has no handles", c.retired)
	case bytes.Count(c.states[:fresh], []byte{arena_c.ChunkFresh}) != int(fresh):
		return at, fmt.Errorf("a chunk that was never used comes before one that was")
	}
	if place, what := checkNumbers(c.numbers, c.states, fresh, c.free); what != "" {
		return numbersBegin + 4*uint64(place), fmt.Errorf("its list of free chunks %s", what)
	}
	for i := uint64(count); i < 2*uint64(count) && c.handles != 0; i++ {
		if g := binary.LittleEndian.Uint32(c.numbers[4*i:]); g&^c.handles != c.own || g&c.handles == 0 {
			return numbersBegin + 4*i, fmt.Errorf("generation %#x of chunk %d, which this pool can't create", g,
				i-uint64(count))
		}
	}
	return 0, nil
}
