/* The programs of work.h without Go: main NAME [NUMBER ...]. */
#include "../work.c"

#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

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

/* A signal that the program takes from a descriptor, with free memory from before it blocked the
 * signal. Another thread that doesn't block it would end the process. */
static int wait_for_signal(void) {
    sigset_t set;
    struct signalfd_siginfo got;
    int file;
    WANT(work_spread(2000, 4000) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    file = signalfd(-1, &set, 0);
    kill(getpid(), SIGTERM);
    WANT(read(file, &got, sizeof got) == (ssize_t)sizeof got && got.ssi_signo == SIGTERM);
    return 0;
}

static void *end_at_once(void *arg) { return arg; }

/* Threads on stacks of their own: libc frees memory of theirs under a lock that pthread_create
 * takes, while the thread that trims has ended. */
static int stacks(int rounds) {
    int i, k;
    WANT(work_spread(100, 4000) == 0);
    for (i = 0; i < rounds; i++) {
        usleep(40000);
        for (k = 0; k < 8; k++) {
            pthread_attr_t a;
            pthread_t t;
            void *stack = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            WANT(stack != MAP_FAILED);
            pthread_attr_init(&a);
            pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
            pthread_attr_setstack(&a, stack, 1 << 17);
            WANT(pthread_create(&t, &a, end_at_once, NULL) == 0);
        }
    }
    return 0;
}

static int each_object(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)info, (void)size, (void)arg;
    return 0;
}

static void *walk_objects(void *arg) {
    while (dl_iterate_phdr(each_object, arg) == 0)
        ;
    return arg;
}

/* Children whose malloc is full, forked while a thread holds the lock of the list of objects, which
 * no child releases. */
static int full_children(int children) {
    pthread_t t;
    int i, status;
    WANT(pthread_create(&t, NULL, walk_objects, NULL) == 0);
    for (i = 0; i < children; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            work_free_all(work_take_all());
            _exit(0);
        }
        WANT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    }
    return 0;
}

/* A full heap of a program whose standard error is a pipe that nothing reads. */
static int broken_pipe(void) {
    int ends[2];
    WANT(pipe(ends) == 0 && dup2(ends[1], 2) == 2);
    close(ends[0]);
    if (fork() == 0)
        execl("/proc/self/exe", "work", "fill", "5000", NULL);
    WANT(wait(&ends[0]) > 0);
    return WIFEXITED(ends[0]) ? 0 : __LINE__;
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
void *__libc_valloc(size_t);
void *__libc_pvalloc(size_t);
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
    free(__libc_valloc(10));
    free(__libc_pvalloc(10));
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
    else if (strcmp(name, "stacks") == 0)
        fault = stacks((int)number(argv, 2));
    else if (strcmp(name, "children") == 0)
        fault = full_children((int)number(argv, 2));
    else if (strcmp(name, "pipe") == 0)
        fault = broken_pipe();
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
