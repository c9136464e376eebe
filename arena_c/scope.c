#include "scope.h"

static void lay_out_end(upfront_scopes *h, uint64_t slots, uint64_t records, uint64_t back) {
    uint64_t i;
    h->chain = h->odd = h->depth = h->base = h->owner = 0;
    h->slots = slots;
    h->records = records;
    h->back = back;
    for (i = 0; i <= slots; i++)
        memset(upfront_scopes_record(h, i), 0, sizeof(upfront_record));
}

void upfront_row_init(upfront_row *r, const void *origin, const char *name, uint64_t start, uint64_t end,
                      uint64_t slots, uint64_t pools, uint64_t records, uint64_t headers) {
    const char *last;
    uint64_t i, far = (slots + 1) * sizeof(upfront_record), back = offsetof(upfront_row, temp),
                from = upfront_distance(origin, r);
    char kept[UPFRONT_NAME_SIZE] = {0};
    if (r == NULL || name == NULL)
        return;
    last = (const char *)memchr(name, 0, UPFRONT_NAME_SIZE - 1);
    memcpy(kept, name, last == NULL ? UPFRONT_NAME_SIZE - 1 : (size_t)(last - name));
    memcpy(r->name, kept, sizeof kept);
    lay_out_end(&r->arena, slots, records, 0);
    lay_out_end(&r->temp, slots, records + far - back, back);
    upfront_arena_bound(&r->arena.arena, from + start, from + end);
    upfront_arena_bound(&r->temp.arena, from + end - back, from + end - back);
    r->kind = r->kin = 0;
    r->end = from + end;
    r->pools = pools;
    r->headers = headers;
    memset(r->unused, 0, sizeof r->unused);
    memset(&r->over, 0, sizeof r->over);
    for (i = 0; i < pools; i++) /* closes the pools of an earlier map */
        memset(upfront_row_pool(r, i), 0, sizeof(upfront_pool));
}

uint64_t upfront_scopes_find(const upfront_scopes *h, uint64_t gen) {
    uint64_t i = h == NULL ? 0 : h->depth;
    while (i > 0 && upfront_scopes_record(h, i)->gen != gen)
        i--;
    return gen == 0 ? 0 : i;
}

int upfront_scope_is_alive(upfront_scope s) { return upfront_scopes_find(s.arena, s.gen) != 0; }

upfront_scope upfront_scope_open(upfront_scopes *h) {
    upfront_scope s = {NULL, 0};
    if (h == NULL || h->back != 0 || h->depth == h->slots || h->odd & (UPFRONT_CLOSING | UPFRONT_BUILDING) ||
        (h->depth != 0 && h->arena.gen == 0))
        return s;
    s.gen = upfront_scopes_open(h);
    s.arena = h;
    return s;
}

static uint64_t *word_node(upfront_scope s, uint64_t what) {
    uint64_t *word = (uint64_t *)upfront_scopes_node(s.arena, s.gen, sizeof *word, 7);
    if (word != NULL)
        *word = what;
    return word;
}

/* Frees the bytes since `cursor`. A pool and its node are made together or not at all. */
static void take_back(upfront_scopes *h, uint64_t cursor, uint64_t count) {
    upfront_arena *a = &h->arena;
    upfront_mark_dead(upfront_arena_at(a, cursor), a->cursor - cursor);
    a->cursor = cursor;
    upfront_scopes_top(h)->count = count;
}

/* Allocates the bytes of a pool; its chunks are marked one by one later. pre: h may allocate. */
static void *take_block(upfront_scopes *h, uint64_t size, uint64_t mask) {
    upfront_arena *a = &h->arena;
    uint64_t at = upfront_arena_aligned(a, mask);
    if (!upfront_arena_fits(a, at, size))
        return NULL;
    a->cursor = at + size;
    upfront_scopes_count(h, size);
    upfront_mark_block(upfront_arena_at(a, at), size);
    return upfront_arena_at(a, at);
}

