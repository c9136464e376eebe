//go:build linux && cgo && !asan

#define _GNU_SOURCE
#include "profile.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "caller.h"
#include "mirror.h"

/* A sampled block, or a freed one that a snapshot may bring back. */
typedef struct sample {
    uint64_t at;
    uint64_t made, freed; /* moments; freed: LIVE, or 0 for a free entry */
    upfront_profile_sums is;
    uint32_t stack, next;
} sample;

#define LIVE UINT64_MAX

/* Numbers of stacks and samples begin at 1; 0 is none. */
static struct {
    uint64_t rate, capacity, heads, objects, kept, stacks, lost, random, hand;
    uint64_t used, freed, others; /* samples; those of freed blocks, and of other arenas */
    uint64_t entries;             /* the most samples until now */
    uint64_t moment;              /* 1 + snapshots */
    upfront_profile_sums gone;
    upfront_profile_stack *stack;
    sample *samples;
    upfront_profile_object *object;
    uint32_t *by_stack, *by_block, *by_holder; /* heads of chains, a power of two of them */
    uint32_t free;                             /* first free sample */
} profile;

/* The memory of a table for `capacity` samples, in the order of its parts. */
static uint64_t heads_of(uint64_t capacity) {
    uint64_t n = 8;
    while (n < capacity)
        n *= 2;
    return n;
}

static uint64_t objects_of(uint64_t capacity) { return capacity < 64 ? 8 : capacity < 512 ? capacity / 8 : 64; }

static uint64_t bytes_of(uint64_t capacity) {
    return capacity * (sizeof(upfront_profile_stack) + sizeof(sample)) +
           objects_of(capacity) * sizeof(upfront_profile_object) + 3 * heads_of(capacity) * sizeof(uint32_t);
}

void upfront_profile_seed(uint64_t seed) { profile.random = seed * UINT64_C(0x9E3779B97F4A7C15) | 1; }

uint64_t upfront_profile_random(void) {
    (void)upfront_profile_gap(); /* the next call returns another number */
    return profile.random * UINT64_C(0x9E3779B97F4A7C15) | 1;
}

void upfront_profile_begin(void *memory, uint64_t size, uint64_t rate) {
    uint64_t capacity = size / (sizeof(upfront_profile_stack) + sizeof(sample));
    char *p = (char *)memory;
    memset(&profile, 0, sizeof profile);
    while (capacity != 0 && bytes_of(capacity) > size)
        capacity -= capacity / 64 + 1;
    if (capacity == 0 || rate == 0 || capacity > UINT32_MAX - 1)
        return;
    profile.rate = rate;
    profile.capacity = capacity;
    profile.heads = heads_of(capacity);
    profile.objects = objects_of(capacity);
    profile.stack = (upfront_profile_stack *)(void *)p;
    profile.samples = (sample *)(void *)(p += capacity * sizeof(upfront_profile_stack));
    profile.object = (upfront_profile_object *)(void *)(p += capacity * sizeof(sample));
    profile.by_stack = (uint32_t *)(void *)(p + profile.objects * sizeof(upfront_profile_object));
    profile.by_block = profile.by_stack + profile.heads;
    profile.by_holder = profile.by_block + profile.heads;
    profile.moment = 1;
    upfront_profile_seed(1);
}

/* Numbers. */

static uint64_t next_random(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random * UINT64_C(0x9E3779B97F4A7C15) >> 32;
}

/* A falling run of random numbers that begins with x has an even number of steps with the
 * probability exp(-x). So the first x of such a run, after n others, is the fraction of an
 * exponential number n + x. */
int64_t upfront_profile_gap_of(uint64_t *random) {
    uint64_t whole, first, last, now;
    int falls;
    if (profile.rate == 0)
        return INT64_MAX / 2;
    for (whole = 0;; whole++) {
        first = last = next_random(random);
        for (falls = 0; (now = next_random(random)) < last; falls ^= 1)
            last = now;
        if (!falls)
            return (int64_t)(whole * profile.rate +
                             (uint64_t)((double)first / 4294967296.0 * (double)profile.rate));
    }
}

int64_t upfront_profile_gap(void) { return upfront_profile_gap_of(&profile.random); }

