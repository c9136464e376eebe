//go:build linux && cgo && !asan

#define _GNU_SOURCE
#include "caller.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Words of the runtime, the same in Go 1.26 and 1.27. upfront_go_begin refuses other ones. */
enum {
    G_LOW = 0, /* bounds of the stack */
    G_HIGH = 1,
    G_M = 6,
    G_SYSCALL_SP = 13, /* 0: the goroutine isn't in a call of C */
    G_SYSCALL_BP = 15,
    M_G0 = 0
};

/* The table of functions: its header, and a function's entry. */
typedef struct header {
    uint32_t magic;
    uint8_t unused[2], quantum, word;
    uint64_t functions, files, text, names, units, paths, tables, lines;
} header;

typedef struct function {
    uint32_t entry;
    int32_t name, args;
    uint32_t deferreturn, sp, file, line, tables, unit;
    int32_t start;
    uint8_t id, flag, unused, data;
    uint32_t rest[]; /* offsets of `tables` tables, and of `data` other data */
} function;

/* A call that was inlined. */
typedef struct inlined {
    uint32_t id;
    int32_t name, parent, start; /* parent: the pc of the call, from the entry of the function */
} inlined;
enum { TABLE_INLINED = 2, DATA_INLINED = 3 };

typedef struct entry {
    uint32_t pc, at;
} entry;

static struct {
    const header *table;
    uintptr_t text, data; /* data: the start of functions' data, or 0 */
    intptr_t tls;       /* of the thread's g, from the thread pointer */
    uint64_t goroutine; /* word of the m that has the goroutine */
    int words, ready;
} go;

static inline const char *thread_pointer(void) {
    const char *p = NULL;
#if defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(p));
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(p));
#endif
    return p;
}

static inline uintptr_t word(uintptr_t base, uint64_t n) { return ((const uintptr_t *)base)[n]; }

/* Reports whether an address can be read. The kernel reads it before it refuses the number of the
 * operation, and says EFAULT if it can't. */
static int is_readable(uintptr_t address) {
    int e = errno, can = syscall(SYS_rt_sigprocmask, -1, address, NULL, 8) == 0 || errno != EFAULT;
    errno = e;
    return can;
}

static const char *at(uint64_t offset) { return (const char *)go.table + offset; }

/* Returns the function around a pc, or NULL. */
static const function *function_of(uintptr_t pc) {
    const entry *list = (const entry *)(const void *)at(go.table->lines);
    uint64_t low = 0, high = go.table->functions, middle;
    if (pc < go.text || pc - go.text >= list[high].pc)
        return NULL;
    while (high - low > 1) {
        middle = low + (high - low) / 2;
        if (list[middle].pc <= pc - go.text)
            low = middle;
        else
            high = middle;
    }
    return (const function *)(const void *)(at(go.table->lines) + list[low].at);
}

static uint32_t varint(const unsigned char **p) {
    uint32_t n = 0, shift;
    for (shift = 0; shift < 32; shift += 7) {
        unsigned char c = *(*p)++;
        n |= (uint32_t)(c & 127) << shift;
        if (c < 128)
            break;
    }
    return n;
}

/* Returns the value that one of a function's tables has at a pc, or -1. */
static int32_t value_at(const function *f, uint32_t table, uintptr_t pc) {
    const unsigned char *p = (const unsigned char *)at(go.table->tables) + table;
    uintptr_t now = go.text + f->entry;
    int32_t value = -1;
    int first = 1;
    if (table == 0)
        return -1;
    for (;; first = 0) {
        uint32_t n = varint(&p);
        if (n == 0 && !first)
            return -1;
        value += (int32_t)(n >> 1) ^ -(int32_t)(n & 1);
        now += (uintptr_t)varint(&p) * go.table->quantum;
        if (pc < now)
            return value;
    }
}

