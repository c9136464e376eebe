package arena_c

// #cgo windows LDFLAGS: -Wl,-Bstatic -lwinpthread -Wl,-Bdynamic
// #include "callbacks.h"
// #include "sampler.h"
//
// // Functions that Go calls on an arena with a lock: they return the arena's own answers, which
// // C's callbacks can't. An address is a number, because cgo would inspect the Go object there and
// // panic over its pointers.
// typedef struct shared_kind {
//     void (*init)(void *shared, void *arena);
//     void *(*alloc)(void *shared, uint64_t size, uint64_t align);
//     int (*free)(void *shared, uintptr_t p);
//     void *(*realloc)(void *shared, uintptr_t p, uint64_t size);
//     int64_t (*size_of)(void *shared, uintptr_t p);
//     int (*check)(void *shared, uintptr_t p);
//     pthread_mutex_t *(*lock)(void *shared);
//     upfront_misuse (*misuse)(void *shared);
//     void *(*c_malloc)(void *context, size_t size);
//     void *(*c_calloc)(void *context, size_t count, size_t size);
//     void *(*c_realloc)(void *context, void *p, size_t size);
//     void (*c_free)(void *context, void *p);
//     size_t (*c_size)(void *context, void *p);
// } shared_kind;
//
// #define LOCKED(kind, type, call) \
//     upfront_shared_##kind *s = (upfront_shared_##kind *)shared; \
//     type answer; \
//     pthread_mutex_lock(&s->lock); \
//     answer = (call); \
//     pthread_mutex_unlock(&s->lock); \
//     return answer;
//
// #define SHARED(kind) \
//     static void shared_##kind##_init(void *shared, void *arena) { \
//         upfront_shared_##kind##_init((upfront_shared_##kind *)shared, (upfront_##kind *)arena); \
//     } \
//     static void *shared_##kind##_alloc(void *shared, uint64_t size, uint64_t align) { \
//         LOCKED(kind, void *, upfront_##kind##_alloc(s->arena, size, align)) \
//     } \
//     static int shared_##kind##_free(void *shared, uintptr_t p) { \
//         LOCKED(kind, int, upfront_##kind##_free(s->arena, (void *)p)) \
//     } \
//     static void *shared_##kind##_realloc(void *shared, uintptr_t p, uint64_t size) { \
//         LOCKED(kind, void *, upfront_##kind##_realloc(s->arena, (void *)p, size)) \
//     } \
//     static int64_t shared_##kind##_size_of(void *shared, uintptr_t p) { \
//         LOCKED(kind, int64_t, upfront_##kind##_size_of(s->arena, (void *)p)) \
//     } \
//     static int shared_##kind##_check(void *shared, uintptr_t p) { \
//         LOCKED(kind, int, upfront_##kind##_check(s->arena, (void *)p)) \
//     } \
//     static pthread_mutex_t *shared_##kind##_lock(void *shared) { return &((upfront_shared_##kind *)shared)->lock; } \
//     static upfront_misuse shared_##kind##_misuse(void *shared) { LOCKED(kind, upfront_misuse, s->misuse) } \
//     static const shared_kind shared_##kind = {shared_##kind##_init, shared_##kind##_alloc, shared_##kind##_free, \
//         shared_##kind##_realloc, shared_##kind##_size_of, shared_##kind##_check, shared_##kind##_lock, \
//         shared_##kind##_misuse, \
//         upfront_shared_##kind##_malloc, upfront_shared_##kind##_calloc, upfront_shared_##kind##_realloc, \
//         upfront_shared_##kind##_free, upfront_shared_##kind##_size};
//
// SHARED(heap)
// SHARED(buddy)
//
// // An arena with a lock, of any kind: the structs of the kinds differ in a pointer's type.
// typedef struct shared {
//     const shared_kind *kind;
//     uint64_t smallest;
//     upfront_shared_heap of;
//     /* of an arena with a profile: */
//     int64_t left; /* bytes up to the next sample point */
//     uint64_t random;
//     uint64_t number; /* of the name of the arena around it */
// } shared;
//
// // The profile's functions, once an arena has a profile.
// static const upfront_sampler *sampler;
//
// static inline shared *shared_of(void *of) { return (shared *)(void *)((char *)of - offsetof(shared, of)); }
//
// // The bytes of a block in its arena.
// static inline uint64_t heap_bytes(const shared *s, uint64_t size, uint64_t align) {
//     (void)s, (void)align;
//     return size <= 16 ? UPFRONT_HEAP_LEAST : upfront_round_up(size, 16) + UPFRONT_HEAP_HEADER;
// }
// static inline uint64_t buddy_bytes(const shared *s, uint64_t size, uint64_t align) {
//     size = size < align ? align : size;
//     return size <= s->smallest ? s->smallest : UINT64_C(1) << (64 - __builtin_clzll(size - 1));
// }
//
// // Counts a new block, and reports whether a sample point is in it. pre: the lock is held
// static inline int is_sampled(shared *s, uint64_t bytes) {
//     if ((s->left -= (int64_t)bytes) >= 0)
//         return 0;
//     s->left = sampler->gap(&s->random);
//     return 1;
// }
//
// #define CALLER ((uintptr_t)__builtin_return_address(0))
//
// // The parts of a call that makes a block q. The sample needs a walk of the stack, so it is kept
// // after the lock. The block has no owner before.
// #define BEGIN(kind) \
//     upfront_shared_##kind *of = (upfront_shared_##kind *)context; \
//     shared *s = shared_of(context); \
//     uint64_t bytes = 0; \
//     int taken = 1, point = 0; \
//     void *q;
// #define MADE(kind, align) \
//     if (q != NULL) { \
//         bytes = kind##_bytes(s, size, align); \
//         point = is_sampled(s, bytes); \
//     }
// #define END(caller) \
//     upfront_shared_unlock(&of->lock, taken); \
//     if (point) \
//         sampler->add(q, bytes, (uint32_t)s->number, caller); \
//     return q;
//
// // The functions of an arena whose blocks are in the profile. Those of the other arenas count
// // nothing.
// #define PROFILED(kind) \
//     static void *profiled_##kind##_alloc(void *context, uint64_t size, uint64_t align) { \
//         BEGIN(kind) \
//         pthread_mutex_lock(&of->lock); \
//         q = upfront_##kind##_alloc(of->arena, size, align); \
//         MADE(kind, align) \
//         END(0) \
//     } \
//     static int profiled_##kind##_free(void *context, uintptr_t p) { \
//         upfront_shared_##kind *of = (upfront_shared_##kind *)context; \
//         int code; \
//         pthread_mutex_lock(&of->lock); \
//         code = upfront_##kind##_free(of->arena, (void *)p); \
//         if (code == UPFRONT_OK || code == UPFRONT_CORRUPT) \
//             sampler->drop((void *)p); \
//         pthread_mutex_unlock(&of->lock); \
//         return code; \
//     } \
//     static void *profiled_##kind##_realloc(void *context, uintptr_t p, uint64_t size) { \
//         BEGIN(kind) \
//         pthread_mutex_lock(&of->lock); \
//         q = upfront_##kind##_realloc(of->arena, (void *)p, size); \
//         if (q != NULL) \
//             sampler->drop((void *)p); \
//         MADE(kind, 0) \
//         END(0) \
//     } \
//     static inline void *profiled_##kind##_take(void *context, size_t size, uintptr_t caller) { \
//         BEGIN(kind) \
//         taken = upfront_shared_lock(&of->lock); \
//         q = upfront_shared_##kind##_malloc_in(of, size); \
//         MADE(kind, 0) \
//         END(caller) \
//     } \
//     static void *profiled_##kind##_c_malloc(void *context, size_t size) { \
//         return profiled_##kind##_take(context, size, CALLER); \
//     } \
//     static void *profiled_##kind##_c_calloc(void *context, size_t count, size_t size) { \
//         void *p = NULL; \
//         if (size == 0 || count <= SIZE_MAX / size) \
//             p = profiled_##kind##_take(context, count * size, CALLER); \
//         return p == NULL ? NULL : memset(p, 0, count * size); \
//     } \
//     static void *profiled_##kind##_c_realloc(void *context, void *p, size_t size) { \
//         BEGIN(kind) \
//         taken = upfront_shared_lock(&of->lock); \
//         q = upfront_shared_##kind##_realloc_in(of, p, size); \
//         if (q != NULL) \
//             sampler->drop(p); \
//         MADE(kind, 0) \
//         END(CALLER) \
//     } \
//     static void profiled_##kind##_c_free(void *context, void *p) { \
//         upfront_shared_##kind *of = (upfront_shared_##kind *)context; \
//         int taken, code; \
//         if (p == NULL) \
//             return; \
//         taken = upfront_shared_lock(&of->lock); \
//         code = upfront_shared_##kind##_free_in(of, p); \
//         if (code == UPFRONT_OK || code == UPFRONT_CORRUPT) \
//             sampler->drop(p); \
//         upfront_shared_unlock(&of->lock, taken); \
//     } \
//     static const shared_kind profiled_##kind = {shared_##kind##_init, profiled_##kind##_alloc, \
//         profiled_##kind##_free, profiled_##kind##_realloc, shared_##kind##_size_of, shared_##kind##_check, \
//         shared_##kind##_lock, shared_##kind##_misuse, profiled_##kind##_c_malloc, profiled_##kind##_c_calloc, \
//         profiled_##kind##_c_realloc, profiled_##kind##_c_free, upfront_shared_##kind##_size};
//
// PROFILED(heap)
// PROFILED(buddy)
//
// /* in the order of SharedInit */
// static const shared_kind *const shared_kinds[] = {&shared_heap, &shared_buddy, &profiled_heap, &profiled_buddy};
//
// static void shared_init(shared *s, int kind, void *arena, const void *with, uint32_t number) {
//     memset(s, 0, sizeof *s);
//     s->kind = shared_kinds[kind + (with != NULL ? 2 : 0)];
//     s->smallest = kind != 0 ? ((const upfront_buddy *)arena)->smallest : 0;
//     s->kind->init(&s->of, arena);
//     if (with != NULL) {
//         sampler = (const upfront_sampler *)with;
//         s->number = number;
//         s->random = sampler->random();
//         s->left = sampler->gap(&s->random);
//     }
// }
// static uint64_t sample_moment(const void *with) { return ((const upfront_sampler *)with)->moment(); }
// static void samples_rewind(const void *with, const void *from, uint64_t size, uint64_t moment) {
//     ((const upfront_sampler *)with)->rewind(from, size, moment);
// }
// static void *shared_alloc(shared *s, uint64_t size, uint64_t align, uint32_t site)
//     UPFRONT_AT_SITE(void *, s->kind->alloc(&s->of, size, align))
// static int shared_free(shared *s, uintptr_t p, uint32_t site) UPFRONT_AT_SITE(int, s->kind->free(&s->of, p))
// static void *shared_realloc(shared *s, uintptr_t p, uint64_t size, uint32_t site)
//     UPFRONT_AT_SITE(void *, s->kind->realloc(&s->of, p, size))
// static int64_t shared_size_of(shared *s, uintptr_t p) { return s->kind->size_of(&s->of, p); }
// static int shared_free_sized(shared *s, uintptr_t p, uint64_t had, uint32_t site) {
//     return shared_size_of(s, p) == (int64_t)had ? shared_free(s, p, site) : 1;
// }
// static void *shared_realloc_sized(shared *s, uintptr_t p, uint64_t had, uint64_t size, uint32_t site) {
//     return shared_size_of(s, p) == (int64_t)had ? shared_realloc(s, p, size, site) : NULL;
// }
// static int shared_check(shared *s, uintptr_t p) { return s->kind->check(&s->of, p); }
// static void shared_lock(shared *s) { pthread_mutex_lock(s->kind->lock(&s->of)); }
// static void shared_unlock(shared *s) { pthread_mutex_unlock(s->kind->lock(&s->of)); }
// static upfront_misuse shared_misuse(shared *s) { return s->kind->misuse(&s->of); }
// static void shared_functions(shared *s, void *out[6]) {
//     out[0] = &s->of;
//     out[1] = (void *)(uintptr_t)s->kind->c_malloc;
//     out[2] = (void *)(uintptr_t)s->kind->c_calloc;
//     out[3] = (void *)(uintptr_t)s->kind->c_realloc;
//     out[4] = (void *)(uintptr_t)s->kind->c_free;
//     out[5] = (void *)(uintptr_t)s->kind->c_size;
// }
// #cgo nocallback shared_init
// #cgo noescape sample_moment
// #cgo nocallback sample_moment
// #cgo noescape samples_rewind
// #cgo nocallback samples_rewind
// #cgo noescape shared_alloc
// #cgo nocallback shared_alloc
// #cgo noescape shared_free
// #cgo nocallback shared_free
// #cgo noescape shared_realloc
// #cgo nocallback shared_realloc
// #cgo noescape shared_free_sized
// #cgo nocallback shared_free_sized
// #cgo noescape shared_realloc_sized
// #cgo nocallback shared_realloc_sized
// #cgo noescape shared_size_of
// #cgo nocallback shared_size_of
// #cgo noescape shared_check
// #cgo nocallback shared_check
// #cgo noescape shared_lock
// #cgo nocallback shared_lock
// #cgo noescape shared_unlock
// #cgo nocallback shared_unlock
// #cgo noescape shared_misuse
// #cgo nocallback shared_misuse
// #cgo noescape shared_functions
// #cgo nocallback shared_functions
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Shared is an arena with a lock for threads of C and Go (callbacks.h), in memory whose address C
// may keep. Race builds don't report its calls as crossings (race_on.go): the runtime treats a call
// into C as synchronization, and the lock makes it one.
type Shared struct {
	_ [unsafe.Sizeof(C.shared{})]byte
}

