/* The programs of work.h without Go: main NAME [NUMBER ...]. */
#include "../work.c"

#include <sched.h>

static uint64_t number(char **argv, int i) { return argv[i] == NULL ? 0 : strtoull(argv[i], NULL, 10); }

static void *busy(void *arg) {
    if (work_spread(2000, 4000) != 0)
        _exit(3);
    return arg;
}

/* The main thread ends first, and the last thread of the program's ends then. */
static void leave_last(void) {
    pthread_t t;
    pthread_create(&t, NULL, busy, NULL);
    pthread_detach(t);
    pthread_exit(NULL);
}

/* A thread for a signal: it waits for it, and all threads block it. Another thread that doesn't
 * would end the process. */
static int wait_for_signal(void) {
    sigset_t set;
    int got = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (work_spread(2000, 4000) != 0)
        return __LINE__;
    kill(getpid(), SIGTERM);
    return sigwait(&set, &got) == 0 && got == SIGTERM ? 0 : __LINE__;
}

/* unshare works in a process of one thread alone. */
static int alone(void) {
    free(malloc(100));
    return unshare(CLONE_NEWUSER) == 0 || errno != EINVAL ? 0 : __LINE__;
}

/* glibc's other names: a block of one is a block of the other. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static int other_names(void) {
    void *p = __libc_malloc(100), *q = __libc_calloc(10, 10), *r = __libc_memalign(64, 100);
    WANT(p != NULL && q != NULL && r != NULL && (uintptr_t)r % 64 == 0);
    WANT(malloc_usable_size(p) >= 100 && malloc_usable_size(q) >= 100 && malloc_usable_size(r) >= 100);
    p = __libc_realloc(p, 5000);
    WANT(p != NULL && malloc_usable_size(p) >= 5000);
    free(p);
    free(q);
    __libc_free(r);
    __libc_free(malloc(10));
    return 0;
}

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
    else if (argc > 2 && strcmp(name, "late") == 0)
        fault = work_late(argv[2]);
    else if (strcmp(name, "handlers") == 0)
        fault = work_handlers() ? work_fork((int)number(argv, 2)) : -5;
    else if (strcmp(name, "last") == 0)
        leave_last();
    else if (strcmp(name, "signal") == 0)
        fault = wait_for_signal();
    else if (strcmp(name, "alone") == 0)
        fault = alone();
    else if (strcmp(name, "names") == 0)
        fault = other_names();
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