int upfront_go_line(uintptr_t pc, upfront_go_place *out) {
    const function *f = go.table != NULL ? function_of(pc) : NULL;
    const uint32_t *unit;
    int32_t file;
    if (f == NULL)
        return 0;
    out->function = at(go.table->names) + f->name;
    out->file = "";
    out->line = value_at(f, f->line, pc);
    file = value_at(f, f->file, pc);
    unit = (const uint32_t *)(const void *)at(go.table->units) + f->unit;
    if (file >= 0 && unit[file] != UINT32_MAX)
        out->file = at(go.table->paths) + unit[file];
    return 1;
}

int upfront_is_cgo(const upfront_go_place *p) {
    const char *name = strrchr(p->file, '/');
    return strcmp(name != NULL ? name + 1 : p->file, "_cgo_gotypes.go") == 0;
}

/* Returns the inlined call that has a pc, or NULL. */
static const inlined *inlined_at(const function *f, uintptr_t pc) {
    int32_t i;
    if (go.data == 0 || f == NULL || f->tables <= TABLE_INLINED || f->data <= DATA_INLINED ||
        f->rest[f->tables + DATA_INLINED] == UINT32_MAX)
        return NULL;
    i = value_at(f, f->rest[TABLE_INLINED], pc);
    return i >= 0 ? (const inlined *)(go.data + f->rest[f->tables + DATA_INLINED]) + i : NULL;
}

uintptr_t upfront_go_parent(uintptr_t pc) {
    const function *f = go.table != NULL ? function_of(pc) : NULL;
    const inlined *call = inlined_at(f, pc);
    return call != NULL ? go.text + f->entry + (uintptr_t)call->parent : 0;
}

static int is_callback(uintptr_t frame) {
    upfront_go_place p;
    return upfront_go_line(frame - 1, &p) && strncmp(p.function, "runtime.cgocallback", 19) == 0;
}

/* Returns the frame pointer of the call from Go around a callback, or 0. Function cgocallbackg
 * keeps it in its frame until the callback returns. That frame is below or, on arm64, above `bp`,
 * the last frame pointer; `from` is the one before the one before. The pointer leads to a function
 * that cgo generated. */
static uintptr_t around_callback(uintptr_t from, uintptr_t bp, uintptr_t high) {
    upfront_go_place p;
    uintptr_t at, to, end = bp + 64 * sizeof at < high ? bp + 64 * sizeof at : high;
    for (at = from + 2 * sizeof at; at < end; at += sizeof at) {
        to = word(at, 0);
        if (to > bp && to <= high && to % sizeof to == 0 && upfront_go_line(word(to, 1) - 1, &p) && upfront_is_cgo(&p))
            return to;
    }
    return 0;
}

uint64_t upfront_go_frames(uintptr_t *frames, uint64_t room, uint64_t *within) {
    uintptr_t g0, m, g, bp, low, high, last[2] = {0, 0}, sp = (uintptr_t)__builtin_frame_address(0);
    uint64_t n = 0;
    *within = 0;
    if (!__atomic_load_n(&go.ready, __ATOMIC_ACQUIRE))
        return 0;
    g0 = *(const uintptr_t *)(const void *)(thread_pointer() + go.tls);
    if (g0 == 0 || sp - word(g0, G_LOW) >= word(g0, G_HIGH) - word(g0, G_LOW))
        return 0; /* not Go's thread, a signal's stack, or the thread has left Go */
    m = word(g0, G_M);
    if (m == 0 || word(m, M_G0) != g0)
        return 0;
    g = word(m, go.goroutine);
    if (g == 0 || word(g, G_SYSCALL_SP) == 0)
        return 0; /* a call of the runtime's own */
    low = word(g, G_LOW);
    high = word(g, G_HIGH) - 2 * sizeof(uintptr_t);
    bp = word(g, G_SYSCALL_BP);
    while (n < room && bp >= low && bp <= high && bp % sizeof(uintptr_t) == 0) {
        uintptr_t next = word(bp, 0);
        frames[n++] = word(bp, 1);
        if (last[1] != 0 && next - bp > high - bp && is_callback(frames[n - 1])) {
            next = around_callback(last[1], bp, high);
            while (n != 0 && is_callback(frames[n - 1]))
                n--;
            *within = n;
        }
        last[1] = last[0];
        last[0] = bp;
        low = bp + 1; /* the list leads up */
        bp = next;
    }
    return n;
}

