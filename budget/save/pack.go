package save

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// A snapshot has two forms. In a flat image each byte of the states has a fixed position: for each
// part the words of its pools, then its bytes, padded to a cache line. A slot's image is packed:
// first the pieces of the flat image outside of packed heaps, at fixed positions, and then for each
// packed heap two words, its size here and its offset in the flat image, and its runs
// (arena_c/heap.h). Without packed heaps both forms are the same bytes.
//
// Say a state of 4096 bytes and no pools has a heap of 2048 bytes at 1024, with 600 bytes in use in
// two runs. Its image has the pieces [0, 1024) and [3072, 4096), the two words, and 600 bytes with
// two words for each run: 2048 + 16 + 632 bytes in all.

// packed is a heap whose free bytes are in no image.
type packed struct {
	at, size    uint64 // its bytes, from the state's first byte
	first, last uint64 // First and End of its header, which never change
	most        uint64 // the largest number of bytes in an image, without the two words
	what        string // the call that named it
	library     bool
}

// packedWords is the size of the two words before a heap's runs.
const packedWords = 16

// piece is a range of a flat image: a packed heap, or bytes that are at pos in every image.
type piece struct {
	flat, size, pos int
	heap            bool
}

// shape is the part of a state that determines its pieces.
type shape struct {
	pools int
	size  uint64
	heaps []span // from the state's first byte; sorted, apart from each other
}

// piecesOf returns the pieces of a flat image in order, and the bytes of those outside of heaps.
func piecesOf(shapes []shape) (list []piece, fixed int) {
	flat := 0
	add := func(to int, heap bool) {
		p := piece{flat: flat, size: to - flat, pos: fixed, heap: heap}
		if flat = to; p.size == 0 {
			return
		}
		last := len(list) - 1
		switch {
		case heap:
			list = append(list, p)
			return
		case last >= 0 && !list[last].heap: // the end of the state before
			list[last].size += p.size
		default:
			list = append(list, p)
		}
		fixed += p.size
	}
	for _, s := range shapes {
		state := flat + poolWords*s.pools
		for _, h := range s.heaps {
			add(state+int(h.from), false)
			add(state+int(h.to), true)
		}
		add((state+int(s.size)+arena_c.LineSize-1)&^(arena_c.LineSize-1), false)
	}
	return list, fixed
}

// shape returns the shape of a state. pre: the state is complete.
func (st *State) shape() shape {
	s := shape{pools: len(st.pools), size: st.Size()}
	for i := range st.heaps {
		h := &st.heaps[i]
		s.heaps = append(s.heaps, span{h.at, h.at + h.size})
	}
	return s
}

// nextRun splits the first run off a packed heap's runs: its offset from the heap, and its bytes.
// pre: the runs are of a ring, or checked.
func nextRun(runs []byte) (at uint64, run, rest []byte) {
	size := binary.LittleEndian.Uint64(runs[8:])
	return binary.LittleEndian.Uint64(runs), runs[arena_c.HeapRun:][:size], runs[arena_c.HeapRun+size:]
}

// nextHeap splits the first packed heap off the end of an image.
func nextHeap(tail []byte) (runs, rest []byte) {
	size := binary.LittleEndian.Uint64(tail)
	return tail[packedWords:][:size], tail[packedWords+size:]
}

// Heap makes snapshots skip the free bytes of h, an arena.Heap on bytes of the state. So the cost
// and size of a snapshot follow h's bytes in use. most is the maximum number of bytes of h in a
// snapshot. NewRing takes about this amount of memory for each snapshot. A snapshot needs the bytes
// in use of h (arena.Stats.Used), 48 bytes for each free block of h, and at most 5 KiB for the
// control words of h. The size of the memory that h manages is always enough. If a snapshot needs
// more than most, Take returns an error that wraps [scope.ErrFull], with the number to set.
//
// Call Heap in the load before NewRing. Heap panics after NewRing, if h isn't on bytes of the
// state, and at a second call for h. Snapshots hold all bytes of a heap that wasn't passed to Heap,
// and of other arenas. After a Restore, free bytes of h may have any contents. So a game that
// compares hashes must write each byte of a new block before the next Take. arena.HeapOf does so.
func (st *State) Heap(h arena.Heap, most uint64) { st.pack("State.Heap", h, most, false) }

// Library is [State.Heap] for a heap whose blocks a C library fills. The library's addresses can't
// be checked, so [Ring.Apply] and [Ring.Read] need [State.Authenticated].
func (st *State) Library(h arena.Heap, most uint64) { st.pack("State.Library", h, most, true) }

