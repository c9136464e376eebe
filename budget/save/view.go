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

// View is the argument of a function passed to [State.Verify]: a snapshot from outside, before the
// ring holds the snapshot. [At] and [SliceAt] return the snapshot's copy of a value of the state.
// [Get], [GetSlice] and [GetString] return values that links of the snapshot lead to. [All] and
// [AllHandles] return chunks of the snapshot's pools. The function may only read
// these values; a checked build panics if a function wrote to the snapshot and none failed. The
// View is valid until the function returns. Outside of functions of Verify, the calls above panic.
type View struct{ of *viewed }

// viewed is the snapshot of a View. Its part is nil while no function of Verify runs.
type viewed struct {
	part  *part
	state []byte
}

// Verify registers fn, which checks each snapshot from outside. [Ring.Apply] and [Ring.Read] call
// fn after the checks of control words, bools and links, and before the ring holds the snapshot. A
// number in such a snapshot may have any value, so fn checks the numbers by which the game indexes,
// compares or counts. If fn returns an error, Apply or Read returns the error with the names of the
// region and the snapshot, and nothing has changed. Functions run in the order of registration, up
// to the first error. The functions don't run for snapshots of [Ring.Take]. Verification makes no
// Go allocation apart from those of fn.
func (st *State) Verify(fn func(View) error) { st.verify = append(st.verify, fn) }

// admit returns an error if a flat image, a snapshot from outside, can't be a state of this
// program.
func (r *Ring) admit(flat []byte, number uint64) error {
	for i := range r.parts {
		if err := r.parts[i].check(flat); err != nil {
			return err
		}
	}
	for i := range r.parts {
		if err := r.parts[i].verified(flat); err != nil {
			return fmt.Errorf("region %s, snapshot %d: %w", r.parts[i].saved.Name, number, err)
		}
	}
	return nil
}

// verified calls the functions of Verify. In checked builds it panics if a checksum shows that a
// function wrote to the snapshot.
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

// at returns the snapshot's copy of size bytes at p.
func (v *viewed) at(p unsafe.Pointer, size uint64, what string) unsafe.Pointer {
	at := arena_c.Place(p, unsafe.Pointer(v.part.header())) - v.part.mark
	if state := uint64(len(v.state)); at > state || size > state-at {
		panic(fmt.Sprintf("save: BUG: %s: the pointer isn't into the state of region %s", what,
			v.part.saved.Name))
	}
	return unsafe.Add(startOf(v.state), at)
}

// to returns the address that a link with this offset leads to. It returns nil if the values there
// aren't aligned, or are neither in the state nor readable.
func (v *viewed) to(stored, count, size, align uint64) unsafe.Pointer {
	h := v.part.header()
	base := v.part.saved.Stack.Row().Size()
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

func (v *viewed) pool(h *arena_c.Pool, what string) *pool {
	for i := range v.part.pools {
		if p := &v.part.pools[i]; p.header == h {
			return p
		}
	}
	panic(fmt.Sprintf("save: BUG: %s: the pool isn't in the state of region %s", what,
		v.part.saved.Name))
}

// live returns chunk i, or nil if it isn't live.
func (v *viewed) live(p *pool, i uint64) unsafe.Pointer {
	count := uint64(p.header.Count)
	if i >= count || p.states(v.state)[count-1-i] != arena_c.ChunkLive {
		return nil
	}
	return unsafe.Add(startOf(v.state), p.first+i*p.header.Stride)
}

func (v *viewed) handle(p *pool, i uint64) uint64 {
	at := p.first + p.header.Numbers - p.header.Chunks + 4*(uint64(p.header.Count)+i)
	return uint64(binary.LittleEndian.Uint32(v.state[at:]))<<32 | i
}

// At returns the snapshot's copy of *p. p must point into the state, for example to the root;
// otherwise At panics. At costs a few comparisons, and makes no Go allocation.
func At[T any](v View, p *T) *T {
	return (*T)(v.its().at(unsafe.Pointer(p), uint64(unsafe.Sizeof(*p)), "At"))
}

// SliceAt is [At] for a slice into the state. It returns nil for an empty slice.
func SliceAt[T any](v View, list []T) []T {
	viewed := v.its()
	if len(list) == 0 {
		return nil
	}
	size := uint64(len(list)) * uint64(unsafe.Sizeof(list[0]))
	p := viewed.at(unsafe.Pointer(unsafe.SliceData(list)), size, "SliceAt")
	return unsafe.Slice((*T)(p), len(list))
}

// Snapshot is [SliceAt] for bytes. The In methods of package container call it.
func (v View) Snapshot(state []byte) []byte { return SliceAt(v, state) }

// Get returns the value that a link leads to. The link may lead into the snapshot, or to a value
// passed to [Readable]. For any other link Get returns nil. Get costs as much as [At].
func Get[T any](v View, p arena.Ptr[T]) *T {
	var one T
	stored := *(*uint64)(unsafe.Pointer(&p))
	return (*T)(v.its().to(stored, 1, uint64(unsafe.Sizeof(one)), uint64(unsafe.Alignof(one))))
}

// GetSlice is [Get] for an arena.Slice.
func GetSlice[T any](v View, s arena.Slice[T]) []T {
	var one T
	words := (*[2]uint64)(unsafe.Pointer(&s))
	p := v.its().to(words[0], words[1], uint64(unsafe.Sizeof(one)), uint64(unsafe.Alignof(one)))
	if p == nil || words[1] > 1<<38 {
		return nil
	}
	return unsafe.Slice((*T)(p), words[1])
}

// GetString is [Get] for an arena.String. The string is valid until the function of Verify returns.
func GetString(v View, s arena.String) string {
	bytes := GetSlice(v, *(*arena.Slice[byte])(unsafe.Pointer(&s)))
	return unsafe.String(unsafe.SliceData(bytes), len(bytes))
}

// All returns an iterator over the live values in a pool of the snapshot, each with the number of
// its chunk. The iteration panics if the pool isn't in the state. The iteration costs O(chunks).
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

// AllHandles is [All] for a pool with handles.
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
