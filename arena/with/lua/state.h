/* state.h - what Go and C say to each other about a Lua state. Lua is entered at one place, in a protected call, so that its errors
 * jump over C alone; values go both ways in a table beside the state. */
#ifndef UPFRONT_WITH_LUA_STATE_H
#define UPFRONT_WITH_LUA_STATE_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <setjmp.h>
#include <stdint.h>

#define UPFRONT_LUA_VALUES 16 /* the most that a call takes and gives */

enum { UPFRONT_LUA_NIL, UPFRONT_LUA_BOOLEAN, UPFRONT_LUA_INTEGER, UPFRONT_LUA_NUMBER, UPFRONT_LUA_TEXT, UPFRONT_LUA_OTHER };

typedef struct upfront_lua_value {
    int64_t kind;
    int64_t word;     /* an integer, a boolean, a number's bits, or the size of the text */
    const char *text; /* of another value, which doesn't go, the name of its type */
} upfront_lua_value;

typedef struct upfront_lua {
    lua_State *state;
    uintptr_t handle; /* Go's, of its side */
    jmp_buf *out;     /* the way out of the call that runs */
    int64_t steps;    /* how many a call may take, 0: any number */
    int64_t left;     /* of them */
    int64_t stopped;  /* the call took more */
    char at[LUA_IDSIZE + 16]; /* where it did */
    int64_t raised;   /* the call ended with the error that a Go function gave last */
    int64_t what;     /* is to be done: one of those below */
    int64_t count;    /* of the values: for it, then of it */
    upfront_lua_value values[1 + UPFRONT_LUA_VALUES];
} upfront_lua;

/* What is to be done: the values are its name, and what it takes. */
enum { UPFRONT_LUA_OPEN, UPFRONT_LUA_RUN, UPFRONT_LUA_CALL, UPFRONT_LUA_GET, UPFRONT_LUA_SET, UPFRONT_LUA_FUNCTION };

/* Not one of Lua's codes: the scope closed meanwhile, and nothing of the state is there. */
#define UPFRONT_LUA_GONE (-2)

/* Makes the state, without libraries: with the memory of a heap, or by another allocator. 0: there is no room for it. */
int upfront_lua_new(upfront_lua *u, lua_Alloc allocate, void *context);

/* Does it, and gives Lua's code, or that the state is gone. */
int upfront_lua_do(upfront_lua *u, int what, int count);

/* upfront_heap_hook of arena_c/heap.h, as a Go program that has it names it (arena_c/names.h). */
void *github_com_upfront_mem_upfront_heap_hook(void *heap, void *p, size_t old, size_t size);

#endif