func (st *State) pack(what string, h arena.Heap, most uint64, library bool) {
	header := *(**arena_c.Heap)(unsafe.Pointer(&h))
	bad := func(text string, args ...any) {
		panic(fmt.Sprintf("save: BUG: %s in region %s: %s", what, st.saved.Name, fmt.Sprintf(text, args...)))
	}
	if st.end != 0 {
		bad("it is called after NewRing; call it before, in the load")
	}
	if header == nil {
		bad("the heap is the zero arena.Heap")
	}
	own := packed{at: arena_c.Place(unsafe.Pointer(header), unsafe.Pointer(st.header())) - st.mark, what: what,
		library: library}
	if own.at >= st.header().Cursor-st.mark { // its words may be dead
		bad("the heap isn't on bytes of the state; make it there, after Begin")
	}
	own.size, own.first, own.last = header.End+arena_c.HeapAlign, header.First, header.End
	for i := range st.heaps {
		if o := &st.heaps[i]; own.at < o.at+o.size && o.at < own.at+own.size {
			bad("the heap at byte %#x overlaps the one at %#x, which %s named", own.at, o.at, o.what)
		}
	}
	header.SetPlain()
	if own.most = (most + 15) &^ 15; most >= own.size { // one run, of all bytes
		own.most = own.size + arena_c.HeapRun
	}
	st.heaps = append(st.heaps, own)
	slices.SortFunc(st.heaps, func(a, b packed) int { return cmp.Compare(a.at, b.at) })
}

// packHeaps packs the part's heaps into an image from `at` on, and returns their end. It returns an
// error if a heap was overwritten or doesn't fit in the image. The state's bytes may be from
// outside.
func (p *part) packHeaps(image []byte, at int, state []byte) (end int, err error) {
	for i := range p.heaps {
		h := &p.heaps[i]
		header := headerOf[arena_c.Heap](state[h.at:])
		if header.First != h.first || header.End != h.last || header.Plain != 1 {
			return 0, fmt.Errorf("the words of the arena.Heap at byte %#x of the state aren't those of the heap "+
				"that %s named", h.at, h.what)
		}
		size, code := header.Pack(image[at+packedWords:][:h.most])
		switch {
		case code == arena_c.Full:
			return 0, fmt.Errorf("the arena.Heap at byte %#x of the state has %d bytes in use and needs %d in a "+
				"snapshot, and %s permits %d: raise its most to %[3]d or more: %[6]w", h.at, header.Used, size,
				h.what, h.most, scope.ErrFull)
		case code != arena_c.OK:
			return 0, fmt.Errorf("the arena.Heap at byte %#x of the state is damaged: a header of a block was "+
				"overwritten", h.at)
		}
		binary.LittleEndian.PutUint64(image[at:], size)
		binary.LittleEndian.PutUint64(image[at+8:], uint64(p.from)+h.at)
		at += packedWords + int(size)
	}
	return at, nil
}

// unpackHeaps restores the part's heaps from the packed heaps in tail, and returns the rest.
func (p *part) unpackHeaps(state, tail []byte) (rest []byte) {
	for i := range p.heaps {
		h := &p.heaps[i]
		var runs []byte
		runs, tail = nextHeap(tail)
		if headerOf[arena_c.Heap](state[h.at:]).Unpack(h.size, runs) != arena_c.OK {
			panic(fmt.Sprintf("save: BUG: the image of the arena.Heap at byte %#x of the state was overwritten", h.at))
		}
	}
	return tail
}

// spread copies an image from outside into a flat image, whose bytes in heaps are zeros. It returns
// an error if the image isn't of these pieces; the flat image is then incomplete.
func spread(pieces []piece, fixed int, flat, image []byte) error {
	if len(image) < fixed {
		return fmt.Errorf("%d bytes, and %d are outside of heaps", len(image), fixed)
	}
	tail := image[fixed:]
	for _, p := range pieces {
		if !p.heap {
			copy(flat[p.flat:][:p.size], image[p.pos:])
			continue
		}
		bad := func(what string) error {
			return fmt.Errorf("byte %#x: the heap at byte %#x of the snapshot: %s", len(image)-len(tail), p.flat, what)
		}
		if len(tail) < packedWords {
			return bad("it is missing")
		}
		size, at := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
		tail = tail[packedWords:]
		if at != uint64(p.flat) || size > uint64(len(tail)) {
			return bad(fmt.Sprintf("its words say %d bytes at %#x", size, at))
		}
		end, from := len(tail)-int(size), uint64(0)
		for len(tail) != end {
			if len(tail)-end < arena_c.HeapRun {
				return bad("a run ends in its words")
			}
			at, n := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
			if at < from || at%16 != 0 || n%16 != 0 || n == 0 || at > uint64(p.size) || n > uint64(p.size)-at ||
				n > uint64(len(tail)-end-arena_c.HeapRun) {
				return bad(fmt.Sprintf("a run of %d bytes at %#x", n, at))
			}
			copy(flat[uint64(p.flat)+at:], tail[arena_c.HeapRun:][:n])
			tail, from = tail[arena_c.HeapRun+n:], at+n
		}
	}
	if len(tail) != 0 {
		return fmt.Errorf("byte %#x: %d bytes after the last heap", len(image)-len(tail), len(tail))
	}
	return nil
}