int upfront_scope_pool_of(upfront_scope s, uint64_t size, uint64_t align, uint64_t count, uint32_t kind, int handles,
                          upfront_pool **out) {
    upfront_arena *a;
    upfront_row *r;
    uint64_t i = 0, bytes, before, counted, named, *node;
    void *block;
    if (out == NULL)
        return UPFRONT_BAD_ARGUMENT;
    *out = NULL;
    if (s.arena == NULL || upfront_pool_size(size, align, count == 0 ? 1 : count, 0) == 0)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_scope_is_open(s))
        return UPFRONT_ORDER;
    a = &s.arena->arena;
    r = upfront_row_of(s.arena);
    bytes = upfront_pool_size(size, align, count, (uint64_t)handles);
    before = a->cursor;
    counted = upfront_scopes_top(s.arena)->count;
    while (i < r->pools && upfront_row_pool(r, i)->gen != 0)
        i++;
    if (i == r->pools)
        return UPFRONT_TABLE_FULL;
    node = word_node(s, i);
    block = node == NULL ? NULL : take_block(s.arena, bytes, upfront_pool_align(align) - 1);
    if (block == NULL) { /* record the size of both */
        uint64_t at;
        take_back(s.arena, before, counted);
        a->cursor = upfront_round_up(before + sizeof(upfront_node), 8) + sizeof *node;
        at = upfront_arena_aligned(a, upfront_pool_align(align) - 1);
        a->cursor = before;
        a->asked = UPFRONT_ASKED | (at + bytes - before) | (node == NULL ? a->asked & UPFRONT_PURPOSE : 0);
        return UPFRONT_FULL;
    }
    upfront_scopes_link(s.arena, node, UPFRONT_CLASS_POOL);
    *out = upfront_row_pool(r, i);
    named = handles ? upfront_pool_handles(i, r->pools) : 0;
    (void)upfront_pool_init(*out, block, ++r->arena.arena.next, size, align, count, named);
    (*out)->kind = kind;
    return UPFRONT_OK;
}

upfront_pool *upfront_scope_pool(upfront_scope s, uint64_t size, uint64_t align, uint64_t count) {
    upfront_pool *p;
    (void)upfront_scope_pool_of(s, size, align, count, 0, 0, &p);
    return p;
}

int upfront_scope_temp_room(upfront_scope s, uint64_t size, uint64_t *at, uint64_t *from) {
    const upfront_row *r;
    const upfront_arena *near_end;
    upfront_arena *a;
    uint64_t before, counted;
    int has_node;
    if (!upfront_scope_is_open(s))
        return 0;
    r = upfront_row_of(s.arena);
    a = &s.arena->arena;
    near_end = &r->arena.arena;
    if (r->temp.depth == r->temp.slots || r->temp.odd & UPFRONT_CLOSING || r->arena.odd & UPFRONT_BUILDING)
        return 0;
    if (size >= UPFRONT_OFFSET_MAX) { /* no arena is so large */
        a->asked = UPFRONT_ASKED | UPFRONT_OFFSET_MAX;
        return 0;
    }
    before = a->cursor;
    counted = upfront_scopes_top(s.arena)->count;
    has_node = upfront_scopes_node_room(s.arena, s.gen, sizeof(uint64_t), 7, at);
    *from = near_end->limit - size;
    *from -= ((uint64_t)(uintptr_t)near_end + *from) % UPFRONT_LINE;
    if (has_node && *from - near_end->cursor < UPFRONT_OFFSET_MAX)
        return 1;
    a->cursor = before; /* neither is made; record the size of both */
    upfront_scopes_top(s.arena)->count = counted;
    if (s.arena == &r->arena)
        a->asked = UPFRONT_ASKED | (upfront_arena_up(a, *at + sizeof(uint64_t), UPFRONT_LINE - 1) - before + size) |
                   (has_node ? 0 : a->asked & UPFRONT_PURPOSE);
    else if (has_node) /* else the temporary scope has no room for the node */
        a->asked = UPFRONT_ASKED | (size + UPFRONT_LINE);
    return 0;
}

upfront_scope upfront_scope_temp(upfront_scope s, uint64_t size) {
    upfront_scope temp = {NULL, 0};
    uint64_t *node, at, from;
    if (!upfront_scope_temp_room(s, size, &at, &from))
        return temp;
    node = (uint64_t *)upfront_scopes_node_mark(s.arena, at, sizeof *node);
    /* linked before the new scope opens, because the node belongs to s, even if s is temporary */
    upfront_scopes_link(s.arena, node, UPFRONT_CLASS_TEMP);
    temp.arena = &upfront_row_of(s.arena)->temp;
    temp.gen = *node = upfront_scopes_temp_open(temp.arena, from, size);
    return temp;
}

void upfront_scopes_temp_close(upfront_scopes *t) {
    const upfront_arena *near_end;
    if (t == NULL || t->depth == 0)
        return;
    near_end = &upfront_row_of(t)->arena.arena;
    upfront_mark_dead(upfront_arena_at(near_end, near_end->limit), t->arena.cursor + t->back - near_end->limit);
    upfront_scopes_temp_pop(t);
}

