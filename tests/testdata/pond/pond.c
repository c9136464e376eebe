/* pond.c - a pond of frogs in one block of memory: C11, and also C++.
 *
 *     cc $(pkg-config --cflags upfront) pond.c $(pkg-config --libs upfront) -o pond
 *
 * A linear arena holds all that stays as long as the pond, and the blocks of the other arenas.
 * Frogs come and go in any order: a pool. Names have any length and grow: a heap. Croaks are read
 * in their order: a ring. Objects of one tick are above a mark of the linear arena; those that the
 * next tick reads as well are in a frame. */
#include <stdio.h>
#include <string.h>

#include <upfront.h>

enum { SIZE = 64 * 1024, TICKS = 200, SIDE = 16 };

typedef struct frog {
    uint32_t x, y, age;
    char *name; /* in the heap */
} frog;

typedef struct croak {
    uint32_t tick;
    char text[20];
} croak;

typedef struct pond {
    upfront_linear *all;
    upfront_pool *frogs;
    upfront_heap *names;
    upfront_ring *said;
    upfront_frame *frame;
    uint32_t *crowd; /* crowds of the last tick by cell, in the frame */
    frog **live; /* as many as the pool has chunks */
    uint32_t count, heard, refused, seed;
} pond;

static unsigned char memory[SIZE + UPFRONT_LINE];

static uint32_t draw(pond *p, uint32_t below) {
    p->seed = p->seed * UINT32_C(1664525) + UINT32_C(1013904223);
    return (p->seed >> 16) % below;
}

/* Each arena gets a block of the linear arena. Returns 0 if the pond's block is too small for
 * them. */
static int pond_init(pond *p, unsigned char *block, uint64_t size) {
    memset(p, 0, sizeof *p);
    p->all = upfront_linear_init(block, size);
    p->frogs = upfront_pool_make(upfront_linear_alloc(p->all, 1168, 64), 1168, sizeof(frog), 8, 0);
    p->names = upfront_heap_init(upfront_linear_alloc(p->all, 8192, 64), 8192, 0);
    p->said = upfront_ring_init(upfront_linear_alloc(p->all, 576, 64), 576);
    p->frame = upfront_frame_init(upfront_linear_alloc(p->all, 4096, 64), 4096, 2);
    if (p->frogs == NULL || p->names == NULL || p->said == NULL || p->frame == NULL)
        return 0;
    p->live = (frog **)upfront_linear_alloc(p->all, p->frogs->count * sizeof *p->live, 8);
    return p->live != NULL;
}

static void say(pond *p, uint32_t tick, const char *text) {
    croak *c = (croak *)upfront_ring_alloc(p->said, sizeof *c, 8);
    if (c == NULL) { /* full is an answer: this croak is lost */
        p->refused++;
        return;
    }
    c->tick = tick;
    snprintf(c->text, sizeof c->text, "%s", text);
}

static void spawn(pond *p) {
    frog *f = (frog *)upfront_pool_get(p->frogs, p->frogs->gen);
    if (f == NULL) {
        p->refused++;
        return;
    }
    f->x = draw(p, SIDE);
    f->y = draw(p, SIDE);
    f->age = 0;
    f->name = (char *)upfront_heap_alloc(p->names, 8, 1);
    snprintf(f->name, 8, "f%u", (unsigned)p->count);
    p->live[p->count++] = f;
}

static int leave(pond *p, uint32_t index) {
    frog *f = p->live[index];
    p->live[index] = p->live[--p->count];
    return upfront_heap_free(p->names, f->name) == UPFRONT_OK &&
           upfront_pool_put(p->frogs, p->frogs->gen, f) == UPFRONT_OK;
}

/* A birthday makes a name longer, in place or elsewhere. */
static void grow_old(pond *p, frog *f, uint32_t tick) {
    uint64_t length = strlen(f->name);
    char *longer = (char *)upfront_heap_realloc(p->names, f->name, length + 3);
    if (longer == NULL) {
        p->refused++;
        return;
    }
    f->name = longer;
    memcpy(longer + length, "-o", 3);
    say(p, tick, longer);
}

static int play(pond *p, uint32_t tick) {
    uint64_t mark = p->all->cursor, gen = p->all->gen, size;
    uint32_t *crowd = (uint32_t *)upfront_frame_alloc(p->frame, SIDE * SIDE * sizeof *crowd, 4), i, old = 0;
    /* freed after the tick */
    frog **near = (frog **)upfront_linear_alloc(p->all, (p->count + 1) * sizeof *near, 8);
    croak *c;
    if (crowd == NULL || near == NULL)
        return 0;
    memset(crowd, 0, SIDE * SIDE * sizeof *crowd);
    spawn(p);
    for (i = 0; i < p->count; i++) {
        frog *f = p->live[i];
        f->x = (f->x + draw(p, 3)) % SIDE;
        f->y = (f->y + draw(p, 3)) % SIDE;
        crowd[f->y * SIDE + f->x]++;
        if (++f->age % 25 == 0)
            near[old++] = f;
    }
    for (i = 0; i < old; i++)
        grow_old(p, near[i], tick);
    for (i = p->count; i-- > 0;) /* crowded now and in the last tick: it leaves */
        if (p->crowd != NULL && p->crowd[p->live[i]->y * SIDE + p->live[i]->x] > 1 && crowd[p->live[i]->y * SIDE + p->live[i]->x] > 1)
            if (!leave(p, i))
                return 0;
    if (tick % 16 == 15)
        while ((c = (croak *)upfront_ring_front(p->said, &size)) != NULL) {
            p->heard += c->tick + (uint32_t)strlen(c->text);
            if (upfront_ring_free(p->said, c) != UPFRONT_OK)
                return 0;
        }
    p->crowd = crowd;
    upfront_frame_next(p->frame);
    return upfront_linear_rewind(p->all, gen, mark) == UPFRONT_OK;
}

int main(void) {
    unsigned char *block = memory + (UPFRONT_LINE - (uintptr_t)memory % UPFRONT_LINE) % UPFRONT_LINE;
    pond p;
    uint32_t tick;
    if (!pond_init(&p, block, SIZE)) {
        fprintf(stderr, "pond: %d bytes are too few\n", SIZE);
        return 1;
    }
    for (tick = 0; tick < TICKS; tick++)
        if (!play(&p, tick)) {
            fprintf(stderr, "pond: tick %d failed\n", (int)tick);
            return 1;
        }
    printf("%s: %d frogs after %d ticks, at most %d of %d\n", UPFRONT_VERSION, (int)p.count, TICKS, (int)upfront_pool_peak(p.frogs),
           (int)p.frogs->count);
    printf("heard %u, refused %u\n", (unsigned)p.heard, (unsigned)p.refused);
    while (p.count > 0)
        if (!leave(&p, 0))
            return 1;
    printf("names: %d live, peak %d bytes; frame: peak %d\n", (int)p.names->live, (int)upfront_heap_peak(p.names), (int)upfront_frame_peak(p.frame));
    return 0;
}
