/* caller.h - finds and names the code that called malloc: the lines of Go above a call from Go, the
 * frames of C below it, and the symbol of C.
 *
 * Algorithm  A thread in a call from Go has the runtime's g0 in a thread-local word. g0 leads to
 *            the goroutine, which keeps its frame pointer for the time of the call; from there the
 *            frames form a list. The table of functions that each Go program has for tracebacks
 *            (pclntab) names function, file and line, also in a stripped program, and has the calls
 *            that were inlined. glibc's backtrace reads the frames of C. A symbol of C is in the
 *            dynamic symbol table of its object.
 * Cost       upfront_go_frames: some ten loads, and two a frame. upfront_c_frames: two system
 *            calls, and 0.2 us a frame. upfront_go_line and upfront_go_parent: a binary search
 *            among the program's functions. upfront_symbol_of: O(symbols of the object).
 * Threads    Any, at any time, except for upfront_go_begin, upfront_c_begin and upfront_code_...,
 *            which run at the start. The others only read, take no lock and allocate nothing. */
#ifndef UPFRONT_CALLER_H
#define UPFRONT_CALLER_H

#include <stdint.h>

/* Finds the words of Go's runtime that the others read. `module` is the address of the runtime's
 * last module, g the calling goroutine, pc the entry of the Go function `name` of `size` bytes,
 * which makes this call in its inlined function `within` of `bytes` bytes. Returns 2 if the reading
 * finds that call, 1 if it doesn't find inlined calls, and 0 if the functions below find no frame.
 * Called before other threads call them. Another call begins again. */
int upfront_go_begin(uintptr_t module, uintptr_t g, uintptr_t pc, const char *name, uint64_t size, const char *within,
                     uint64_t bytes);

/* Writes the return addresses of the Go frames above this thread's call from Go, the innermost
 * first, and returns their number, at most `room`. 0: the thread isn't in a call from Go. The first
 * frame is cgo's own function, such as _Cfunc_sqlite3_step. If C called back to Go, the frames of
 * the call from Go around the callback follow those of the callback, and *within is the number of
 * the latter. */
uint64_t upfront_go_frames(uintptr_t *frames, uint64_t room, uint64_t *within);

/* Writes the return addresses of the C frames above a call of malloc that returns to `caller`, the
 * innermost first, and returns their number, 1 to `room`. It stops at Go's frames. The caller alone
 * is the result without glibc 2.35, in a static program, in a call from ld.so or from the unwinder,
 * and with less than UPFRONT_STACK_LEAST bytes of stack left. upfront_c_begin prepares it, and may
 * allocate. */
#define UPFRONT_STACK_LEAST 16384
void upfront_c_begin(void);
uint64_t upfront_c_frames(uintptr_t *frames, uint64_t room, uintptr_t caller);

/* A line of Go's source. The texts are the program's own, and stay. */
typedef struct upfront_go_place {
    const char *function, *file;
    int line;
} upfront_go_place;

/* Sets the place of the instruction at pc, or before a return address at pc + 1. Returns 0 if pc
 * isn't in Go's code. */
int upfront_go_line(uintptr_t pc, upfront_go_place *out);

/* Returns the pc of the call that was inlined at pc, or 0 if pc isn't in an inlined call. */
uintptr_t upfront_go_parent(uintptr_t pc);

/* Reports whether a place is in the source that cgo generates. */
int upfront_is_cgo(const upfront_go_place *p);

/* A symbol of C: its name, the file of its object ("" is the program), and the distance of an
 * address from its start. */
typedef struct upfront_symbol {
    const char *name, *object;
    uint64_t distance;
} upfront_symbol;

/* Sets the dynamic symbol around an address. Returns 0 if there is none, and without glibc 2.35. A
 * first call, with a null `out`, prepares it. */
int upfront_symbol_of(uintptr_t address, upfront_symbol *out);

/* The file that is mapped around an address: the address of its first byte, and its path, which is
 * "" for the program. upfront_object_of returns 0 if there is none, and without glibc 2.35.
 * upfront_object_code sets the addresses of the code around pc, and its offset in the file. */
typedef struct upfront_object {
    uintptr_t map, base;
    const char *name;
} upfront_object;

int upfront_object_of(uintptr_t pc, upfront_object *out);
int upfront_object_code(const upfront_object *o, uintptr_t pc, uintptr_t *from, uintptr_t *end, uint64_t *offset);

/* Set the addresses [*from, *end) of the code of the object that is mapped at `base`, or that has
 * an address, if there is one. They take the lock of dl_iterate_phdr. */
void upfront_code_at(uintptr_t base, uintptr_t *from, uintptr_t *end);
void upfront_code_around(uintptr_t address, uintptr_t *from, uintptr_t *end);

#endif