/* Start. */

/* Reports whether a text of the table is a name. */
static int is_text(int32_t offset, const char *name, uint64_t size) {
    const char *text = at(go.table->names) + offset;
    return strlen(text) == size && memcmp(text, name, (size_t)size) == 0;
}

static int is_name(uintptr_t pc, const char *name, uint64_t size) {
    const function *f = function_of(pc);
    return f != NULL && is_text(f->name, name, size);
}

/* Finds the start of the text among the words of the module: the one that names the function at
 * pc. */
static int find_text(uintptr_t module, uintptr_t pc, const char *name, uint64_t size) {
    const uint32_t magic = 0xFFFFFFF1;
    uint64_t i;
    if (module == 0 || word(module, 0) == 0)
        return 0;
    go.table = (const header *)word(module, 0);
    for (i = 1; go.table->magic == magic && go.table->word == sizeof(uintptr_t) && i < 64; i++) {
        go.text = word(module, i);
        if (is_name(pc, name, size))
            return 1;
    }
    go.table = NULL;
    return 0;
}

/* Finds the thread-local words that have g0 now. One is right: two would leave a doubt. */
static int find_word(struct dl_phdr_info *info, size_t size, void *g0) {
    const char *data = NULL, *now;
    uint64_t bytes = 0;
    int i;
    (void)size;
    for (i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            data = (const char *)info->dlpi_tls_data;
            bytes = info->dlpi_phdr[i].p_memsz;
        }
    for (now = data; data != NULL && (uint64_t)(now - data) + sizeof g0 <= bytes; now += sizeof g0)
        if (memcmp(now, &g0, sizeof g0) == 0) {
            go.tls = now - thread_pointer();
            go.words++;
        }
    return 0;
}

/* Finds the start of functions' data among the words of the module: with it the call at pc is of
 * the function `name`. */
static void find_data(uintptr_t module, uintptr_t pc, const char *name, uint64_t size) {
    uint64_t i;
    for (i = 1; i < 64; i++) {
        const function *f = function_of(pc);
        const inlined *call;
        go.data = word(module, i);
        call = inlined_at(f, pc);
        if (call != NULL && is_readable((uintptr_t)call) && is_readable((uintptr_t)(call + 1) - 1) &&
            call->name >= 0 && is_readable((uintptr_t)at(go.table->names) + (uintptr_t)call->name) &&
            is_text(call->name, name, size))
            return;
    }
    go.data = 0;
}

int upfront_go_begin(uintptr_t module, uintptr_t g, uintptr_t pc, const char *name, uint64_t size, const char *within,
                     uint64_t bytes) {
    uintptr_t m, frames[3];
    uint64_t n, none;
    if (g == 0 || thread_pointer() == NULL || !find_text(module, pc, name, size))
        return 0;
    go.words = 0;
    m = word(g, G_M);
    while (go.goroutine < 64 && word(m, go.goroutine) != g)
        go.goroutine++;
    dl_iterate_phdr(find_word, (void *)word(m, M_G0));
    if (go.goroutine == 64 || go.words != 1)
        return 0;
    __atomic_store_n(&go.ready, 1, __ATOMIC_RELEASE);
    n = upfront_go_frames(frames, 3, &none);
    if (n >= 2 && is_name(frames[1] - 1, name, size)) {
        find_data(module, frames[1] - 1, within, bytes);
        return go.data != 0 ? 2 : 1;
    }
    if (n == 3 && is_name(frames[1] - 1, within, bytes) && is_name(frames[2] - 1, name, size))
        return 2; /* nothing is inlined */
    __atomic_store_n(&go.ready, 0, __ATOMIC_RELEASE);
    return 0;
}

/* Symbols. */