/* Weighs a block. (1 - x/1024)^1024 is exp(-x) but for a part in 2048/x. */
static upfront_profile_sums weigh(uint64_t size) {
    double misses = 1 - (double)size / (double)profile.rate / 1024, weight;
    upfront_profile_sums s;
    int i;
    if (misses < 0)
        misses = 0;
    for (i = 0; i < 10; i++)
        misses *= misses;
    weight = 1 / (1 - misses);
    s.bytes = (uint64_t)(weight * (double)size + 0.5);
    s.objects = (uint64_t)(weight * (double)UPFRONT_PROFILE_OBJECT + 0.5);
    return s;
}

static void plus(upfront_profile_sums *s, upfront_profile_sums more) {
    s->bytes += more.bytes;
    s->objects += more.objects;
}

static uint64_t mix(uint64_t n) {
    n *= UINT64_C(0x9E3779B97F4A7C15);
    return n ^ n >> 32;
}

/* Stacks. */

void upfront_profile_walk(upfront_trace *t, uintptr_t caller, int without_go) {
    int e = errno;
    t->c = caller != 0 ? upfront_c_frames(t->frames, UPFRONT_PROFILE_C, caller) : 0;
    t->within = 0;
    t->go = without_go ? 0 : upfront_go_frames(t->frames + t->c, UPFRONT_PROFILE_GO, &t->within);
    errno = e;
}

static int is_in_object(const upfront_profile_object *o, const upfront_object *now, uintptr_t pc) {
    return pc - o->from < o->end - o->from && o->map == now->map &&
           strncmp(o->name, now->name, sizeof o->name - 1) == 0;
}

/* Returns 1 + the number of the object of a return address, or 0. `last` is that of another frame
 * of this stack, which is still on the stack. */
static uint8_t object_of(uintptr_t pc, uint8_t last) {
    upfront_object now;
    upfront_profile_object *o = profile.object;
    uint64_t i;
    if (last != 0 && pc - o[last - 1].from < o[last - 1].end - o[last - 1].from)
        return last;
    if (!upfront_object_of(pc, &now))
        return 0;
    for (i = 0; i < profile.kept; i++)
        if (is_in_object(&o[i], &now, pc))
            return (uint8_t)(i + 1);
    if (i == profile.objects || !upfront_object_code(&now, pc, &o[i].from, &o[i].end, &o[i].offset))
        return 0;
    o[i].map = now.map;
    strncpy(o[i].name, now.name, sizeof o[i].name - 1);
    profile.kept++;
    return (uint8_t)(i + 1);
}

/* Sets the holder of a stack: the innermost line of Go that isn't cgo's own and isn't within a
 * callback, or the caller in C. */
static void set_holder(upfront_profile_stack *s, uint64_t within) {
    uint64_t i;
    upfront_go_place p;
    for (i = s->c + within; i < (uint64_t)s->c + s->go; i++)
        if (upfront_go_line(s->frames[i] - 1, &p) && !upfront_is_cgo(&p)) {
            s->line = s->frames[i];
            s->is_go = 1;
            s->holder = mix((uint64_t)(uintptr_t)p.file) + (uint64_t)p.line;
            return;
        }
    s->line = s->frames[0];
    s->holder = s->frames[0];
}

/* Takes a stack without samples out of its chain, and returns it; 0: a few in a row have
 * some. */
static uint32_t replaced(void) {
    uint64_t looks;
    for (looks = 0; looks < 64; looks++) {
        uint32_t i = (uint32_t)(profile.hand++ % profile.capacity) + 1, *link;
        upfront_profile_stack *s = &profile.stack[i - 1];
        if (s->samples != 0)
            continue;
        link = &profile.by_stack[s->hash & (profile.heads - 1)];
        while (*link != i)
            link = &profile.stack[*link - 1].next;
        *link = s->next;
        plus(&profile.gone, s->all);
        return i;
    }
    return 0;
}

