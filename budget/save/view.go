package save

import (
	"encoding/binary"
	"fmt"
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// View is a snapshot that came from outside, before the ring holds it: what a function of
// [State.Verify] looks at. It lies elsewhere than the state. [At] and [SliceAt] give what the
// snapshot has in the place of something of the state, [Get], [GetSlice] and [GetString] what its
// links lead to, [All], [AllHandles] and [GetHandle] what its pools hold. What they give is to be
// read: a checked build panics when a function wrote there. A View is good until the function
// returns; then all of these panic.
type View struct{ of *viewed }

// viewed is what a View shows: nothing (nil) when nobody verifies.
type viewed struct {
	part  *part
	state []byte
}

// Verify has fn called with each snapshot that comes from outside, by [Ring.Apply] or [Ring.Read],
// after all else was checked and before the ring holds it. fn looks at what the game indexes by,
// compares and counts: all numbers but bools may be any. Its error, behind the names of the region
// and the snapshot, is that of Apply or Read, and then nothing has changed. Of several functions
// the first error counts. A snapshot that [Ring.Take] made is never verified. Cost: none here; no
// Go allocation when a snapshot is verified but those of fn.
func (st *State) Verify(fn func(View) error) { st.verify = append(st.verify, fn) }

// admit says why the spare image, from outside, can't be the snapshot of that number.
func (r *Ring) admit(number uint64) error {
	for i := range r.parts {
		if err := r.parts[i].check(r.spare); err != nil {
			return err
		}
	}
	for i := range r.parts {
		if err := r.parts[i].verified(r.spare); err != nil {
			return fmt.Errorf("region %s, snapshot %d: %w", r.parts[i].saved.Name(), number, err)
		}
	}
	return nil
}

// verified asks the program's functions.
func (p *part) verified(image []byte) error {
	if len(p.verify) == 0 {
		return nil
	}
	sum := uint32(0)
	if arena_c.Checked {
		sum = sumOf(image)
	}
	p.view = viewed{p, image[p.from:p.to]}
	defer func() { p.view = viewed{} }()
	for _, fn := range p.verify {
		if err := fn(View{&p.view}); err != nil {
			return err
		}
	}
	if arena_c.Checked && sum != sumOf(image) {
		panic("save: BUG: a function of State.Verify wrote to the snapshot, which it may only read")
	}
	return nil
}

func (v View) its() *viewed {
	if v.of == nil || v.of.part == nil {
		panic("save: BUG: a View is used outside of its function of State.Verify")
	}
	return v.of
}

// at is what the snapshot has in the place of size bytes at p.
func (v *viewed) at(p unsafe.Pointer, size uint64, what string) unsafe.Pointer {
	at := arena_c.Place(p, unsafe.Pointer(v.part.header())) - v.part.mark
	if state := uint64(len(v.state)); at > state || size > state-at {
		panic(fmt.Sprintf("save: BUG: %s of something that isn't in the state of region %s", what,
			v.part.saved.Name()))
	}
	return unsafe.Add(startOf(v.state), at)
}

// to is what an offset of a link leads to, as far as a link may lead there; else nil.
func (v *viewed) to(stored, count, size, align uint64) unsafe.Pointer {
	h := v.part.header()
	base := v.part.saved.Stack().Row().Size()
	if stored == 0 || stored > base || size != 0 && count > base/size ||
		(stored-1)&(align-1) != 0 {
		return nil
	}
	at := h.Start + stored - 1
	switch size *= count; {
	case at >= v.part.mark && at <= v.part.end && size <= v.part.end-at:
		return unsafe.Add(startOf(v.state), at-v.part.mark)
	case v.part.isReadable(at, at+size):
		return h.At(at)
	}
	return nil
}

// pool is the pool of a header.
func (v *viewed) pool(h *arena_c.Pool, what string) *pool {
	for i := range v.part.pools {
		if p := &v.part.pools[i]; p.header == h {
			return p
		}
	}
	panic(fmt.Sprintf("save: BUG: %s of a pool that isn't in the state of region %s", what,
		v.part.saved.Name()))
}

// live is a chunk, or nil.
func (v *viewed) live(p *pool, i uint64) unsafe.Pointer {
	count := uint64(p.header.Count)
	if i >= count || p.states(v.state)[count-1-i] != arena_c.ChunkLive {
		return nil
	}
	return unsafe.Add(startOf(v.state), p.first+i*p.header.Stride)
}

// handle is that of a chunk.
func (v *viewed) handle(p *pool, i uint64) uint64 {
	at := p.first + p.header.Numbers - p.header.Chunks + 4*(uint64(p.header.Count)+i)
	return uint64(binary.LittleEndian.Uint32(v.state[at:]))<<32 | i
}

// At gives what the snapshot has in the place of p, which points into the state: of its root, say.
// Any other p is a caller's bug and panics. Cost: some comparisons, no Go allocation.
func At[T any](v View, p *T) *T {
	return (*T)(v.its().at(unsafe.Pointer(p), uint64(unsafe.Sizeof(*p)), "At"))
}

// SliceAt is [At] of a slice into the state. An empty one gives nil.
func SliceAt[T any](v View, list []T) []T {
	viewed := v.its()
	if len(list) == 0 {
		return nil
	}
	size := uint64(len(list)) * uint64(unsafe.Sizeof(list[0]))
	p := viewed.at(unsafe.Pointer(unsafe.SliceData(list)), size, "SliceAt")
	return unsafe.Slice((*T)(p), len(list))
}

// Snapshot is [SliceAt] of bytes: In of a container of package container asks for it.
func (v View) Snapshot(state []byte) []byte { return SliceAt(v, state) }

// Get gives what a link of the snapshot leads to: in the snapshot, or among the values that
// [Readable] named. It is nil where the link is nil, or leads elsewhere. Cost: as that of [At].
func Get[T any](v View, p arena.Ptr[T]) *T {
	var one T
	stored := *(*uint64)(unsafe.Pointer(&p))
	return (*T)(v.its().to(stored, 1, uint64(unsafe.Sizeof(one)), uint64(unsafe.Alignof(one))))
}

// GetSlice is [Get] of an arena.Slice.
func GetSlice[T any](v View, s arena.Slice[T]) []T {
	var one T
	words := (*[2]uint64)(unsafe.Pointer(&s))
	p := v.its().to(words[0], words[1], uint64(unsafe.Sizeof(one)), uint64(unsafe.Alignof(one)))
	if p == nil || words[1] > 1<<38 {
		return nil
	}
	return unsafe.Slice((*T)(p), words[1])
}

// GetString is [Get] of an arena.String. It is a view of bytes that don't outlive the function.
func GetString(v View, s arena.String) string {
	bytes := GetSlice(v, *(*arena.Slice[byte])(unsafe.Pointer(&s)))
	return unsafe.String(unsafe.SliceData(bytes), len(bytes))
}

// All ranges over the values that are live in a pool of the snapshot, and the numbers of their
// chunks. A pool that isn't in the state is a caller's bug and panics. Cost: O(chunks).
func All[T any](v View, p scope.Pool[T]) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		viewed := v.its()
		pool := viewed.pool(scope.HeaderOf(p), "All")
		for i := range int(pool.header.Count) {
			if x := (*T)(viewed.live(pool, uint64(i))); x != nil && !yield(i, x) {
				return
			}
		}
	}
}

// AllHandles is [All] of a pool whose values have handles.
func AllHandles[T any](v View, p scope.HandlePool[T]) iter.Seq2[arena.Handle[T], *T] {
	return func(yield func(arena.Handle[T], *T) bool) {
		viewed := v.its()
		pool := viewed.pool(scope.HeaderOfHandles(p), "AllHandles")
		for i := range uint64(pool.header.Count) {
			x := (*T)(viewed.live(pool, i))
			if x != nil && !yield(arena.Handle[T](viewed.handle(pool, i)), x) {
				return
			}
		}
	}
}

// GetHandle is the value that h names in a pool of the snapshot, or nil, as the pool's At says.
func GetHandle[T any](v View, p scope.HandlePool[T], h arena.Handle[T]) *T {
	viewed := v.its()
	pool := viewed.pool(scope.HeaderOfHandles(p), "GetHandle")
	i := uint64(h) & arena_c.HandleIndex
	x := viewed.live(pool, i)
	if x == nil || viewed.handle(pool, i) != uint64(h) {
		return nil
	}
	return (*T)(x)
}