/* Returns the number of symbols that a hash table in GNU's form leads to. */
static uint32_t symbols_in(const uint32_t *hash) {
    const uint32_t buckets = hash[0], first = hash[1], *bucket = hash + 4 + hash[2] * (sizeof(uintptr_t) / 4),
                   *chain = bucket + buckets;
    uint32_t i, last = 0;
    for (i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return first;
    while ((chain[last - first] & 1) == 0)
        last++;
    return last + 1;
}

static int find_symbol(const struct link_map *map, uintptr_t address, upfront_symbol *out) {
    const ElfW(Dyn) *dynamic = map->l_ld;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    uint32_t count = 0, i;
    /* in the kernel's object (vdso) the pointers are offsets, so it has no symbols here */
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *p = (const void *)dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)p;
        else if (dynamic->d_tag == DT_STRTAB)
            names = (const char *)p;
        else if (dynamic->d_tag == DT_GNU_HASH && dynamic->d_un.d_ptr >= map->l_addr)
            count = symbols_in((const uint32_t *)p);
    }
    for (i = 0; symbols != NULL && names != NULL && i < count; i++) {
        uintptr_t from = map->l_addr + symbols[i].st_value;
        if (symbols[i].st_shndx != SHN_UNDEF && address >= from && address - from < symbols[i].st_size) {
            out->name = names + symbols[i].st_name;
            out->object = map->l_name;
            out->distance = address - from;
            return 1;
        }
    }
    return 0;
}

#ifdef __GLIBC__
#define FINDS __GLIBC_PREREQ(2, 35)
#else
#define FINDS 0
#endif

#if FINDS
typedef int finding(void *, struct dl_find_object *);
typedef int tracing(void **, int);

static finding *found;
static tracing *traces; /* glibc's backtrace, or NULL */
static struct {
    uintptr_t from, end;
} linker, unwinder; /* their code */

/* glibc's lookup of an object takes no lock. dl_iterate_phdr's lock may be held for ever in the
 * child of a fork, or by a thread that waits for this one. */
int upfront_symbol_of(uintptr_t address, upfront_symbol *out) {
    struct dl_find_object object;
    void *p = NULL;
    if (out == NULL) { /* the start */
        p = dlsym(RTLD_DEFAULT, "_dl_find_object");
        memcpy(&found, &p, sizeof p);
        return 0;
    }
    return found != NULL && found((void *)address, &object) == 0 && find_symbol(object.dlfo_link_map, address, out);
}

int upfront_object_of(uintptr_t pc, upfront_object *out) {
    struct dl_find_object object;
    if (found == NULL || found((void *)pc, &object) != 0)
        return 0;
    out->map = (uintptr_t)object.dlfo_map_start;
    out->base = object.dlfo_link_map->l_addr;
    out->name = object.dlfo_link_map->l_name;
    return 1;
}

