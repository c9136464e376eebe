#include "state.h"

#include <stdio.h>
#include <string.h>

#include "_cgo_export.h"

/* Steps are counted by the hundred: counting less often saves nothing, and more often costs more.
 */
#define EVERY 100

static upfront_lua *of(lua_State *lua) { return *(upfront_lua **)lua_getextraspace(lua); }

static void push(lua_State *lua, const upfront_lua_value *v) {
    lua_Number number;
    luaL_checkstack(lua, 1, NULL);
    switch (v->kind) {
    case UPFRONT_LUA_BOOLEAN:
        lua_pushboolean(lua, v->word != 0);
        break;
    case UPFRONT_LUA_INTEGER:
        lua_pushinteger(lua, v->word);
        break;
    case UPFRONT_LUA_NUMBER:
        memcpy(&number, &v->word, sizeof number);
        lua_pushnumber(lua, number);
        break;
    case UPFRONT_LUA_TEXT:
        lua_pushlstring(lua, v->text, (size_t)v->word);
        break;
    default:
        lua_pushnil(lua);
    }
}

/* A text stays Lua's: it is valid while it is on the stack. */
static void take(lua_State *lua, int index, upfront_lua_value *v) {
    lua_Number number;
    size_t size = 0;
    v->word = 0;
    v->text = NULL;
    switch (lua_type(lua, index)) {
    case LUA_TNIL:
        v->kind = UPFRONT_LUA_NIL;
        return;
    case LUA_TBOOLEAN:
        v->kind = UPFRONT_LUA_BOOLEAN;
        v->word = lua_toboolean(lua, index);
        return;
    case LUA_TNUMBER:
        if (lua_isinteger(lua, index)) {
            v->kind = UPFRONT_LUA_INTEGER;
            v->word = lua_tointeger(lua, index);
        } else {
            v->kind = UPFRONT_LUA_NUMBER;
            number = lua_tonumber(lua, index);
            memcpy(&v->word, &number, sizeof number);
        }
        return;
    case LUA_TSTRING:
        v->kind = UPFRONT_LUA_TEXT;
        v->text = lua_tolstring(lua, index, &size);
        break;
    default:
        v->kind = UPFRONT_LUA_OTHER;
        v->text = luaL_typename(lua, index);
        size = strlen(v->text);
    }
    v->word = (int64_t)size;
}

static void take_all(lua_State *lua, upfront_lua *u) {
    int i;
    u->count = lua_gettop(lua);
    for (i = 0; i < u->count && i <= UPFRONT_LUA_VALUES; i++)
        take(lua, i + 1, &u->values[i]);
}

/* Calls a Go function. If the scope closed during the call, Lua's memory is gone. So `out` is read
 * before the call; it leads to a frame on this thread's stack. */
static int call_go(lua_State *lua) {
    upfront_lua *u = of(lua);
    jmp_buf *out = u->out;
    int i, n;
    take_all(lua, u);
    if (u->count > UPFRONT_LUA_VALUES)
        return luaL_error(lua, "%d values for a Go function, which takes at most %d", (int)u->count,
                          UPFRONT_LUA_VALUES);
    n = upfrontLuaCall(u->handle, (int)lua_tointeger(lua, lua_upvalueindex(1)), (int)u->count);
    if (n == UPFRONT_LUA_GONE)
        longjmp(*out, 1);
    if (n < 0) {
        luaL_where(lua, 1);
        push(lua, &u->values[0]);
        lua_concat(lua, 2);
        lua_pushvalue(lua, -1);
        lua_rawsetp(lua, LUA_REGISTRYINDEX, u); /* to recognize it when it comes out */
        return lua_error(lua);
    }
    for (i = 0; i < n; i++)
        push(lua, &u->values[i]);
    return n;
}

/* A script may catch the error; its next step then raises it again, until no handler is left. It is
 * raised as an error for lack of memory, because Lua calls no handler of xpcall for that. A handler
 * would run without counted steps. */
static void count(lua_State *lua, lua_Debug *at) {
    upfront_lua *u = of(lua);
    u->left -= EVERY;
    if (u->left > 0)
        return;
    if (!u->stopped && lua_getinfo(lua, "Sl", at))
        snprintf(u->at, sizeof u->at, "%s:%d", at->short_src, at->currentline);
    u->stopped = 1;
    lua_sethook(lua, count, LUA_MASKCOUNT, 1);
    lua_pushliteral(lua, "not enough memory");
    lua_error(lua);
}

/* Calls the original of a guarded library function. */
static int original(lua_State *lua) {
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
    return lua_gettop(lua);
}