func (s *Shared) c() *C.shared { return (*C.shared)(checked(s)) }

// profile is C's upfront_sampler, or nil while no Shared has blocks in the profile of C's malloc.
var profile atomic.Pointer[C.upfront_sampler]

// SharedInit makes the lock of a heap or a buddy with that header, in the room. It returns nil if
// the room is refused. If C's malloc has a profile, blocks of an arena in a budget are in it. The
// profile doesn't know when an arena on other bytes ends.
func SharedInit(r Room, kind RoomKind, arena unsafe.Pointer) *Shared {
	p := r.of(RoomShared)
	if p == nil {
		return nil
	}
	var functions unsafe.Pointer
	var number uint32
	if h, in := ProcessHeapOf(), r.owner; h != nil && in != nil {
		if functions, number = h.Sampler(in.(interface{ String() string }).String()); functions != nil {
			profile.Store((*C.upfront_sampler)(functions))
		}
	}
	C.shared_init((*C.shared)(p), C.int(one(kind == RoomBuddy)), arena, functions, C.uint32_t(number))
	s := made[Shared](r, p)
	RoomHasLock(kind, arena, true)
	return s
}

// Alloc is the arena's alloc, under the lock.
func (s *Shared) Alloc(size, align uint64) unsafe.Pointer {
	return C.shared_alloc(s.c(), C.uint64_t(size), C.uint64_t(align), C.uint32_t(Here(1)))
}

