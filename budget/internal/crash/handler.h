/* handler.h - a handler of SIGSEGV and SIGBUS that describes the address and calls the old handler.
 *
 * Algorithm  The table is an array. Writers come one at a time (crash_cgo.go has a lock). A writer
 *            makes an entry's version odd, changes the entry, and makes the version even. A reader
 *            that finds an odd or a changed version skips the entry: its range is being added or
 *            removed. So the handler never waits for a writer, whose thread it may interrupt.
 * Bound      UPFRONT_CRASH_RANGES ranges.
 * Cost       A fault looks at every entry. A program that doesn't crash pays nothing.
 *
 * All of it is static, for the one Go file that includes it: a program with two copies of the
 * package has two handlers. */
#ifndef UPFRONT_CRASH_HANDLER_H
#define UPFRONT_CRASH_HANDLER_H

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UPFRONT_CRASH_RANGES = 128, UPFRONT_CRASH_NAME = 64 };

/* Writes the meaning of the address into out, at most room bytes, and returns their number. Runs in
 * a signal handler. */
typedef size_t (*upfront_crash_describe)(const void *arg, const char *name, uintptr_t address, char *out, size_t room);

enum { TEXT = 8192 };

struct watched {
    uintptr_t base;
    uint64_t size; /* 0: a free entry */
    upfront_crash_describe describe;
    uintptr_t arg;
    uint64_t retired; /* 0: in use; else it may make room for others, the lowest first */
    char name[UPFRONT_CRASH_NAME];
};

static struct entry {
    atomic_uint version; /* odd while it changes */
    struct watched range;
} table[UPFRONT_CRASH_RANGES];

static struct sigaction old_segv, old_bus;

/* One thread at a time describes; it owns the variables below. */
static atomic_int describer; /* its thread, or 0 */
static sigjmp_buf unreadable;
static char text[TEXT];

static int thread_id(void) { return (int)syscall(SYS_gettid); }

static void say(const char *what, size_t size) {
    while (size != 0) {
        ssize_t wrote = write(STDERR_FILENO, what, size);
        if (wrote <= 0 && errno != EINTR)
            return;
        if (wrote > 0) {
            what += wrote;
            size -= (size_t)wrote;
        }
    }
}

/* Copies the range that has the address into out. Returns 0 if there is none. */
static int find(uintptr_t address, struct watched *out) {
    int i;
    for (i = 0; i < UPFRONT_CRASH_RANGES; i++) {
        unsigned before = atomic_load_explicit(&table[i].version, memory_order_acquire);
        memcpy(out, &table[i].range, sizeof *out);
        atomic_thread_fence(memory_order_acquire);
        if (before % 2 == 0 && atomic_load_explicit(&table[i].version, memory_order_relaxed) == before &&
            address - out->base < out->size)
            return 1;
    }
    return 0;
}

static void say_unreadable(const char *name) {
    static const char before[] = "upfront: a fault in ", after[] = ", whose tables can't be read any more\n";
    say(before, sizeof before - 1);
    say(name, strlen(name));
    say(after, sizeof after - 1);
}

/* SIGSEGV and SIGBUS are unblocked while the describing function reads memory that may be
 * unreadable: blocked, they would end the process without Go's traceback. */
static void speak(const struct watched *range, uintptr_t address) {
    sigset_t faults, mask;
    int nobody = 0;
    while (!atomic_compare_exchange_weak(&describer, &nobody, thread_id())) {
        nobody = 0;
        sched_yield();
    }
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, &mask);
    if (sigsetjmp(unreadable, 0) == 0)
        say(text, range->describe((const void *)range->arg, range->name, address, text, sizeof text));
    else
        say_unreadable(range->name);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    atomic_store(&describer, 0);
}

static __attribute__((noinline)) void look(const siginfo_t *info) {
    struct watched range;
    int saved = errno;
    /* A signal of kill(2) has no address, nor has a fault for which the processor reports none. */
    if (info->si_code > 0 && info->si_code != SI_KERNEL && find((uintptr_t)info->si_addr, &range))
        speak(&range, (uintptr_t)info->si_addr);
    errno = saved;
}

/* The last step must be a jump, not a call, because cgosymbolizer counts the frames between Go's
 * handler and the crash. gcc and clang make it a jump from -O1 on, as long as no local variable's
 * address is taken. */
static void on_fault(int signal, siginfo_t *info, void *context) {
    const struct sigaction *old = signal == SIGSEGV ? &old_segv : &old_bus;
    if (atomic_load(&describer) == thread_id())
        siglongjmp(unreadable, 1);
    look(info);
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(signal, info, context);
    else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)
        sigaction(signal, old, NULL); /* the fault comes again, and the old action handles it */
    else
        old->sa_handler(signal);
}

static int before(int signal, struct sigaction *old) {
    struct sigaction ours;
    if (sigaction(signal, NULL, old) != 0)
        return errno;
    ours = *old;
    ours.sa_flags |= SA_SIGINFO | SA_ONSTACK;
    ours.sa_sigaction = on_fault;
    return sigaction(signal, &ours, NULL) == 0 ? 0 : errno;
}

/* Installs the handlers before the present ones. Returns 0 or errno. Once it returned 0, it isn't
 * called again. */
static int upfront_crash_install(void) {
    int refused = before(SIGSEGV, &old_segv);
    return refused != 0 ? refused : before(SIGBUS, &old_bus);
}

static void change(struct entry *e, const struct watched *to) {
    atomic_fetch_add_explicit(&e->version, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    memcpy(&e->range, to, sizeof *to);
    atomic_fetch_add_explicit(&e->version, 1, memory_order_release);
}

/* Returns a free entry, else the one that retired first, else NULL. */
static struct entry *room(void) {
    struct entry *e, *best = NULL;
    for (e = table; e < table + UPFRONT_CRASH_RANGES; e++) {
        if (e->range.size == 0)
            return e;
        if (e->range.retired != 0 && (best == NULL || e->range.retired < best->range.retired))
            best = e;
    }
    return best;
}

/* Adds a range, its name cut to fit. Returns 0 if the table is full. One caller at a time changes
 * the table. */
static int upfront_crash_watch(uintptr_t base, uint64_t size, const char *name, size_t length,
                               upfront_crash_describe describe, uintptr_t arg) {
    static const struct watched nothing;
    struct watched range = {base, size, describe, arg, 0, {0}};
    struct entry *e, *place = NULL;
    for (e = table; e < table + UPFRONT_CRASH_RANGES; e++)
        if (e->range.size != 0 && e->range.base < base + size && base < e->range.base + e->range.size) {
            change(e, &nothing);
            place = e;
        }
    place = place != NULL ? place : room();
    if (place == NULL)
        return 0;
    memcpy(range.name, name, length < UPFRONT_CRASH_NAME ? length : UPFRONT_CRASH_NAME - 1);
    change(place, &range);
    return 1;
}

static void upfront_crash_unwatch(uintptr_t base, upfront_crash_describe after, uintptr_t arg) {
    static uint64_t retirements;
    struct entry *e;
    for (e = table; e < table + UPFRONT_CRASH_RANGES; e++)
        if (e->range.size != 0 && e->range.base == base && e->range.retired == 0) {
            struct watched range = e->range;
            range.describe = after;
            range.arg = arg;
            range.retired = ++retirements;
            if (after == NULL)
                memset(&range, 0, sizeof range);
            change(e, &range);
        }
}

#endif