/* Refuses __gc: a finalizer would run without counted steps, also when the state closes. */
static int set_metatable(lua_State *lua) {
    if (lua_istable(lua, 2)) {
        lua_pushliteral(lua, "__gc");
        if (lua_rawget(lua, 2) != LUA_TNIL)
            return luaL_error(lua, "a metatable with __gc isn't allowed here");
        lua_pop(lua, 1);
    }
    return original(lua);
}

/* Each coroutine counts its own steps. The steps before its first hook are lost if it ends earlier,
 * so its creation pays for them. */
static int new_coroutine(lua_State *lua) {
    of(lua)->left -= EVERY;
    return original(lua);
}

/* After the hook has ended a coroutine, no more steps are counted in it. coroutine.close and
 * coroutine.wrap would then run the __close metamethods of the coroutine's variables. */
static const char coroutines[] =
    "local create, resume, error = coroutine.create, coroutine.resume, error\n"
    "local function gives(ok, ...) if not ok then error((...), 0) end return ... end\n"
    "function coroutine.wrap(f) local c = create(f) return function(...) return gives(resume(c, ...)) end end\n"
    "coroutine.close = nil";

/* Replaces a function of the table on top by a guard that holds it. */
static void guard(lua_State *lua, const char *name, lua_CFunction with) {
    lua_getfield(lua, -1, name);
    lua_pushcclosure(lua, with, 1);
    lua_setfield(lua, -2, name);
}

static void libraries(lua_State *lua) {
    static const char *const without[] = {"dofile", "load", "loadfile", "print", "warn"};
    size_t i;
    luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
    luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
    luaL_requiref(lua, LUA_UTF8LIBNAME, luaopen_utf8, 1);
    luaL_requiref(lua, LUA_COLIBNAME, luaopen_coroutine, 1);
    guard(lua, "create", new_coroutine);
    luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
    guard(lua, "setmetatable", set_metatable);
    for (i = 0; i < sizeof without / sizeof *without; i++) {
        lua_pushnil(lua);
        lua_setfield(lua, -2, without[i]);
    }
    if (luaL_loadbufferx(lua, coroutines, sizeof coroutines - 1, "=coroutine", "t") != LUA_OK)
        lua_error(lua);
    lua_call(lua, 0, 0);
}

static void run(lua_State *lua, const upfront_lua_value *name, const upfront_lua_value *source) {
    lua_pushliteral(lua, "="); /* to Lua: the name as it is */
    push(lua, name);
    lua_concat(lua, 2);
    if (luaL_loadbufferx(lua, source->text, (size_t)source->word, lua_tostring(lua, -1), "t") != LUA_OK)
        lua_error(lua);
    lua_call(lua, 0, 0);
}

/* Performs the operation inside the protected call. Results stay on the stack. */
static int work(lua_State *lua) {
    upfront_lua *u = of(lua);
    int i, n = (int)u->count, what = (int)u->what;
    if (what == UPFRONT_LUA_OPEN) {
        libraries(lua);
        return 0;
    }
    if (what == UPFRONT_LUA_RUN) {
        run(lua, &u->values[0], &u->values[1]);
        return 0;
    }
    lua_pushglobaltable(lua);
    push(lua, &u->values[0]);
    if (what == UPFRONT_LUA_CALL || what == UPFRONT_LUA_GET) {
        lua_gettable(lua, 1);
        if (what == UPFRONT_LUA_GET)
            return 1;
        lua_remove(lua, 1);
        for (i = 1; i < n; i++)
            push(lua, &u->values[i]);
        lua_call(lua, n - 1, LUA_MULTRET);
        return lua_gettop(lua);
    }
    push(lua, &u->values[1]);
    if (what == UPFRONT_LUA_FUNCTION)
        lua_pushcclosure(lua, call_go, 1);
    lua_settable(lua, 1);
    return 0;
}

int upfront_lua_new(upfront_lua *u, lua_Alloc allocate, void *context) {
    u->state = lua_newstate(allocate, context);
    if (u->state == NULL)
        return 0;
    *(upfront_lua **)lua_getextraspace(u->state) = u;
    return 1;
}

int upfront_lua_do(upfront_lua *u, int what, int n) {
    lua_State *lua = u->state;
    jmp_buf out;
    int code;
    u->what = what;
    u->count = n;
    u->left = u->steps;
    u->stopped = u->raised = 0;
    u->out = &out;
    if (setjmp(out) != 0)
        return UPFRONT_LUA_GONE;
    lua_settop(lua, 0); /* Go has read the last call's results */
    if (u->steps > 0)
        lua_sethook(lua, count, LUA_MASKCOUNT, EVERY);
    lua_pushcfunction(lua, work);
    code = lua_pcall(lua, 0, LUA_MULTRET, 0);
    take_all(lua, u);
    if (code != LUA_OK) {
        lua_rawgetp(lua, LUA_REGISTRYINDEX, u);
        u->raised = lua_rawequal(lua, 1, 2);
    }
    return code;
}