/* Returns the number of a stack with these frames in an arena, or 0. */
static uint32_t stack_of(uint32_t arena, const upfront_trace *t) {
    uint64_t i, hash = mix((uint64_t)arena << 32 | (t->c * 64 + t->go)), n = t->c + t->go;
    uint32_t *head, at;
    upfront_profile_stack *s;
    uint8_t objects[UPFRONT_PROFILE_C] = {0}, last = 0;
    for (i = 0; i < t->c; i++)
        last = objects[i] = object_of(t->frames[i], last);
    for (i = 0; i < n; i++)
        hash = mix(hash ^ t->frames[i]) + (i < t->c ? objects[i] : 0);
    head = &profile.by_stack[hash & (profile.heads - 1)];
    for (at = *head; at != 0; at = profile.stack[at - 1].next) {
        s = &profile.stack[at - 1];
        if (s->hash == hash && s->arena == arena && s->c == t->c && s->go == t->go &&
            memcmp(s->frames, t->frames, (size_t)n * sizeof s->frames[0]) == 0 &&
            memcmp(s->object, objects, (size_t)t->c) == 0)
            return at;
    }
    at = profile.stacks < profile.capacity ? (uint32_t)++profile.stacks : replaced();
    if (at == 0)
        return 0;
    s = &profile.stack[at - 1];
    memset(s, 0, sizeof *s);
    s->hash = hash;
    s->arena = arena;
    s->c = (uint8_t)t->c;
    s->go = (uint8_t)t->go;
    memcpy(s->object, objects, sizeof objects);
    memcpy(s->frames, t->frames, (size_t)n * sizeof s->frames[0]);
    set_holder(s, t->within);
    s->next = *head;
    *head = at;
    return at;
}

/* Samples. */

static uint32_t *block_head(uint64_t at) { return &profile.by_block[mix(at) & (profile.heads - 1)]; }

/* Writes a link. A thread without the lock may read the head of a chain, in upfront_profile_may. */
static void set_link(uint32_t *link, uint32_t i) { __atomic_store_n(link, i, __ATOMIC_RELAXED); }

static void count(sample *s, int by) {
    upfront_profile_stack *of = &profile.stack[s->stack - 1];
    of->live.bytes += by > 0 ? s->is.bytes : -s->is.bytes;
    of->live.objects += by > 0 ? s->is.objects : -s->is.objects;
}

/* Takes a sample out of the table. */
static void forget(sample *s) {
    uint32_t *link = block_head(s->at), i = (uint32_t)(s - profile.samples) + 1;
    upfront_profile_stack *of = &profile.stack[s->stack - 1];
    while (*link != i)
        link = &profile.samples[*link - 1].next;
    set_link(link, s->next);
    if (s->freed == LIVE)
        count(s, -1);
    else
        profile.freed--;
    profile.others -= of->arena != 0;
    profile.used--;
    of->samples--;
    s->freed = 0;
    s->next = profile.free;
    profile.free = i;
}

/* Forgets the older half of the freed blocks, by their moments. Returns 0 if there is none. */
static int forget_freed(void) {
    uint64_t i, first = LIVE, last = 0;
    if (profile.freed == 0)
        return 0;
    for (i = 0; i < profile.entries; i++) {
        uint64_t freed = profile.samples[i].freed;
        if (freed == 0 || freed == LIVE)
            continue;
        first = freed < first ? freed : first;
        last = freed > last ? freed : last;
    }
    last = first + (last - first) / 2;
    for (i = 0; i < profile.entries; i++)
        if (profile.samples[i].freed != 0 && profile.samples[i].freed <= last)
            forget(&profile.samples[i]);
    return 1;
}

static sample *live_at(uint64_t at) {
    uint32_t i;
    for (i = *block_head(at); i != 0; i = profile.samples[i - 1].next)
        if (profile.samples[i - 1].at == at && profile.samples[i - 1].freed == LIVE)
            return &profile.samples[i - 1];
    return NULL;
}

int upfront_profile_add(uint64_t at, uint64_t size, uint32_t arena, const upfront_trace *t) {
    uint32_t i, stack, *head = block_head(at);
    sample *s;
    if (arena != 0) /* the arena's own free took a block away */
        upfront_profile_drop(at);
    do {
        i = profile.free;
        if (i == 0 && profile.entries < profile.capacity)
            i = (uint32_t)profile.entries + 1;
        stack = i != 0 ? stack_of(arena, t) : 0;
    } while (stack == 0 && forget_freed());
    if (stack == 0) {
        profile.lost++;
        return 0;
    }
    s = &profile.samples[i - 1];
    if (i == profile.free)
        profile.free = s->next;
    else
        profile.entries++;
    profile.used++;
    profile.others += arena != 0;
    s->at = at;
    s->made = profile.moment;
    s->freed = LIVE;
    s->is = weigh(size);
    s->stack = stack;
    s->next = *head;
    set_link(head, i);
    count(s, 1);
    plus(&profile.stack[stack - 1].all, s->is);
    profile.stack[stack - 1].samples++;
    return 1;
}