static int find_unwinder(struct dl_phdr_info *info, size_t size, void *context) {
    int i;
    (void)size, (void)context;
    for (i = 0; i < info->dlpi_phnum && strstr(info->dlpi_name, "/libgcc_s.so") != NULL; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            unwinder.from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            unwinder.end = unwinder.from + info->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

/* The first call of backtrace loads the unwinder. */
void upfront_c_begin(void) {
    void *p = dlsym(RTLD_DEFAULT, "backtrace"), *frames[4];
    tracing *with;
    memcpy(&with, &p, sizeof p);
    if (found == NULL || with == NULL || with(frames, 4) == 0)
        return;
    p = dlsym(RTLD_DEFAULT, "_dl_find_object"); /* of ld.so */
    upfront_code_around((uintptr_t)p, &linker.from, &linker.end);
    dl_iterate_phdr(find_unwinder, NULL);
    if (unwinder.from != 0)
        traces = with;
}

/* Reports whether so many bytes of the stack are left. A guard may be as small as one page, with
 * another thread's stack below it, so each page counts. The stack of a signal handler is at most as
 * large as sigaltstack says. */
static int has_stack(uintptr_t bytes) {
    enum { GUARD = 4096 };
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0), at;
    stack_t alternative;
    for (at = GUARD; at <= bytes; at += GUARD)
        if (!is_readable((sp - at) & ~(uintptr_t)7))
            return 0;
    return sigaltstack(NULL, &alternative) != 0 || (alternative.ss_flags & SS_ONSTACK) == 0 ||
           sp - (uintptr_t)alternative.ss_sp >= bytes;
}

uint64_t upfront_c_frames(uintptr_t *frames, uint64_t room, uintptr_t caller) {
    enum { OWN = 8, MOST = 32 + OWN };
    static __thread int within __attribute__((tls_model("initial-exec")));
    void *all[MOST];
    int i = 0, count = 0;
    uint64_t n = 1;
    frames[0] = caller;
    if (traces == NULL || within || caller - linker.from < linker.end - linker.from ||
        caller - unwinder.from < unwinder.end - unwinder.from || !has_stack(UPFRONT_STACK_LEAST))
        return 1;
    within = 1;
    count = traces(all, room + OWN < MOST ? (int)room + OWN : MOST);
    within = 0;
    while (i < count && (uintptr_t)all[i] != caller)
        i++;
    for (i++; i < count && n < room; i++) {
        if (all[i] == NULL || (go.table != NULL && function_of((uintptr_t)all[i]) != NULL))
            break;
        frames[n++] = (uintptr_t)all[i];
    }
    return n;
}
#else
int upfront_symbol_of(uintptr_t address, upfront_symbol *out) {
    (void)address, (void)out, (void)find_symbol;
    return 0;
}

int upfront_object_of(uintptr_t pc, upfront_object *out) {
    (void)pc, (void)out;
    return 0;
}

void upfront_c_begin(void) {}

uint64_t upfront_c_frames(uintptr_t *frames, uint64_t room, uintptr_t caller) {
    (void)room;
    frames[0] = caller;
    return 1;
}
#endif

int upfront_object_code(const upfront_object *o, uintptr_t pc, uintptr_t *from, uintptr_t *end, uint64_t *offset) {
    const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)o->map;
    const ElfW(Phdr) *h;
    int i, count;
    if (*o->name == 0) { /* the mapping of a program may begin after its header */
        h = (const ElfW(Phdr) *)getauxval(AT_PHDR);
        count = h != NULL ? (int)getauxval(AT_PHNUM) : 0;
    } else {
        if (memcmp(file->e_ident, ELFMAG, SELFMAG) != 0)
            return 0;
        h = (const ElfW(Phdr) *)(o->map + file->e_phoff);
        count = file->e_phnum;
    }
    for (i = 0; i < count; i++)
        if (h[i].p_type == PT_LOAD && pc - (o->base + h[i].p_vaddr) < h[i].p_memsz) {
            *from = o->base + h[i].p_vaddr;
            *end = *from + h[i].p_memsz;
            *offset = h[i].p_offset;
            return 1;
        }
    return 0;
}

/* Objects of the dynamic linker. */

typedef struct search {
    uintptr_t base, address, from, end;
} search;

static int find_code(struct dl_phdr_info *info, size_t size, void *context) {
    search *s = (search *)context;
    int i;
    (void)size;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || (h->p_flags & PF_X) == 0)
            continue;
        if (s->address != 0 ? s->address - from < h->p_memsz : s->base == info->dlpi_addr) {
            s->from = from;
            s->end = from + h->p_memsz;
            return 1;
        }
    }
    return 0;
}

static void code_of(search s, uintptr_t *from, uintptr_t *end) {
    if ((s.base | s.address) != 0 && dl_iterate_phdr(find_code, &s) != 0) {
        *from = s.from;
        *end = s.end;
    }
}

void upfront_code_at(uintptr_t base, uintptr_t *from, uintptr_t *end) { code_of((search){.base = base}, from, end); }

void upfront_code_around(uintptr_t address, uintptr_t *from, uintptr_t *end) {
    code_of((search){.address = address}, from, end);
}