// Free is the arena's free. It reports the bytes as freed to the race detector first, while the
// block is the caller's.
func (s *Shared) Free(p unsafe.Pointer) Code {
	s.dies(p)
	return Code(C.shared_free(s.c(), C.uintptr_t(uintptr(p)), C.uint32_t(Here(1))))
}

// Realloc is the arena's realloc.
func (s *Shared) Realloc(p unsafe.Pointer, size uint64) unsafe.Pointer {
	s.dies(p)
	return C.shared_realloc(s.c(), C.uintptr_t(uintptr(p)), C.uint64_t(size), C.uint32_t(Here(1)))
}

// FreeSized is Free for a block of `had` bytes, by SizeOf, in one call of C. It reports false, and
// frees nothing, if p isn't such a block.
func (s *Shared) FreeSized(p unsafe.Pointer, had uint64) (code Code, ok bool) {
	s.dies(p)
	code = Code(C.shared_free_sized(s.c(), C.uintptr_t(uintptr(p)), C.uint64_t(had), C.uint32_t(Here(1))))
	return code, code != 1
}

// ReallocSized is Realloc for a block of `had` bytes, in one call of C. For any other p it returns
// nil.
func (s *Shared) ReallocSized(p unsafe.Pointer, had, size uint64) unsafe.Pointer {
	s.dies(p)
	return C.shared_realloc_sized(s.c(), C.uintptr_t(uintptr(p)), C.uint64_t(had), C.uint64_t(size),
		C.uint32_t(Here(1)))
}