static upfront_pool *pool_of(const upfront_scopes *h, const void *object) {
    return upfront_row_pool(upfront_row_of(h), *(const uint64_t *)object);
}

/* Reports whether C may end a node. A temporary scope has its own chain. */
static int is_c(const upfront_scopes *h, const void *object) {
    const upfront_scopes *temp = &upfront_row_of(h)->temp;
    uint64_t index;
    switch (((const upfront_node *)object)[-1] / UPFRONT_NODE_CLASS) {
    case UPFRONT_CLASS_C:
        return 1;
    case UPFRONT_CLASS_POOL:
        return pool_of(h, object)->kind == 0;
    case UPFRONT_CLASS_TEMP:
        index = upfront_scopes_find(temp, *(const uint64_t *)object);
        return index == 0 || h == temp || upfront_scopes_is_c(temp, upfront_scopes_record(temp, index)->chain);
    default:
        return 0;
    }
}

int upfront_scopes_is_c(const upfront_scopes *h, uint64_t until) {
    uint64_t at;
    if (h == NULL)
        return 0;
    for (at = h->chain; at != until && at != 0;) {
        const upfront_node *object = (const upfront_node *)upfront_scopes_object(h, at);
        if (!is_c(h, object))
            return 0;
        at = object[-1] % UPFRONT_NODE_CLASS;
    }
    return 1;
}

typedef int is_node(const upfront_scopes *h, const void *object);

static int is_deferred(const upfront_scopes *h, const void *object) {
    (void)h;
    return ((const upfront_node *)object)[-1] / UPFRONT_NODE_CLASS == UPFRONT_CLASS_C;
}

static void run_temp(upfront_scopes *temp, uint64_t gen, uint64_t *ran);

/* Runs the nodes down to `until` or to the first that isn't of the kind, and counts the
 * finalizers. */
static void run_nodes(upfront_scopes *h, uint64_t until, is_node *is, uint64_t *ran) {
    uint64_t class_;
    while (h->chain != until && h->chain != 0 && is(h, upfront_scopes_object(h, h->chain))) {
        /* unlink first: a finalizer runs once even if it doesn't return */
        void *object = upfront_scopes_unlink(h, &class_);
        if (class_ == UPFRONT_CLASS_POOL) {
            upfront_pool_close(pool_of(h, object));
        } else if (class_ == UPFRONT_CLASS_TEMP) {
            run_temp(&upfront_row_of(h)->temp, *(const uint64_t *)object, ran);
        } else {
            const upfront_deferred *d = (const upfront_deferred *)object;
            ++*ran;
            d->finalizer(d->arg);
        }
    }
}

/* Closes the temporary scope of that generation, if it is open, after newer ones. */
static void run_temp(upfront_scopes *temp, uint64_t gen, uint64_t *ran) {
    uint64_t index = upfront_scopes_find(temp, gen);
    while (index != 0 && temp->depth >= index) {
        temp->arena.gen = 0;
        run_nodes(temp, upfront_scopes_top(temp)->chain, is_c, ran);
        upfront_scopes_temp_close(temp);
    }
}

uint64_t upfront_scopes_run(upfront_scopes *h, uint64_t until) {
    uint64_t ran = 0;
    if (h != NULL)
        run_nodes(h, until, is_c, &ran);
    return ran;
}

void upfront_scopes_run_deferred(upfront_scopes *h, uint64_t until) {
    if (h != NULL)
        run_nodes(h, until, is_deferred, &upfront_scopes_top(h)->ran);
}

int upfront_scope_close(upfront_scope s) {
    upfront_scopes *h = s.arena;
    uint64_t chain;
    if (h == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (!upfront_scope_is_alive(s))
        return UPFRONT_STALE;
    chain = upfront_scopes_top(h)->chain;
    if (!upfront_scope_is_open(s) || h->depth <= h->base || upfront_row_of(h)->temp.odd & UPFRONT_CLOSING ||
        !upfront_scopes_is_c(h, chain))
        return UPFRONT_ORDER;
    h->odd |= UPFRONT_CLOSING;
    h->arena.gen = 0;
    upfront_scopes_run(h, chain);
    h->odd &= ~(uint64_t)UPFRONT_CLOSING;
    if (h->back == 0)
        upfront_scopes_close(h);
    else
        upfront_scopes_temp_close(h);
    return UPFRONT_OK;
}
