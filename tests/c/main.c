/* main.c - every test of the C core, in the order of the headers. */
#include "check.h"

int main(void) {
    test_everywhere();
    test_nothing();
    test_sizes();
    test_linear();
    test_ends();
    test_count();
    test_stack();
    test_pool();
    test_handles();
    test_pool_large();
    test_heap();
    test_heap_misuse();
    test_damage();
    test_security();
    test_shows();
    test_buddy();
    test_buddy_misuse();
    test_callbacks();
    test_scope();
    test_scope_temp();
    test_map();
    test_room();
    test_mirror();
    test_walk();
    test_reconfigure();
    test_ring();
    test_frame();
    test_checked();
    puts("ok: the C core");
    return 0;
}
