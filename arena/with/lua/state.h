/* state.h - a Lua state as Go and C see it. Lua is entered at one place, in a protected call, so
 * that its errors jump over C frames alone. Values go both ways through a table next to the state.
 */
#ifndef UPFRONT_WITH_LUA_STATE_H
#define UPFRONT_WITH_LUA_STATE_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <setjmp.h>
#include <stdint.h>

#define UPFRONT_LUA_VALUES 16 /* the most values that a call takes and returns */

enum {
    UPFRONT_LUA_NIL,
    UPFRONT_LUA_BOOLEAN,
    UPFRONT_LUA_INTEGER,
    UPFRONT_LUA_NUMBER,
    UPFRONT_LUA_TEXT,
    UPFRONT_LUA_OTHER
};

typedef struct upfront_lua_value {
    int64_t kind;
    int64_t word;     /* an integer, a boolean, a number's bits, or the text's length */
    const char *text; /* for OTHER, which doesn't cross, its type's name */
} upfront_lua_value;

typedef struct upfront_lua {
    lua_State *state;
    uintptr_t handle;         /* of Go's State */
    jmp_buf *out;             /* the way out of the call that runs */
    int64_t steps;            /* bound of a call; 0: none */
    int64_t left;             /* steps that are left */
    int64_t stopped;          /* the call took more steps */
    char at[LUA_IDSIZE + 16]; /* where it stopped */
    int64_t raised;           /* the call ended with the last error of a Go function */
    int64_t what;             /* the operation: see below */
    int64_t count;            /* of values: arguments first, then results */
    upfront_lua_value values[1 + UPFRONT_LUA_VALUES];
} upfront_lua;

/* The operations. The values are a name and the operation's arguments. */
enum { UPFRONT_LUA_OPEN, UPFRONT_LUA_RUN, UPFRONT_LUA_CALL, UPFRONT_LUA_GET, UPFRONT_LUA_SET, UPFRONT_LUA_FUNCTION };

/* Not a code of Lua's: the scope closed during the call, and the state no longer exists. */
#define UPFRONT_LUA_GONE (-2)

/* Makes the state, without libraries, on the memory of a heap or of another allocator. Returns 0 if
 * the memory is full. */
int upfront_lua_new(upfront_lua *u, lua_Alloc allocate, void *context);

/* Performs an operation. Returns Lua's code or UPFRONT_LUA_GONE. */
int upfront_lua_do(upfront_lua *u, int what, int count);

/* upfront_heap_hook of arena_c/heap.h, under its name in a Go program (arena_c/names.h). */
void *github_com_upfront_mem_upfront_heap_hook(void *heap, void *p, size_t old, size_t size);

#endif
