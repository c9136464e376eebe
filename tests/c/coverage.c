/* coverage.c - the core and its tests as one translation unit, so that each inline function exists once and its branches are counted
 * over all tests. Only run.sh's coverage step compiles it. */
#include "pool_large.c"

#include "../../arena_c/linear.c"
#include "../../arena_c/map.c"
#include "../../arena_c/pool.c"
#include "../../arena_c/row.c"
#include "../../arena_c/scope.c"
#include "../../arena_c/stack.c"

#include "linear.c"
#include "main.c"
#include "map.c"
#include "pool.c"
#include "random.c"
#include "row.c"
#include "row_ends.c"
#include "scope.c"
#include "stack.c"
#include "walk.c"
