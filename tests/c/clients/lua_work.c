/* lua_work.c - Lua's use of memory, timed: glibc's malloc against a heap.
 *
 *   lua_work binary-trees | strings | mixed, then glibc | heap [PARKED]
 *
 * It prints nanoseconds of the processor, the script's result, which must be equal for both, and
 * the heap's peak. */
#define MOST (256u << 20)

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "client.h"

static const struct {
    const char *name, *script;
} works[] = {
    {"binary-trees", /* small tables with short lives, and one tree that stays */
     "local function tree(d) if d == 0 then return {} end; return {tree(d - 1), tree(d - 1)} end\n"
     "local function count(t) if not t[1] then return 1 end; return 1 + count(t[1]) + count(t[2]) end\n"
     "local long, sum = tree(15), 0\n"
     "for d = 4, 15, 4 do\n"
     "  for i = 1, 1 << (15 - d + 3) do sum = sum + count(tree(d)) end\n"
     "end\n"
     "return sum + count(long)"},
    {"strings", /* of all lengths: joined, cut and searched */
     "local seed, sum, kept = 42, 0, {}\n"
     "for i = 1, 300000 do\n"
     "  seed = (seed * 1103515245 + 12345) % 2147483648\n"
     "  local s = ('frog'):rep(seed % 60) .. seed\n"
     "  kept[seed % 2000 + 1] = s .. (kept[seed % 1999 + 1] or ''):sub(1, 300)\n"
     "  sum = sum + #kept[seed % 2000 + 1] + (s:find('9', 1, true) or 0)\n"
     "end\n"
     "return sum"},
    {"mixed", /* tables with names and arrays, closures, buffers */
     "local seed, sum, ponds = 42, 0, {}\n"
     "for i = 1, 120000 do\n"
     "  seed = (seed * 1103515245 + 12345) % 2147483648\n"
     "  local frog = {name = 'frog ' .. seed % 5000, age = i, path = {}}\n"
     "  for k = 1, seed % 12 do frog.path[k] = k * i end\n"
     "  frog.jump = function(n) return #frog.path + n end\n"
     "  ponds[seed % 3000 + 1] = frog\n"
     "  sum = sum + frog.jump(1)\n"
     "  if i % 4000 == 0 then\n"
     "    local names = {}\n"
     "    for _, f in pairs(ponds) do names[#names + 1] = f.name end\n"
     "    table.sort(names); sum = sum + #table.concat(names, ',')\n"
     "  end\n"
     "end\n"
     "return sum"},
};

int main(int argc, char **argv) {
    int heap = argc > 2 && strcmp(argv[2], "heap") == 0;
    uint64_t from, ns;
    size_t i;
    lua_State *lua;
    if (heap) {
        client_sizes(argc - 2, argv + 2);
        client_begin(MOST, 0);
    }
    for (i = 0; i < sizeof works / sizeof *works && argc > 1; i++) {
        if (strcmp(works[i].name, argv[1]) != 0)
            continue;
        lua = heap ? lua_newstate(CLIENT(hook), client.arena) : luaL_newstate();
        luaL_openlibs(lua);
        check(luaL_loadstring(lua, works[i].script) == LUA_OK, "it compiles");
        from = client_ns();
        check(lua_pcall(lua, 0, 1, 0) == LUA_OK, "it runs");
        ns = client_ns() - from;
        printf("%llu %lld %llu\n", (unsigned long long)ns, (long long)lua_tointeger(lua, -1),
               heap ? (unsigned long long)upfront_heap_peak(client.arena) : 0);
        lua_close(lua);
        return heap && (client_end(), client_failures != 0);
    }
    fputs("usage: lua_work binary-trees|strings|mixed glibc|heap [PARKED]\n", stderr);
    return 2;
}
