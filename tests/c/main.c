/* main.c - every test of the C core, in the order of the headers. */
#include "check.h"

int main(void) {
    test_linear();
    test_stack();
    test_pool();
    test_pool_large();
    test_row();
    test_row_ends();
    test_scope();
    test_map();
    test_walk();
    test_random();
    puts("ok: the C core");
    return 0;
}
