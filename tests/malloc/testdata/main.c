/* The programs of work.h without Go: main NAME [NUMBER ...]. */
#include "../work.c"

static uint64_t number(char **argv, int i) { return argv[i] == NULL ? 0 : strtoull(argv[i], NULL, 10); }

int main(int argc, char **argv) {
    uint64_t blocks;
    const char *name = argc > 1 ? argv[1] : "";
    int fault = -3;
    if (strcmp(name, "stress") == 0)
        fault = work_stress((int)number(argv, 2), number(argv, 3), number(argv, 4), 1);
    else if (strcmp(name, "model") == 0)
        fault = work_model(number(argv, 2), number(argv, 3), 1);
    else if (strcmp(name, "edges") == 0)
        fault = work_edges();
    else if (strcmp(name, "fork") == 0)
        fault = work_fork((int)number(argv, 2));
    else if (strcmp(name, "libc") == 0)
        fault = work_libc();
    else if (argc > 2 && strcmp(name, "fill") == 0) {
        fault = work_fill(number(argv, 2), &blocks);
        printf("%llu blocks\n", (unsigned long long)blocks);
        if (argc > 3 && malloc(number(argv, 3)) == NULL)
            fault = -4; /* the freed blocks are not one */
    } else if (strcmp(name, "misuse") == 0)
        fault = work_misuse(argv[2]);
    else if (strcmp(name, "stats") == 0) {
        malloc_stats();
        fault = malloc_info(0, stdout);
    }
    printf("%s: %d\n", name, fault);
    return fault != 0;
}
