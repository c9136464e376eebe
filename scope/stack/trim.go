package stack

import (
	"os"
	"runtime"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Discard calls Discard of the Stack's Pages.
func (o *roomOwner) Discard(p unsafe.Pointer, size uint64) (bytes uint64, err error) {
	return o.Pages.Discard(p, size)
}

// Unused returns the whole pages between both ends of the arena. There are none while a Builder
// uses the free bytes.
func (st *Stack) Unused() (p unsafe.Pointer, size uint64) {
	if (st.h.Odd|st.row.Temp.Odd)&arena_c.Building != 0 {
		return nil, 0
	}
	page, at := uint64(os.Getpagesize()), uint64(uintptr(unsafe.Pointer(st.h)))
	from, end := roundUp(at+st.h.Cursor, page), (at+st.h.Limit)&^(page-1)
	if st.h.Limit == st.row.End { // no other arena has bytes in the last page
		end = roundUp(at+st.h.Limit, page)
	}
	if from >= end {
		return nil, 0
	}
	return unsafe.Add(unsafe.Pointer(st.h), from-at), end - from
}

// TrimUnused returns the pages of Unused to the operating system. Its result is that of Discard of
// [Pages].
func (st *Stack) TrimUnused() (bytes uint64, err error) {
	p, size := st.Unused()
	if size == 0 {
		return 0, nil
	}
	return st.Pages.Discard(p, size)
}

// TrimHeaps trims each heap of package arena in an open scope. If the heap has a Shared, TrimHeaps
// takes the lock of the Shared. It leaves out heaps whose bytes may have a new owner before the
// scope closes: heaps in a block or a chunk of another arena, and heaps that C made. The Stack's
// owner calls TrimHeaps while other goroutines use the heaps only through a Shared.
func (st *Stack) TrimHeaps() (bytes uint64, err error) {
	if st.h.Odd&oddRooms == 0 || arena_c.Checked { // the fills of free bytes stay
		return 0, nil
	}
	list := st.Rooms() // a copy: an owner of a Shared's lock may wait for the lock of the rooms
	for i := range list {
		n, err := st.trimHeap(list, &list[i])
		if bytes += n; err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}

func (st *Stack) trimHeap(list []Room, room *Room) (bytes uint64, err error) {
	if room.Kind != arena_c.RoomHeap || slices.ContainsFunc(list, room.isOn) || st.inPool(room) {
		return 0, nil
	}
	header, ok := st.header(room)
	if !ok {
		return 0, nil
	}
	if lock := lockOf(list, room, header); lock != nil {
		runtime.LockOSThread() // C's lock is unlocked by the thread that locked it
		defer runtime.UnlockOSThread()
		lock.Lock()
		defer lock.Unlock()
	}
	return (*arena_c.Heap)(header).Trim(st.Pages.Discard)
}

// inPool reports whether the room begins in a chunk of an open pool of the arena.
func (st *Stack) inPool(room *Room) bool {
	for i := range st.row.Pools {
		p := st.row.Pool(i)
		if at := st.h.Offset(unsafe.Pointer(p)) + p.Chunks; room.Offset-at < uint64(p.Count)*p.Stride {
			return true
		}
	}
	return false
}

// lockOf returns the Shared of a heap, or nil.
func lockOf(list []Room, heap *Room, header unsafe.Pointer) *arena_c.Shared {
	if heap.locks == 0 {
		return nil
	}
	for i := range list {
		if list[i].Kind != arena_c.RoomShared || !list[i].isBlockOf(*heap) {
			continue
		}
		if s := (*arena_c.Shared)(unsafe.Add(header, list[i].Offset-heap.Offset)); s.Arena() == header {
			return s
		}
	}
	return nil
}