// SizeOf is the arena's size_of.
func (s *Shared) SizeOf(p unsafe.Pointer) (size uint64, code Code) {
	return found(C.shared_size_of(s.c(), C.uintptr_t(uintptr(p))))
}

// Check is the arena's check: it returns OK, or the code with which Free would refuse p.
func (s *Shared) Check(p unsafe.Pointer) Code {
	return Code(C.shared_check(s.c(), C.uintptr_t(uintptr(p))))
}

// dies reports a block's bytes as freed in race builds.
func (s *Shared) dies(p unsafe.Pointer) {
	if Race {
		if size, code := s.SizeOf(p); code == OK {
			raceWrite(p, uintptr(size))
		}
	}
}

// MayLive is RoomMayLive for the arena.
func (s *Shared) MayLive() {
	kind := RoomHeap
	if s.Smallest() != 0 {
		kind = RoomBuddy
	}
	RoomMayLive(kind, s.Arena(), true)
}

// Smallest returns the size of the smallest block of a buddy; 0 for a heap.
func (s *Shared) Smallest() uint64 { return uint64(s.c().smallest) }

// Raced returns the number of calls that a checked build refused because another was running
// without the lock.
func (s *Shared) Raced() uint64 {
	if s.Smallest() != 0 {
		return (*Buddy)(s.Arena()).Raced
	}
	return (*Heap)(s.Arena()).Raced
}