// segments walks an image by its positions in the flat image.
type segments struct {
	pieces []piece
	image  []byte
	tail   []byte // the heaps that follow
	runs   []byte // the runs that follow, of the heap at `heap`
	heap   int
	// The current segment; len(bytes) == 0 at the end.
	at    int
	bytes []byte
}

// segmentsOf returns the walk of a slot's image, at its first segment.
func (r *Ring) segmentsOf(image []byte) segments {
	w := segments{pieces: r.pieces, image: image, tail: image[r.fixed:]}
	w.next()
	return w
}

// skip passes n bytes of the current segment.
func (w *segments) skip(n int) {
	if w.at, w.bytes = w.at+n, w.bytes[n:]; len(w.bytes) == 0 {
		w.next()
	}
}

func (w *segments) next() {
	for {
		if len(w.runs) != 0 {
			var at uint64
			at, w.bytes, w.runs = nextRun(w.runs)
			w.at = w.heap + int(at)
			return
		}
		if len(w.pieces) == 0 {
			w.bytes = nil
			return
		}
		p := w.pieces[0]
		w.pieces = w.pieces[1:]
		if !p.heap {
			w.at, w.bytes = p.flat, w.image[p.pos:][:p.size]
			return
		}
		w.heap = p.flat
		w.runs, w.tail = nextHeap(w.tail)
	}
}

// flatten writes a slot's image into a flat image, whose bytes in heaps are zeros.
func (r *Ring) flatten(flat, image []byte) {
	for w := r.segmentsOf(image); len(w.bytes) != 0; w.next() {
		copy(flat[w.at:], w.bytes)
	}
}

// zeroFlat returns memory for the flat image of an empty slot: the slot's own image if both forms
// are the same, else r.flat with zeros in its heaps. Each use of it makes them zeros again, or
// leaves isZero false.
func (r *Ring) zeroFlat(to *slot) []byte {
	if r.isFlat() {
		return to.image
	}
	if !r.isZero {
		clear(r.flat)
	}
	r.isZero = false
	return r.flat
}

// wipe makes the bytes of an image zeros in r.flat.
func (r *Ring) wipe(image []byte) {
	for w := r.segmentsOf(image); len(w.bytes) != 0; w.next() {
		clear(r.flat[w.at:][:len(w.bytes)])
	}
}

// isWiped reports whether the bytes of an image are zeros in r.flat.
func (r *Ring) isWiped(image []byte) bool {
	for w := r.segmentsOf(image); len(w.bytes) != 0; w.next() {
		if !isZero(r.flat[w.at:][:len(w.bytes)]) {
			return false
		}
	}
	return true
}

// repack writes the packed form of a flat image, a snapshot from outside. It returns the size, or
// an error for a heap that can't be packed.
func (r *Ring) repack(image, flat []byte) (size int, err error) {
	if r.isFlat() {
		return len(image), nil
	}
	for _, p := range r.pieces {
		if !p.heap {
			copy(image[p.pos:][:p.size], flat[p.flat:])
		}
	}
	at := r.fixed
	for i := range r.parts {
		p := &r.parts[i]
		if at, err = p.packHeaps(image, at, flat[p.from:p.to]); err != nil {
			return 0, fmt.Errorf("region %s: %w", p.saved.Name, err)
		}
	}
	return at, nil
}

// isFlat reports whether no heap is packed, so that an image has one form.
func (r *Ring) isFlat() bool { return r.fixed == r.flatSize }

// flatOf returns the flat image of a slot, in memory of its own unless both forms are the same.
func (r *Ring) flatOf(s *slot) []byte {
	if r.isFlat() {
		return s.image
	}
	flat := make([]byte, r.flatSize)
	r.flatten(flat, s.bytes())
	return flat
}

// findLibraries makes the first heap of State.Library the state's library, unless it has one.
func (st *State) findLibraries() {
	for i := range st.heaps {
		if h := &st.heaps[i]; h.library && st.library == nil {
			st.library = &room{Room: stack.Room{Kind: arena_c.RoomHeap, Offset: st.mark + h.at, Size: h.size}, at: h.at}
		}
	}
}