void upfront_profile_drop(uint64_t at) {
    sample *s = profile.used != 0 ? live_at(at) : NULL;
    if (s == NULL)
        return;
    if (profile.stack[s->stack - 1].arena == 0 || s->made == profile.moment) {
        forget(s); /* no snapshot has it */
        return;
    }
    count(s, -1);
    s->freed = profile.moment;
    profile.freed++;
}

int upfront_profile_may(uint64_t at) { return __atomic_load_n(block_head(at), __ATOMIC_RELAXED) != 0; }

uint64_t upfront_profile_moment(void) { return ++profile.moment; }

void upfront_profile_rewind(const void *from, uint64_t size, uint64_t moment) {
    uint64_t i;
    if (profile.others == 0)
        return;
    for (i = 0; i < profile.entries; i++) {
        sample *s = &profile.samples[i];
        if (s->freed == 0 || profile.stack[s->stack - 1].arena == 0 ||
            upfront_place((const void *)(uintptr_t)s->at, from) >= size)
            continue;
        if (s->made >= moment) {
            forget(s);
        } else if (s->freed != LIVE && s->freed >= moment) {
            s->freed = LIVE;
            profile.freed--;
            count(s, 1);
        }
    }
}

/* Reading. */

void upfront_profile_count(upfront_profile_counts *out) {
    out->rate = profile.rate;
    out->capacity = profile.capacity;
    out->stacks = profile.stacks;
    out->objects = profile.kept;
    out->samples = profile.used - profile.freed;
    out->lost = profile.lost;
    out->gone = profile.gone;
}

void upfront_profile_stack_at(uint64_t i, upfront_profile_stack *out) { *out = profile.stack[i]; }

void upfront_profile_object_at(uint64_t i, upfront_profile_object *out) { *out = profile.object[i]; }

typedef struct search {
    const upfront_profile_object *object;
    uintptr_t pc;
    char *name;
    uint64_t size;
} search;

static int find_name(struct dl_phdr_info *info, size_t bytes, void *context) {
    search *s = (search *)context;
    upfront_object now;
    upfront_symbol symbol;
    (void)info, (void)bytes;
    if (!upfront_object_of(s->pc, &now) || !is_in_object(s->object, &now, s->pc))
        return -1;
    if (!upfront_symbol_of(s->pc, &symbol))
        return 1;
    strncpy(s->name, symbol.name, (size_t)s->size - 1);
    s->name[s->size - 1] = 0;
    return 2;
}

int upfront_profile_symbol(uint64_t i, uintptr_t pc, char *name, uint64_t size) {
    search s = {&profile.object[i], pc, name, size};
    int is = dl_iterate_phdr(find_name, &s);
    return is > 0 ? is : 0;
}

/* Adds up the stacks of C's malloc by holder, in the first stack of each, and takes the largest
 * sums. */
uint64_t upfront_profile_holders(upfront_holder out[UPFRONT_PROFILE_HOLDERS]) {
    uint64_t i, j, count = 0;
    memset(profile.by_holder, 0, (size_t)profile.heads * sizeof(uint32_t));
    for (i = 0; i < profile.stacks; i++) {
        upfront_profile_stack *s = &profile.stack[i];
        if (s->samples == 0 || s->arena != 0)
            continue;
        j = mix(s->holder) & (profile.heads - 1);
        while (profile.by_holder[j] != 0 && profile.stack[profile.by_holder[j] - 1].holder != s->holder)
            j = (j + 1) & (profile.heads - 1);
        if (profile.by_holder[j] == 0) {
            profile.by_holder[j] = (uint32_t)i + 1;
            s->held = 0;
        }
        profile.stack[profile.by_holder[j] - 1].held += s->live.bytes;
    }
    for (j = 0; j < profile.heads; j++) {
        const upfront_profile_stack *s;
        if (profile.by_holder[j] == 0)
            continue;
        s = &profile.stack[profile.by_holder[j] - 1];
        for (i = count; i != 0 && out[i - 1].bytes < s->held; i--)
            if (i < UPFRONT_PROFILE_HOLDERS)
                out[i] = out[i - 1];
        if (i == UPFRONT_PROFILE_HOLDERS)
            continue;
        out[i] = (upfront_holder){s->held, s->line, s->is_go};
        count += count < UPFRONT_PROFILE_HOLDERS;
    }
    return count;
}