// Arena returns the header of the arena.
func (s *Shared) Arena() unsafe.Pointer { return unsafe.Pointer(s.c().of.arena) }

// Lock locks the arena for the thread. The caller must have locked its goroutine to the thread.
func (s *Shared) Lock() { C.shared_lock(s.c()) }

// Unlock unlocks the arena.
func (s *Shared) Unlock() { C.shared_unlock(s.c()) }

// Misuse returns the number of calls in upfront_misuse, and the name, address and code of the last.
func (s *Shared) Misuse() (calls uint64, call string, address uintptr, code Code) {
	m := C.shared_misuse(s.c())
	if m.calls == 0 {
		return 0, "", 0, OK
	}
	return uint64(m.calls), C.GoString(m.call), uintptr(m.address), Code(m.code)
}

// Functions returns the context and the functions malloc, calloc, realloc, free and size for C.
func (s *Shared) Functions() (out [6]unsafe.Pointer) {
	C.shared_functions(s.c(), &out[0])
	return out
}

// SampleMoment returns the moment of a snapshot of arenas, for RewindSamples. It returns 0 while no
// Shared is in a profile.
func SampleMoment() uint64 {
	if with := profile.Load(); with != nil {
		return uint64(C.sample_moment(unsafe.Pointer(with)))
	}
	return 0
}

// RewindSamples restores the samples of Shared arenas in a range to the moment of a snapshot, from
// which the caller has restored the bytes. For moment 0 all samples there end. Cost: O(samples);
// one load while no Shared is in a profile.
func RewindSamples(from unsafe.Pointer, size, moment uint64) {
	if with := profile.Load(); with != nil {
		C.samples_rewind(unsafe.Pointer(with), from, C.uint64_t(size), C.uint64_t(moment))
	}
}
