/* lua.c - Lua in a heap or, with -DIN_BUDDY, a buddy: until it is full, after that, and back to all
 * free. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "client.h"

#if defined(IN_BUDDY) && defined(UPFRONT_CHECKED)
#define FULL 15 /* twentieths: redzones scatter the free blocks */
#else
#define FULL 16
#endif

static void report(const char *when) {
    printf("%s: used %llu of %llu, peak %llu, %llu live, %llu refused, largest free %llu\n", when,
           (unsigned long long)client.arena->used, (unsigned long long)(client.arena->end - client.arena->first),
           (unsigned long long)CLIENT(peak)(client.arena), (unsigned long long)client.arena->live,
               (unsigned long long)client.arena->failed,
           (unsigned long long)CLIENT(largest)(client.arena));
    check(CLIENT(walk)(client.arena, NULL, 0, NULL) == UPFRONT_OK, "the walk");
}

/* Compiles a chunk of the script while there is room for it. */
static int chunk(lua_State *lua, const char *code) {
    check(luaL_loadstring(lua, code) == LUA_OK, "a chunk compiles");
    return luaL_ref(lua, LUA_REGISTRYINDEX);
}

/* Runs a chunk; its result is on top of the stack. */
static int run(lua_State *lua, int chunk_of) {
    lua_rawgeti(lua, LUA_REGISTRYINDEX, chunk_of);
    return lua_pcall(lua, 0, 1, 0);
}

static const char to_the_brim[] =
    "kept, n = {}, 0\n"
    "while true do\n"
    "  local t = {}\n"
    "  for i = 1, 20 do t['key ' .. n .. ' ' .. i] = ('x'):rep((n * 37 + i * 11) % 700) .. i end\n"
    "  for i = 1, n % 90 do t[i] = i end\n"
    "  kept[#kept + 1] = t; n = n + 1\n"
    "  if n % 7 == 0 then kept[n // 2] = false end\n"
    "end";

static const char one_huge_string[] = "local s = 'frogs'; while true do s = s .. s end";

static const char throw_half_away[] = "for i = 1, #kept, 2 do kept[i] = false end; collectgarbage()";

static const char intact[] =
    "for n, t in pairs(kept) do\n"
    "  for k, v in pairs(t or {}) do\n"
    "    if type(k) == 'string' then\n"
    "      local a, i = k:match('key (%d+) (%d+)')\n"
    "      assert(v == ('x'):rep((a * 37 + i * 11) % 700) .. i)\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return #kept";

static const char all_away[] = "kept = nil; collectgarbage(); collectgarbage()";

static const char goes_on[] =
    "local sum, t = 0, {}\n"
    "for i = 1, 50000 do t[i] = tostring(i) end\n"
    "table.sort(t)\n"
    "for i = 1, #t do sum = sum + tonumber(t[i]) end\n"
    "return sum";

/* Lua has one thread: the arena's own hook is enough. */
int main(int argc, char **argv) {
    lua_State *lua;
    int round, brim, huge, half, whole, all, on;
    client_sizes(argc, argv);
    client_begin(MOST, 0);
    lua = lua_newstate(CLIENT(hook), client.arena);
    check(lua != NULL, "a state");
    luaL_openlibs(lua);
    brim = chunk(lua, to_the_brim);
    huge = chunk(lua, one_huge_string);
    half = chunk(lua, throw_half_away);
    whole = chunk(lua, intact);
    all = chunk(lua, all_away);
    on = chunk(lua, goes_on);
    report("libraries open");
    for (round = 0; round < 3; round++) {
        check(run(lua, brim) == LUA_ERRMEM, "to the brim is out of memory");
        printf("round %d: %s\n", round, lua_tostring(lua, -1));
        report("at the brim");
        check(client.arena->used > client.arena->end / 20 * FULL, "full means that four fifths are used");
        check(run(lua, half) == LUA_OK, "half of the tables go");
        check(run(lua, whole) == LUA_OK && lua_tointeger(lua, -1) > 100, "the other half is whole");
        check(run(lua, huge) == LUA_ERRMEM, "one string too long is out of memory");
        check(run(lua, all) == LUA_OK, "everything goes");
        /* parked blocks are scattered: small ones between them would leave no room for an array of
         * 1 MiB */
        client_flush();
        check(run(lua, on) == LUA_OK && lua_tointeger(lua, -1) == 1250025000, "goes on after a collection");
        lua_settop(lua, 0);
        report("after a collection");
    }
    lua_close(lua);
    report("closed");
    client_end();
    return client_done();
}
